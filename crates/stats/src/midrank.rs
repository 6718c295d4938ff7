//! Ranks with ties at their mean, doubled so that they are integers.

use crate::Sample;
use crate::pairwise::ordered;

/// The doubled ranks of `values`: twice the mean of the positions, counted from 1, that equal
/// values share.
pub(crate) struct Midranks {
    /// Twice the rank of each value, in the order given.
    pub doubled: Vec<usize>,
    /// `sum(t^3 - t)` over groups of t equal values, by which ties reduce the variance.
    pub tie_loss: f64,
}

impl Midranks {
    /// Ranks finite values.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self::within(values, &sorted)
    }

    /// Ranks the values of a sample.
    pub(crate) fn of_sample(sample: &Sample) -> Self {
        Self::within(sample.values(), sample.sorted())
    }

    /// Ranks values that are also given sorted: the keys show only where each of them is.
    fn within(values: &[f64], sorted: &[f64]) -> Self {
        // The bits of a key that are the value's place.
        let place_bits = usize::BITS - values.len().leading_zeros();
        let place = |key: &u64| place_of(key & !(u64::MAX << place_bits));
        let value = |key: &u64| values[place(key)];
        let mut keys = keys(values, place_bits);
        keys.sort_unstable();
        let mut before = 0;
        for close in keys.chunk_by_mut(|a, b| a >> place_bits == b >> place_bits) {
            let last = before + close.len() - 1;
            if sorted[before] != sorted[last] {
                close.sort_unstable_by(|a, b| value(a).total_cmp(&value(b)));
            }
            before = last + 1;
        }
        let mut doubled = vec![0; values.len()];
        let (mut tie_loss, mut before) = (0.0, 0);
        for group in sorted.chunk_by(|a, b| a == b) {
            for key in &keys[before..before + group.len()] {
                doubled[place(key)] = 2 * before + group.len() + 1;
            }
            let size = group.len() as f64;
            tie_loss += size.powi(3) - size;
            before += group.len();
        }
        Self { doubled, tie_loss }
    }
}

/// Returns a key for each value: the leading bits of its distance from one of them, and its place.
/// Integers of eight bytes are sorted in half the time and memory of pairs. Different values with
/// equal leading bits are few.
fn keys(values: &[f64], place_bits: u32) -> Vec<u64> {
    let middle = values.get(values.len() / 2).copied().unwrap_or_default();
    let key = |(place, value): (usize, &f64)| {
        // Without the sign of zeros, since these are equal.
        let bits = ordered(value - middle + 0.0);
        bits >> place_bits << place_bits | place as u64
    };
    values.iter().enumerate().map(key).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a place in a slice")]
fn place_of(bits: u64) -> usize {
    bits as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_the_mean_of_their_positions() {
        let ranks = Midranks::of(&[3.0, 1.0, 3.0, 2.0, -0.0, 0.0]);
        assert_eq!(ranks.doubled, [11, 6, 11, 8, 3, 3]);
        assert_eq!(ranks.tie_loss, 12.0);
    }

    #[test]
    fn values_with_equal_leading_bits_are_ranked_by_all_of_theirs() {
        let next = 5.0_f64.next_up();
        let far = [next, 1e9, -f64::MAX, 5.0, 1e9, f64::MAX, next.next_up(), -2.0];
        assert_eq!(Midranks::of(&far).doubled, [8, 13, 2, 6, 13, 16, 10, 4]);
    }
}
