//! The tail of two samples, which a median does not show.
//!
//! Stalls of a few operations in a thousand do not move the median. A percentile far out has an
//! interval from order statistics (David & Nagaraja, "Order Statistics", 3rd ed., 7.1). Two samples
//! differ there if one has more than its share of the values beyond the percentile of the combined
//! sample; that share is tested by the hypergeometric test (Fisher's exact test).

use statrs::function::{beta::beta_reg, gamma::ln_gamma};

use crate::{Confidence, Direction, Interval, Sample};

/// The percentiles examined, if the samples are large enough.
const PERCENTILES: [f64; 2] = [99.0, 99.9];
/// The multiples of a percentile's share of values beyond it at which the shares are tested. Values
/// that one sample has a few of and the other many may reach further in than the percentile itself;
/// stalls of one sample alone may be half of the values beyond it, and ordinary ones of the other the
/// other half.
const WIDTHS: [f64; 3] = [0.5, 1.0, 2.0];
/// The minimum number of values beyond a percentile; with fewer it is practically the largest value.
const FEWEST_BEYOND: f64 = 3.0;

/// Two samples at one percentile of their worse tail, which is the upper one if lower is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extreme {
    /// The percentile, counted from the good end: 99 or 99.9.
    pub percentile: f64,
    /// The values of baseline and candidate at the percentile.
    pub values: [f64; 2],
    /// The 95 % intervals of the two values, from order statistics; `None` if the interval would
    /// extend beyond the last value.
    pub intervals: [Option<Interval>; 2],
    /// The two-sided p-value of the hypothesis that both have their share of the values beyond the
    /// combined percentile, of half and of double their number; adjusted for the number of tests.
    pub p: f64,
}

impl Extreme {
    /// Returns the candidate's change in percent of the baseline's magnitude.
    pub fn percent(&self) -> f64 {
        percent(self.values)
    }

    /// Returns the larger of two changes in percent: that of the percentile, and that of the bad ends
    /// of the intervals if both have one.
    pub fn reach_percent(&self, direction: Direction) -> f64 {
        let end = |interval: Interval| match direction {
            Direction::LowerIsBetter => interval.hi,
            Direction::HigherIsBetter => interval.lo,
        };
        let ends = match self.intervals {
            [Some(baseline), Some(candidate)] => percent([end(baseline), end(candidate)]),
            _ => 0.0,
        };
        if ends.abs() > self.percent().abs() { ends } else { self.percent() }
    }

    /// Returns true if chance alone would produce this difference in less than one comparison in
    /// twenty.
    pub fn is_shown(&self) -> bool {
        self.p < Confidence::P95.alpha()
    }
}

/// Returns the change in percent of the baseline's magnitude: positive where the candidate is higher,
/// also of values below zero.
fn percent([baseline, candidate]: [f64; 2]) -> f64 {
    100.0 * (candidate / baseline - 1.0) * baseline.signum()
}

/// Returns the percentiles of the worse tail for which both samples have enough values: 300 for
/// p99, 3,000 for p99.9.
///
/// `worth` is the share of the values that are independent, 0 to 1: values that resemble their
/// neighbours carry less information.
pub fn extremes(
    baseline: &Sample,
    candidate: &Sample,
    direction: Direction,
    worth: f64,
) -> Vec<Extreme> {
    let samples = [baseline, candidate];
    let fewest = baseline.len().min(candidate.len()) as f64;
    let is_reached =
        |percentile: &f64| (fewest * (100.0 - percentile) / 100.0).round() >= FEWEST_BEYOND;
    let extreme = |percentile| {
        let tested = WIDTHS.map(|width| 100.0 - width * (100.0 - percentile));
        let p = tested.map(|percentile| share_p(samples, percentile, direction, worth));
        let p = p.into_iter().fold(1.0, f64::min) * (PERCENTILES.len() * WIDTHS.len()) as f64;
        Extreme {
            percentile,
            values: samples.map(|sample| value(sample, percentile, direction)),
            intervals: samples.map(|sample| interval(sample, percentile, direction)),
            p: p.min(1.0),
        }
    };
    PERCENTILES.into_iter().filter(is_reached).map(extreme).collect()
}

/// Returns the percentile of a sample, counted from the good end.
fn value(sample: &Sample, percentile: f64, direction: Direction) -> f64 {
    match direction {
        Direction::LowerIsBetter => sample.percentile(percentile),
        Direction::HigherIsBetter => sample.percentile(100.0 - percentile),
    }
}

