//! The far end of two samples: the values that a median does not see.
//!
//! Stalls of a few operations in a thousand leave medians alone. A percentile far out has an
//! interval by order statistics (David & Nagaraja, "Order Statistics", 3rd ed., 7.1), and two
//! samples differ there if one has more than its share of the values beyond the percentile of
//! both together: the hypergeometric test (Fisher's exact one) of that share.

use statrs::function::{beta::beta_reg, gamma::ln_gamma};

use crate::{Confidence, Direction, Interval, Sample};

/// The percentiles that are looked at, as far as the samples reach.
const PERCENTILES: [f64; 2] = [99.0, 99.9];
/// Values beyond a percentile at least, below which it is the largest value under another name.
const FEWEST_BEYOND: f64 = 3.0;

/// Two samples at one percentile of their bad end: the high one where lower is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extreme {
    /// The percentile, counted from the good end: 99, 99.9.
    pub percentile: f64,
    /// Those of the baseline and the candidate.
    pub values: [f64; 2],
    /// Their 95 % intervals by order statistics, where they do not go beyond the last value.
    pub intervals: [Option<Interval>; 2],
    /// The p-value, two-sided, of that both have as many values beyond the percentile of all,
    /// adjusted for the percentiles looked at.
    pub p: f64,
}

impl Extreme {
    /// The candidate's change in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        let [baseline, candidate] = self.values;
        100.0 * (candidate / baseline - 1.0)
    }

    /// By how many percent the bad end of the candidate's interval is from that of the baseline's;
    /// 0 where one has none.
    #[must_use]
    pub fn reach_percent(&self, direction: Direction) -> f64 {
        let end = |interval: Interval| match direction {
            Direction::LowerIsBetter => interval.hi,
            Direction::HigherIsBetter => interval.lo,
        };
        match self.intervals {
            [Some(baseline), Some(candidate)] => 100.0 * (end(candidate) / end(baseline) - 1.0),
            _ => 0.0,
        }
    }

    /// Whether chance alone would make them so in less than one of twenty comparisons.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.p < Confidence::P95.alpha()
    }
}

/// The percentiles of the bad end for which both samples have enough values: 300 for p99, 3,000
/// for p99.9.
///
/// `worth` is the share of the values that are independent, 0 to 1: values that resemble their
/// neighbours are fewer pieces of evidence.
#[must_use]
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
        let p = share_p(samples, percentile, direction, worth) * PERCENTILES.len() as f64;
        Extreme {
            percentile,
            values: samples.map(|sample| value(sample, percentile, direction)),
            intervals: samples.map(|sample| interval(sample, percentile, direction)),
            p: p.min(1.0),
        }
    };
    PERCENTILES.into_iter().filter(is_reached).map(extreme).collect()
}

/// A percentile from the good end.
fn value(sample: &Sample, percentile: f64, direction: Direction) -> f64 {
    match direction {
        Direction::LowerIsBetter => sample.percentile(percentile),
        Direction::HigherIsBetter => sample.percentile(100.0 - percentile),
    }
}

/// Its interval; `None` where that goes beyond the last value.
fn interval(sample: &Sample, percentile: f64, direction: Direction) -> Option<Interval> {
    let (n, q) = (sample.len(), percentile / 100.0);
    let half = Confidence::P95.alpha() / 2.0;
    // The k-th smallest lies above the percentile with the chance that fewer than k lie below it.
    let above = |k: usize| binomial_below(k, n, q);
    let middle = crate::whole::floor(n as f64 * q).clamp(1, n);
    let lo = (1..=middle).rev().find(|&k| above(k) <= half)?;
    let hi = (middle..=n).find(|&k| above(k) >= 1.0 - half)?;
    let sorted = sample.sorted();
    Some(match direction {
        Direction::LowerIsBetter => Interval { lo: sorted[lo - 1], hi: sorted[hi - 1] },
        Direction::HigherIsBetter => Interval { lo: sorted[n - hi], hi: sorted[n - lo] },
    })
}

/// P(fewer than `k` of `n` with the chance `q` each).
fn binomial_below(k: usize, n: usize, q: f64) -> f64 {
    match k {
        0 => 0.0,
        _ if k > n => 1.0,
        _ => beta_reg((n - k + 1) as f64, k as f64, 1.0 - q),
    }
}

/// The values of both samples beyond the percentile of all, those equal to it included.
fn beyond(samples: [&Sample; 2], percentile: f64, direction: Direction) -> [usize; 2] {
    let all = samples[0].len() + samples[1].len();
    let first = crate::whole::floor(all as f64 * percentile / 100.0).min(all - 1);
    // How far a value is from the good end, and the n-th farthest of a sample.
    let bad = |value: f64| match direction {
        Direction::LowerIsBetter => value,
        Direction::HigherIsBetter => -value,
    };
    let farthest = |sample: &Sample, n: usize| match direction {
        Direction::LowerIsBetter => sample.sorted().iter().nth_back(n).copied(),
        Direction::HigherIsBetter => sample.sorted().get(n).copied(),
    };
    // Few are out there, and each sample has its own in order: no sorting of all.
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

/// The two-sided p-value of the candidate's share of the values beyond the percentile of all.
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

    /// Exponential values about 100, of which one in `rare` is `times` as far out.
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
    fn the_test_of_the_share_is_fishers_exact_one() {
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
    fn intervals_cover_the_percentile_as_often_as_they_say() {
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
