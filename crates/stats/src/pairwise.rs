//! The k-th smallest of all differences, or of all Walsh averages, without computing all of them.
//!
//! Both are sums over two sorted lists, so the number that is at most t is counted in one walk down
//! a staircase (that of Johnson & Mizoguchi, "Selecting the Kth element in X + Y and X1 + X2 + ... +
//! Xm", SIAM J. Comput. 7, 1978), which also meets the sums next to t. The walks narrow the range of
//! t on both sides of where interpolation expects it, until the few sums left are sorted. The result
//! is exact, because rounding is monotone.

mod range;

pub(crate) use range::ordered;

use range::Range;

use crate::whole;

/// The sums over two sorted lists, seen from a limit.
#[derive(Clone, Copy, Debug)]
struct Staircase {
    /// The number of sums that are at most the limit.
    count: usize,
    /// The largest of the sums up to the limit.
    below: f64,
    /// The smallest of the sums above the limit.
    above: f64,
}

impl Staircase {
    const EMPTY: Self = Self { count: 0, below: f64::NEG_INFINITY, above: f64::INFINITY };
}

/// Share of the sums by which the first guess of the range extends to either side.
const MARGIN: f64 = 0.05;
/// Lists with more values together are first searched with one value of each stretch.
const LARGE: usize = 1 << 16;
/// Values of a stretch.
const STRETCH: usize = 32;
/// The distance of probable limits from the expected rank, in units of `sqrt(values / STRETCH)`: for
/// random values of several shapes, the k-th difference between stretches was off by at most 3.
const PROBABLE_DEVIATIONS: usize = 4;
/// The same share for large lists, within the range that the stretches leave: there the sums are
/// spread evenly.
const LARGE_MARGIN: f64 = MARGIN * MARGIN / 8.0;
/// From large lists, this share of the number of values is left to be sorted.
const LARGE_SHARE: usize = 8;
/// Number of parts of the staircase that are walked in turn, because within a part each step waits
/// for the one before.
const PARTS: usize = 4;

/// A sum at its place among all, with the one before it if that was met.
#[derive(Clone, Copy, Debug)]
struct Placed {
    value: f64,
    before: Option<f64>,
}

impl Placed {
    /// Takes the k-th smallest (from 1) of the sums left.
    fn among(mut left: Vec<f64>, k: usize) -> Self {
        let (smaller, value, _) = left.select_nth_unstable_by(k - 1, f64::total_cmp);
        let before = smaller.iter().copied().max_by(f64::total_cmp);
        // Without the sign of zeros.
        Self { value: *value + 0.0, before }
    }
}

/// Returns the k-th smallest (from 1) of `candidate[j] - baseline[i]` over two sorted slices.
pub(crate) fn kth_difference(baseline: &[f64], candidate: &[f64], k: usize) -> f64 {
    placed_difference(baseline, candidate, k).value
}

fn placed_difference(baseline: &[f64], candidate: &[f64], k: usize) -> Placed {
    let walk = |limit| differences_from(baseline, candidate, limit);
    let Range { low, high, below, up_to } = match narrowed(baseline, candidate, k, walk) {
        Ok(value) => return Placed { value, before: None },
        Err(range) => range,
    };
    let mut left = Vec::with_capacity(up_to - below);
    let mut first = 0;
    for from in baseline {
        while first < candidate.len() && candidate[first] - from < low {
            first += 1;
        }
        let row = candidate[first..].iter().map(|to| to - from);
        left.extend(row.take_while(|difference| *difference <= high));
    }
    Placed::among(left, k - below)
}

/// Finds the k-th difference, or a range with it and few others.
fn narrowed(
    baseline: &[f64],
    candidate: &[f64],
    k: usize,
    walk: impl Fn(f64) -> Staircase,
) -> Result<f64, Range> {
    let mut range = Range {
        low: candidate[0] - baseline[baseline.len() - 1],
        high: candidate[candidate.len() - 1] - baseline[0],
        below: 0,
        up_to: baseline.len() * candidate.len(),
    };
    let values = baseline.len() + candidate.len();
    if values <= LARGE {
        return range.narrowed(k, values, MARGIN, walk);
    }
    let few = values / LARGE_SHARE;
    for is_sure in [false, true] {
        if range.left() > few {
            for limit in thinned_limits(baseline, candidate, k, is_sure) {
                range.try_limit(k, limit, &walk);
            }
        }
    }
    range.narrowed(k, few, LARGE_MARGIN, walk)
}

/// Returns the median of `candidate[j] - baseline[i]` over two sorted slices.
pub(crate) fn middle_difference(baseline: &[f64], candidate: &[f64]) -> f64 {
    middle(
        baseline.len() * candidate.len(),
        |k| placed_difference(baseline, candidate, k),
        |limit| differences_from(baseline, candidate, limit),
    )
}

