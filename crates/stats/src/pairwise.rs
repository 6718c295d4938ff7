//! The k-th smallest of all differences, or of all Walsh averages, without computing all of them.
//!
//! Both are sums over two sorted lists, so the number that is at most t is counted in one walk down
//! a staircase (that of Johnson & Mizoguchi, "Selecting the Kth element in X + Y and X1 + X2 + ... +
//! Xm", SIAM J. Comput. 7, 1978), which also meets the sums next to t. The walks narrow the range of
//! t on both sides of where interpolation expects it, until the few sums left are sorted. The result
//! is exact, because rounding is monotone.

/// The sums over two sorted lists, seen from a limit.
#[derive(Clone, Copy, Debug)]
struct Staircase {
    /// The number of sums that are at most the limit.
    count: usize,
    /// The largest of these.
    below: f64,
    /// The smallest of the others.
    above: f64,
}

impl Staircase {
    const EMPTY: Self = Self { count: 0, below: f64::NEG_INFINITY, above: f64::INFINITY };
}

/// Part of the sums by which the first guess of the range reaches to either side.
const MARGIN: f64 = 0.05;
/// Guesses were right if the range that they leave is at most this number of margins wide.
const HIT: f64 = 4.0;
/// The range is sorted as soon as it has this number of sums for each value.
const SORTED_PER_VALUE: usize = 4;

/// Returns the k-th smallest (from 1) of `candidate[j] - baseline[i]` over two sorted slices.
pub(crate) fn kth_difference(baseline: &[f64], candidate: &[f64], k: usize) -> f64 {
    let range = Range {
        low: candidate[0] - baseline[baseline.len() - 1],
        high: candidate[candidate.len() - 1] - baseline[0],
        below: 0,
        up_to: baseline.len() * candidate.len(),
    };
    let few = SORTED_PER_VALUE * (baseline.len() + candidate.len());
    let walk = |limit| differences_from(baseline, candidate, limit);
    let (low, high, k) = match range.narrowed(k, few, walk) {
        Ok(found) => return found,
        Err(Range { low, high, below, .. }) => (low, high, k - below),
    };
    let mut left = Vec::new();
    let mut first = 0;
    for from in baseline {
        while first < candidate.len() && candidate[first] - from < low {
            first += 1;
        }
        let row = candidate[first..].iter().map(|to| to - from);
        left.extend(row.take_while(|difference| *difference <= high));
    }
    nth(left, k)
}

fn differences_from(baseline: &[f64], candidate: &[f64], limit: f64) -> Staircase {
    let mut found = Staircase::EMPTY;
    let (mut row, mut inside) = (0, 0);
    // Each step compares one difference; as data decides which way it goes, it has no branch.
    while row < baseline.len() && inside < candidate.len() {
        let difference = candidate[inside] - baseline[row];
        let is_inside = difference <= limit;
        let last = candidate[inside.saturating_sub(1)] - baseline[row];
        let ends_below = !is_inside && inside > 0;
        found.below = if ends_below { found.below.max(last) } else { found.below };
        found.above = if is_inside { found.above } else { found.above.min(difference) };
        found.count += if is_inside { 0 } else { inside };
        inside += usize::from(is_inside);
        row += usize::from(!is_inside);
    }
    // All of the rows that are left are inside, and the first of them has the largest differences.
    if let Some(from) = baseline.get(row) {
        found.count += (baseline.len() - row) * candidate.len();
        found.below = found.below.max(candidate[candidate.len() - 1] - from);
    }
    found
}

/// Returns the k-th smallest (from 1) of `(x[i] + x[j]) / 2` with `i <= j` over a sorted slice.
pub(crate) fn kth_walsh_average(sorted: &[f64], k: usize) -> f64 {
    let n = sorted.len();
    let range = Range { low: sorted[0], high: sorted[n - 1], below: 0, up_to: n * (n + 1) / 2 };
    let walk = |limit| walsh_averages_from(sorted, limit);
    let (low, high, k) = match range.narrowed(k, SORTED_PER_VALUE * n, walk) {
        Ok(found) => return found,
        Err(Range { low, high, below, .. }) => (low, high, k - below),
    };
    let mut left = Vec::new();
    for (at, first) in sorted.iter().enumerate() {
        let row = sorted[at..].iter().map(|second| walsh_average(*first, *second));
        let skipped = sorted[at..].partition_point(|second| walsh_average(*first, *second) < low);
        left.extend(row.skip(skipped).take_while(|average| *average <= high));
    }
    nth(left, k)
}

fn walsh_averages_from(sorted: &[f64], limit: f64) -> Staircase {
    let mut found = Staircase::EMPTY;
    let mut inside = sorted.len();
    for (first, value) in sorted.iter().enumerate() {
        while inside > first && walsh_average(*value, sorted[inside - 1]) > limit {
            inside -= 1;
        }
        let row = &sorted[first..];
        let counted = inside.saturating_sub(first);
        found.count += counted;
        if let Some(next) = row.get(counted) {
            found.above = found.above.min(walsh_average(*value, *next));
        }
        if counted == 0 {
            break;
        }
        found.below = found.below.max(walsh_average(*value, row[counted - 1]));
    }
    found
}