/// Returns the interval of the percentile; `None` if it would extend beyond the last value.
fn interval(sample: &Sample, percentile: f64, direction: Direction) -> Option<Interval> {
    let (n, q) = (sample.len(), percentile / 100.0);
    let half = Confidence::P95.alpha() / 2.0;
    // The k-th smallest value is above the percentile if fewer than k values are below it.
    let above = |k: usize| binomial_below(k, n, q);
    let middle = crate::whole::floor(n as f64 * q).clamp(1, n);
    let lo = first(1, middle + 1, |k| above(k) > half) - 1;
    let hi = first(middle, n + 1, |k| above(k) >= 1.0 - half);
    if lo == 0 || hi > n {
        return None;
    }
    let sorted = sample.sorted();
    Some(match direction {
        Direction::LowerIsBetter => Interval { lo: sorted[lo - 1], hi: sorted[hi - 1] },
        Direction::HigherIsBetter => Interval { lo: sorted[n - hi], hi: sorted[n - lo] },
    })
}

/// Returns the first number of a range from which a condition holds, or the end of the range.
fn first(mut from: usize, mut end: usize, holds: impl Fn(usize) -> bool) -> usize {
    while from < end {
        let middle = from.midpoint(end);
        (from, end) = if holds(middle) { (from, middle) } else { (middle + 1, end) };
    }
    from
}

/// Returns the probability of fewer than `k` successes in `n` trials of probability `q` each.
pub(crate) fn binomial_below(k: usize, n: usize, q: f64) -> f64 {
    match k {
        0 => 0.0,
        _ if k > n => 1.0,
        _ => beta_reg((n - k + 1) as f64, k as f64, 1.0 - q),
    }
}

/// Counts the values of each sample beyond the combined percentile, including those equal to it.
fn beyond(samples: [&Sample; 2], percentile: f64, direction: Direction) -> [usize; 2] {
    let all = samples[0].len() + samples[1].len();
    let first = crate::whole::floor(all as f64 * percentile / 100.0).min(all - 1);
    // The distance of a value from the good end, and the n-th farthest value of a sample.
    let bad = |value: f64| match direction {
        Direction::LowerIsBetter => value,
        Direction::HigherIsBetter => -value,
    };
    let farthest = |sample: &Sample, n: usize| match direction {
        Direction::LowerIsBetter => sample.sorted().iter().nth_back(n).copied(),
        Direction::HigherIsBetter => sample.sorted().get(n).copied(),
    };
    // Few values are that far out, and each sample is already sorted, so no sort of the combined
    // sample is needed.
    let (mut taken, mut threshold) = ([0; 2], f64::INFINITY);
    for _ in first..all {
        let next =
            [0, 1].map(|side| farthest(samples[side], taken[side]).map_or(f64::NEG_INFINITY, bad));
        let side = usize::from(next[1] > next[0]);
        threshold = next[side];
        taken[side] += 1;
    }
    [0, 1].map(|side| {
        let equal = (taken[side]..).take_while(|&n| {
            farthest(samples[side], n).is_some_and(|value| bad(value) >= threshold)
        });
        taken[side] + equal.count()
    })
}

/// Returns the two-sided p-value of the candidate's share of the values beyond the percentile of
/// all.
fn share_p(samples: [&Sample; 2], percentile: f64, direction: Direction, worth: f64) -> f64 {
    let beyond = beyond(samples, percentile, direction);
    let counts = [0, 1].map(|side| {
        let all = samples[side].len();
        [beyond[side], all].map(|count| (count as f64 * worth.clamp(0.0, 1.0)).round())
    });
    let [[beyond_a, n_a], [beyond_b, n_b]] = counts;
    let (all, beyond) = (n_a + n_b, beyond_a + beyond_b);
    let chance =
        |b: f64| (ln_choose(n_b, b) + ln_choose(n_a, beyond - b) - ln_choose(all, beyond)).exp();
    let sum = |from: f64, to: f64| {
        let counts = std::iter::successors(Some(from), |count| Some(count + 1.0));
        counts.take_while(|&count| count <= to).map(chance).sum::<f64>()
    };
    let (least, most) = ((beyond - n_a).max(0.0), beyond.min(n_b));
    (2.0 * sum(least, beyond_b).min(sum(beyond_b, most))).min(1.0)
}