/// Returns the median of `count` sums. If `count` is even, and the sum before the upper middle one was
/// not met, one more walk finds it.
fn middle(count: usize, kth: impl Fn(usize) -> Placed, walk: impl Fn(f64) -> Staircase) -> f64 {
    let Placed { value: upper, before } = kth(count / 2 + 1);
    if count % 2 == 1 {
        return upper;
    }
    let lower = before.unwrap_or_else(|| {
        let smaller = walk(upper.next_down());
        if smaller.count == count / 2 { smaller.below } else { upper }
    });
    0.5 * (lower + upper)
}

/// Returns limits around the k-th difference, by one value of each stretch. A value differs from its
/// stretch's by at most half a stretch of ranks: sure limits allow for all of that, probable ones for
/// what remains because most of it cancels out.
fn thinned_limits(baseline: &[f64], candidate: &[f64], k: usize, is_sure: bool) -> [f64; 2] {
    let thinned = |values: &[f64]| -> Vec<f64> {
        values.iter().skip(STRETCH / 2).step_by(STRETCH).copied().collect()
    };
    let (first, second) = match [baseline, candidate].map(thinned) {
        [first, second] if first.is_empty() => (vec![baseline[0]], second),
        [first, second] if second.is_empty() => (first, vec![candidate[0]]),
        [first, second] => (first, second),
    };
    let all = first.len() * second.len();
    let share = k as f64 / (baseline.len() as f64 * candidate.len() as f64);
    let place = whole::floor(share * all as f64);
    let values = first.len() + second.len();
    let aside = match is_sure {
        true => values / 2,
        false => PROBABLE_DEVIATIONS * (values / STRETCH).isqrt(),
    };
    [place.saturating_sub(aside), place + aside + 1]
        .map(|k| kth_difference(&first, &second, k.clamp(1, all)))
}

fn differences_from(baseline: &[f64], candidate: &[f64], limit: f64) -> Staircase {
    let largest = baseline[baseline.len() - 1];
    let steps = baseline.len() + candidate.partition_point(|to| to - largest <= limit);
    let starts: [usize; PARTS + 1] = std::array::from_fn(|part| steps * part / PARTS);
    let mut walkers: [Walker; PARTS] =
        std::array::from_fn(|part| Walker::at(starts[part], baseline, candidate, limit));
    for _ in 0..steps / PARTS {
        walkers.iter_mut().for_each(|walker| walker.step(baseline, candidate, limit));
    }
    let mut found = Staircase::EMPTY;
    for (part, walker) in walkers.iter_mut().enumerate() {
        for _ in steps / PARTS..starts[part + 1] - starts[part] {
            walker.step(baseline, candidate, limit);
        }
        found.count += walker.found.count;
        found.below = found.below.max(walker.found.below);
        found.above = found.above.min(walker.found.above);
    }
    found
}

/// A place on the staircase, and what was met on the way there.
#[derive(Clone, Copy, Debug)]
struct Walker {
    row: usize,
    /// The number of the row's differences that are inside the limit, as far as is known.
    inside: usize,
    found: Staircase,
}

impl Walker {
    /// Returns the place that a walk from the first row and column reaches after `steps`.
    fn at(steps: usize, baseline: &[f64], candidate: &[f64], limit: f64) -> Self {
        let mut row = steps.saturating_sub(candidate.len());
        let mut most = steps.min(baseline.len());
        while row < most {
            let middle = row.midpoint(most);
            let is_inside = candidate[steps - 1 - middle] - baseline[middle] <= limit;
            (row, most) = if is_inside { (row, middle) } else { (middle + 1, most) };
        }
        Self { row, inside: steps - row, found: Staircase::EMPTY }
    }

    /// Compares one difference, and goes on to the next column or, at the end of those inside, to
    /// the next row. Written with masks, because a branch whose direction depends on the data takes
    /// longer than all the rest, and the compiler makes one of `if`.
    #[inline]
    fn step(&mut self, baseline: &[f64], candidate: &[f64], limit: f64) {
        let Self { row, inside, found } = self;
        let difference = candidate[(*inside).min(candidate.len() - 1)] - baseline[*row];
        let is_inside = difference <= limit;
        let advances = usize::from(is_inside & (*inside < candidate.len()));
        found.below = larger(found.below, either(is_inside, difference, f64::NEG_INFINITY));
        found.above = smaller(found.above, either(is_inside, f64::INFINITY, difference));
        found.count += *inside & advances.wrapping_sub(1);
        *inside += advances;
        *row += 1 - advances;
    }
}

