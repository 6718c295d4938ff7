//! The bootstrap interval of any statistic, bias-corrected and accelerated (BCa).
//!
//! Efron & Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 14. The interval is
//! approximate: its stated coverage is nominal, and with few values (below about 20) the true
//! coverage is lower.

use std::num::NonZeroUsize;

use crate::distribution::{normal_cdf, normal_quantile};
use crate::{Confidence, Estimate, Interval, Rng, Sample, quantile};

/// Parameters of the resampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resampling {
    /// Number of resamples; 0 counts as 1. Resamples for which the statistic is NaN are sorted
    /// last.
    pub resamples: usize,
    /// Seed of the generator.
    pub seed: u64,
    /// Confidence of the interval.
    pub confidence: Confidence,
}

impl Resampling {
    /// Creates the default of 4,999 resamples at 95 % confidence, with a seed.
    pub fn new(seed: u64) -> Self {
        Self { resamples: 4_999, seed, confidence: Confidence::P95 }
    }
}

/// Returns the bias-corrected and accelerated interval of a statistic of one sample.
pub fn bootstrap_bca(
    sample: &Sample,
    statistic: impl Fn(&[f64]) -> f64,
    resampling: &Resampling,
) -> Estimate {
    let original = sample.values();
    let value = statistic(original);
    let replicates = replicates(original, &statistic, resampling);
    let bias = bias_correction(value, &replicates);
    let acceleration = acceleration(original, &statistic);
    let adjusted = |p: f64| {
        let z = bias + normal_quantile(p);
        // If one value outweighs all others, the correction has a pole; its limit is the end.
        let stretch = (1.0 - acceleration * z).max(0.0);
        normal_cdf(bias + z / stretch)
    };
    let half = resampling.confidence.alpha() / 2.0;
    estimate(value, &replicates, (adjusted(half), adjusted(1.0 - half)), resampling)
}

fn estimate(
    value: f64,
    replicates: &[f64],
    (low, high): (f64, f64),
    resampling: &Resampling,
) -> Estimate {
    let last = (replicates.len() - 1) as f64;
    let end = |p: f64| quantile::at(replicates, p * last);
    let interval = Interval { lo: end(low), hi: end(high) };
    Estimate { value, interval, coverage: resampling.confidence.get() }
}

/// Returns the statistic of each resample, smallest first.
fn replicates(
    original: &[f64],
    statistic: &impl Fn(&[f64]) -> f64,
    resampling: &Resampling,
) -> Vec<f64> {
    let mut rng = Rng::new(resampling.seed);
    let mut drawn = original.to_vec();
    let draw = |_| {
        redraw(&mut drawn, original, &mut rng);
        statistic(&drawn)
    };
    let mut values: Vec<f64> = (0..resampling.resamples.max(1)).map(draw).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Fills `into` with values of `from`, drawn with replacement.
fn redraw(into: &mut [f64], from: &[f64], rng: &mut Rng) {
    let Some(len) = NonZeroUsize::new(from.len()) else {
        return;
    };
    for slot in into {
        *slot = from[rng.index(len)];
    }
}

/// Returns the normal quantile of the share of replicates below the value, with ties counted half.
/// The share is kept within the resolution of the number of replicates, so that the result is
/// finite.
fn bias_correction(value: f64, replicates: &[f64]) -> f64 {
    let below = replicates.partition_point(|replicate| *replicate < value) as f64;
    let at_most = replicates.partition_point(|replicate| *replicate <= value) as f64;
    let count = replicates.len() as f64;
    let share = (below + at_most) / (2.0 * count);
    normal_quantile(share.clamp(0.5 / count, 1.0 - 0.5 / count))
}

/// Returns the skewness of the jackknife influences, divided by six (Davison & Hinkley, *Bootstrap
/// Methods and their Application*, 1997, equation 5.31).
fn acceleration(original: &[f64], statistic: &impl Fn(&[f64]) -> f64) -> f64 {
    if original.len() < 2 {
        return 0.0;
    }
    let n = original.len() as f64;
    let without = |index| {
        let mut reduced = original.to_vec();
        reduced.remove(index);
        statistic(&reduced)
    };
    let left_out: Vec<f64> = (0..original.len()).map(without).collect();
    let mean = left_out.iter().sum::<f64>() / n;
    let (mut cubes, mut squares) = (0.0, 0.0);
    for value in left_out {
        let influence = (n - 1.0) * (mean - value) / n;
        cubes += influence.powi(3);
        squares += influence.powi(2);
    }
    if squares == 0.0 { 0.0 } else { cubes / (6.0 * squares.powf(1.5)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn skewed() -> Sample {
        Sample::new((1..=25).map(|i| (f64::from(i) / 6.0).exp()).collect::<Vec<_>>()).unwrap()
    }

    /// Returns the uncorrected interval of the mean.
    fn percentile(sample: &Sample, resampling: &Resampling) -> Interval {
        let replicates = replicates(sample.values(), &mean, resampling);
        estimate(sample.mean(), &replicates, (0.025, 0.975), resampling).interval
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_another_seed_another() {
        let of = |seed| bootstrap_bca(&skewed(), mean, &Resampling::new(seed));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn bca_moves_the_interval_towards_the_long_tail() {
        let plain = percentile(&skewed(), &Resampling::new(1));
        let bca = bootstrap_bca(&skewed(), mean, &Resampling::new(1)).interval;
        assert!(bca.lo > plain.lo && bca.hi > plain.hi, "{bca:?} {plain:?}");
    }

    #[test]
    fn equal_values_give_a_point() {
        let constant = Sample::new(vec![4.0; 8]).unwrap();
        let estimate = bootstrap_bca(&constant, mean, &Resampling::new(5));
        assert_eq!(estimate.interval, Interval { lo: 4.0, hi: 4.0 });
    }

    #[test]
    fn one_value_that_outweighs_all_others_reaches_the_end_and_nan_is_passed_on() {
        let mut values = vec![1.0; 2_000];
        values.iter_mut().enumerate().for_each(|(i, value)| *value += (i % 7) as f64);
        values[0] = 1e9;
        let few = Resampling { resamples: 99, ..Resampling::new(1) };
        let wild = Sample::new(values).unwrap();
        let found = bootstrap_bca(&wild, mean, &few);
        let plain = percentile(&wild, &few);
        assert!(found.interval.hi > plain.hi, "{found:?} {plain:?}");
        assert!(bootstrap_bca(&skewed(), |_| f64::NAN, &few).interval.lo.is_nan());
    }

    #[test]
    fn no_resamples_count_as_one() {
        let one = Resampling { resamples: 0, ..Resampling::new(1) };
        let estimate = bootstrap_bca(&skewed(), mean, &one);
        assert_eq!(estimate.interval.width(), 0.0);
    }
}
