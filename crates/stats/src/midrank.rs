//! Ranks with ties at their mean, doubled so that they are integers.

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
        // A value next to its index: looking values up while sorting takes three times as long.
        let mut order: Vec<(f64, usize)> =
            values.iter().enumerate().map(|(index, value)| (*value, index)).collect();
        order.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut doubled = vec![0; values.len()];
        let mut tie_loss = 0.0;
        let mut before = 0;
        for group in order.chunk_by(|(a, _), (b, _)| a == b) {
            for (_, index) in group {
                doubled[*index] = 2 * before + group.len() + 1;
            }
            let size = group.len() as f64;
            tie_loss += size.powi(3) - size;
            before += group.len();
        }
        Self { doubled, tie_loss }
    }
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
}