fn walsh_average(first: f64, second: f64) -> f64 {
    0.5 * (first + second)
}

fn nth(mut values: Vec<f64>, k: usize) -> f64 {
    *values.select_nth_unstable_by(k - 1, f64::total_cmp).1 + 0.0
}

/// A range of sums that includes both ends, which are sums themselves.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    high: f64,
    /// The number of sums below `low`.
    below: usize,
    /// The number of sums that are at most `high`.
    up_to: usize,
}

impl Range {
    /// Narrows the range that holds the k-th sum until it has at most `few` sums, or finds that one.
    fn narrowed(
        mut self,
        k: usize,
        few: usize,
        walk: impl Fn(f64) -> Staircase,
    ) -> Result<f64, Self> {
        let mut margin = MARGIN;
        while self.low < self.high {
            let begun = self;
            if begun.left() <= few {
                return Err(self);
            }
            let share = (k - begun.below) as f64 / begun.left() as f64;
            for share in [share - margin, share + margin] {
                let limit = begun.low + share * (begun.high - begun.low);
                if (self.low..self.high).contains(&limit) {
                    self.look(k, walk(limit));
                }
            }
            // A range that is not halved is bisected: where interpolation fails, that is the bound.
            if self.left() > begun.left() / 2 && self.low < self.high {
                let limit = float(ordered(self.low).midpoint(ordered(self.high)));
                self.look(k, walk(limit));
            }
            // The smaller the range, the more even are its sums.
            let is_hit = self.left() as f64 <= HIT * margin * begun.left() as f64;
            margin = if is_hit { margin * margin } else { MARGIN };
        }
        Ok(self.high + 0.0)
    }

    /// Moves the end on whose side of the k-th sum the limit is.
    fn look(&mut self, k: usize, seen: Staircase) {
        if seen.count >= k {
            (self.high, self.up_to) = (seen.below, seen.count);
        } else {
            (self.low, self.below) = (seen.above, seen.count);
        }
    }

    /// Returns the number of sums in the range.
    fn left(&self) -> usize {
        self.up_to - self.below
    }
}

/// Maps a float to an integer with the same order.
fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns the float of an [`ordered`] integer.
fn float(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered ^ (1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let whole = (-6_i32..6).prop_map(f64::from);
        proptest::collection::vec(prop_oneof![whole, -1e3_f64..1e3], 1..14).prop_map(sorted)
    }

    proptest! {
        #[test]
        fn every_difference_is_found_at_its_place(a in values(), b in values()) {
            let all: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
            for (index, expected) in sorted(all).iter().enumerate() {
                prop_assert_eq!(kth_difference(&a, &b, index + 1), *expected);
            }
        }

        #[test]
        fn every_walsh_average_is_found_at_its_place(x in values()) {
            let all = (0..x.len()).flat_map(|i| (i..x.len()).map(move |j| (i, j)));
            let all: Vec<f64> = all.map(|(i, j)| walsh_average(x[i], x[j])).collect();
            for (index, expected) in sorted(all).iter().enumerate() {
                prop_assert_eq!(kth_walsh_average(&x, index + 1), *expected);
            }
        }
    }

    /// Regression: each of six results took 60 walks, one minute for two files of 63 MB.
    #[test]
    fn a_sum_among_very_many_is_found_in_few_walks() {
        let smooth = |n: u32| {
            sorted((0..n).map(|i| (f64::from(i) / 7.0).sin() + f64::from(i % 13)).collect())
        };
        let steps = |n: u32| sorted((0..n).map(|i| f64::from(i % 5)).collect());
        for (name, values) in [("smooth", smooth(20_000)), ("steps", steps(20_000))] {
            let n = values.len();
            for k in [1, n, n * n / 3, n * n / 2, n * n] {
                let walks = std::cell::Cell::new(0);
                let walk = |limit| {
                    walks.set(walks.get() + 1);
                    differences_from(&values, &values, limit)
                };
                let range = Range {
                    low: values[0] - values[n - 1],
                    high: values[n - 1] - values[0],
                    below: 0,
                    up_to: n * n,
                };
                let _ = range.narrowed(k, SORTED_PER_VALUE * 2 * n, walk);
                assert!(walks.get() <= 20, "{name} {k}: {} walks", walks.get());
            }
        }
    }

    #[test]
    fn floats_survive_the_round_trip_through_ordered_bits() {
        let line = [-1e300, -1.0, -1e-310, -0.0, 0.0, 5e-324, 2.5, 1e300];
        assert!(line.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert!(line.iter().all(|x| float(ordered(*x)).to_bits() == x.to_bits()));
    }
}