fn ln_choose(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Returns exponential values with mean 100, of which one in `rare` is `times` larger.
    fn sample(rng: &mut Rng, n: usize, rare: f64, times: f64) -> Sample {
        let value = |rng: &mut Rng| {
            let far = -rng.uniform().max(1e-300).ln();
            100.0 + if rng.uniform() < rare { times * far } else { far }
        };
        Sample::new((0..n).map(|_| value(rng)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn samples_too_small_for_an_interval_have_no_percentile() {
        let mut rng = Rng::new(1);
        let mut of = |n| {
            let (a, b) = (sample(&mut rng, n, 0.0, 1.0), sample(&mut rng, n, 0.0, 1.0));
            extremes(&a, &b, Direction::LowerIsBetter, 1.0).len()
        };
        assert_eq!([of(200), of(1000), of(6000)], [0, 1, 2]);
    }

    #[test]
    fn the_test_of_the_share_is_fishers_exact_test() {
        // 1 of 4 against 3 of 4 beyond: the hypergeometric chances of 3 and 4 are 16/70 and 1/70.
        let a = Sample::new(vec![1.0, 2.0, 3.0, 10.0]).unwrap();
        let b = Sample::new(vec![4.0, 11.0, 12.0, 13.0]).unwrap();
        let p = share_p([&a, &b], 50.0, Direction::LowerIsBetter, 1.0);
        assert!((p - 2.0 * 17.0 / 70.0).abs() < 1e-9, "{p}");
        let mirrored = [&a, &b]
            .map(|s| Sample::new(s.values().iter().map(|v| -v).collect::<Vec<_>>()).unwrap());
        let p = share_p([&mirrored[0], &mirrored[1]], 50.0, Direction::HigherIsBetter, 1.0);
        assert!((p - 2.0 * 17.0 / 70.0).abs() < 1e-9, "{p}");
    }

    #[test]
    fn intervals_cover_the_percentile_at_their_nominal_rate() {
        let mut rng = Rng::new(3);
        // The 99th percentile of the exponential distribution.
        let truth = 100.0 - 0.01_f64.ln();
        let covered = (0..400)
            .filter(|_| {
                let one = sample(&mut rng, 2000, 0.0, 1.0);
                let found = interval(&one, 99.0, Direction::LowerIsBetter).unwrap();
                found.lo <= truth && truth <= found.hi
            })
            .count();
        assert!((372..=400).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn forty_stalls_against_six_are_found_though_both_have_the_longest() {
        let mut rng = Rng::new(9);
        // The stalls of both are equally long.
        let mut with = |stalls: usize| {
            let value = |n: usize| match n {
                n if n < stalls => 1000.0 + 100.0 * rng.uniform(),
                _ => 100.0 + rng.uniform(),
            };
            Sample::new((0..10_000).map(value).collect::<Vec<_>>()).unwrap()
        };
        let (six, forty, also_six) = (with(6), with(40), with(6));
        let last = |a, b| *extremes(a, b, Direction::LowerIsBetter, 1.0).last().unwrap();
        let found = last(&six, &forty);
        assert!(found.is_shown() && found.percent() > 800.0, "{found:?}");
        assert!(!last(&six, &also_six).is_shown());
    }

    #[test]
    fn stalls_of_one_sample_are_found_among_ordinary_far_values_of_the_other() {
        let mut rng = Rng::new(11);
        let mut with = |stalls: usize, far: usize| {
            let value = |n: usize| match n {
                n if n < stalls => 210.0 + 10.0 * rng.uniform(),
                n if n < stalls + far => 106.0 + 6.0 * rng.uniform(),
                _ => 100.0 + rng.uniform(),
            };
            Sample::new((0..10_000).map(value).collect::<Vec<_>>()).unwrap()
        };
        let (ordinary, stalled, also_ordinary) = (with(0, 26), with(11, 15), with(0, 26));
        let last = |a, b| *extremes(a, b, Direction::LowerIsBetter, 1.0).last().unwrap();
        let found = last(&ordinary, &stalled);
        assert!(found.is_shown() && found.percent() > 80.0, "{found:?}");
        assert!(!last(&ordinary, &also_ordinary).is_shown());
    }

    #[test]
    fn a_percentile_that_moves_more_than_the_end_of_its_interval_is_the_reach() {
        let extreme = Extreme {
            percentile: 99.9,
            values: [100.0, 2000.0],
            intervals: [[90.0, 2500.0], [1500.0, 2700.0]].map(|[lo, hi]| Some(Interval { lo, hi })),
            p: 0.2,
        };
        assert_eq!(extreme.reach_percent(Direction::LowerIsBetter), 1900.0);
    }

    #[test]
    fn a_tail_twice_as_long_is_found_in_ten_thousand_values_and_equal_ones_are_not() {
        let mut rng = Rng::new(5);
        let mut found = |times: f64| {
            let differs = |_: &usize| {
                let a = sample(&mut rng, 10_000, 0.01, 20.0);
                let b = sample(&mut rng, 10_000, 0.01, 20.0 * times);
                extremes(&a, &b, Direction::LowerIsBetter, 1.0).iter().any(|e| e.p < 0.05)
            };
            (0..100_usize).filter(differs).count()
        };
        let (doubled, equal) = (found(2.0), found(1.0));
        assert!(doubled >= 80 && equal <= 8, "{doubled} of 100 found, {equal} of 100 falsely");
    }
}