#[inline]
fn either(first: bool, one: f64, other: f64) -> f64 {
    let mask = u64::from(first).wrapping_neg();
    f64::from_bits(one.to_bits() & mask | other.to_bits() & !mask)
}

/// Returns the larger number; of numbers only, one instruction where `f64::max` takes several.
#[inline]
fn larger(one: f64, other: f64) -> f64 {
    if other > one { other } else { one }
}

#[inline]
fn smaller(one: f64, other: f64) -> f64 {
    if other < one { other } else { one }
}

/// Returns the k-th smallest (from 1) of `(x[i] + x[j]) / 2` with `i <= j` over a sorted slice.
pub(crate) fn kth_walsh_average(sorted: &[f64], k: usize) -> f64 {
    placed_walsh_average(sorted, k).value
}

fn placed_walsh_average(sorted: &[f64], k: usize) -> Placed {
    let n = sorted.len();
    let range = Range { low: sorted[0], high: sorted[n - 1], below: 0, up_to: n * (n + 1) / 2 };
    let walk = |limit| walsh_averages_from(sorted, limit);
    let Range { low, high, below, up_to } = match range.narrowed(k, n, MARGIN, walk) {
        Ok(value) => return Placed { value, before: None },
        Err(range) => range,
    };
    let mut left = Vec::with_capacity(up_to - below);
    for (at, first) in sorted.iter().enumerate() {
        let row = sorted[at..].iter().map(|second| walsh_average(*first, *second));
        let skipped = sorted[at..].partition_point(|second| walsh_average(*first, *second) < low);
        left.extend(row.skip(skipped).take_while(|average| *average <= high));
    }
    Placed::among(left, k - below)
}

/// Returns the median of `(x[i] + x[j]) / 2` with `i <= j` over a sorted slice.
pub(crate) fn middle_walsh_average(sorted: &[f64]) -> f64 {
    middle(
        sorted.len() * (sorted.len() + 1) / 2,
        |k| placed_walsh_average(sorted, k),
        |limit| walsh_averages_from(sorted, limit),
    )
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

    #[test]
    fn the_median_is_that_of_all_sums() {
        for values in [vec![1.0, 2.0], vec![0.0, 0.0, 1.0, 1.0], vec![-3.0, 0.0, 0.0, 5.0]] {
            let all =
                sorted(values.iter().flat_map(|x| values.iter().map(move |y| y - x)).collect());
            let expected = 0.5 * (all[all.len() / 2 - 1] + all[all.len() / 2]);
            assert_eq!(middle_difference(&values, &values), expected, "{values:?}");
            let pairs = (0..values.len()).flat_map(|i| (i..values.len()).map(move |j| (i, j)));
            let all = sorted(pairs.map(|(i, j)| walsh_average(values[i], values[j])).collect());
            let [lower, upper] = [(all.len() - 1) / 2, all.len() / 2].map(|at| all[at]);
            assert_eq!(middle_walsh_average(&values), 0.5 * (lower + upper), "{values:?}");
        }
    }

    /// Two lists large enough to be thinned: one smooth, one of few different values.
    fn large() -> [(&'static str, Vec<f64>); 2] {
        let smooth = |i: u32| (f64::from(i) / 7.0).sin() + f64::from(i % 13);
        let steps = |i: u32| f64::from(i % 5);
        let of = |value: &dyn Fn(u32) -> f64| sorted((0..40_000).map(value).collect());
        [("smooth", of(&smooth)), ("steps", of(&steps))]
    }

    /// Regression: each of six results took 60 walks, one minute for two files of 63 MB.
    #[test]
    fn a_sum_among_very_many_is_found_in_few_walks() {
        for (name, values) in large() {
            let n = values.len();
            for k in [1, n, n * n / 3, n * n / 2, n * n] {
                let walks = std::cell::Cell::new(0);
                let walk = |limit| {
                    walks.set(walks.get() + 1);
                    differences_from(&values, &values, limit)
                };
                let _ = narrowed(&values, &values, k, walk);
                assert!(walks.get() <= 12, "{name} {k}: {} walks", walks.get());
            }
        }
    }

    #[test]
    fn a_sum_among_very_many_is_at_its_place() {
        for (name, values) in large() {
            let n = values.len();
            for k in [1, n, n * n / 3, n * n / 2, n * n] {
                let found = kth_difference(&values, &values, k);
                let [smaller, at_most] = [found.next_down(), found]
                    .map(|limit| differences_from(&values, &values, limit).count);
                assert!(smaller < k && k <= at_most, "{name} {k}: {smaller} to {at_most}");
            }
            let one = [values[n / 2]];
            let all = sorted([&values[..], &values].concat());
            assert_eq!(kth_difference(&one, &all, 2), values[0] - one[0], "{name}: against one");
        }
    }
}
