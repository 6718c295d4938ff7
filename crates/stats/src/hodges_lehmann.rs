//! Hodges-Lehmann estimates of a centre and of a shift, with their distribution-free intervals.
//!
//! Hodges & Lehmann, "Estimates of location based on rank tests", Ann. Math. Stat. 34 (1963);
//! the intervals are Tukey's and Moses' (Hollander & Wolfe, *Nonparametric Statistical
//! Methods*, 2nd ed., sections 3.3 and 4.3). With ties their coverage is at least the one given.

use crate::distribution::{normal_cdf, normal_quantile};
use crate::pairwise::{kth_difference, kth_walsh_average, middle_difference, middle_walsh_average};
use crate::{Confidence, Error, Estimate, Interval, Sample};
use crate::{attainable, both, rank_sum, signed_rank, whole};

/// Returns the median of all Walsh averages `(x_i + x_j) / 2`, `i <= j`: for log ratios of pairs,
/// it is the effect of a treatment.
pub fn hodges_lehmann(sample: &Sample) -> f64 {
    middle_walsh_average(sample.sorted())
}

/// Returns the [`hodges_lehmann`] estimate with the interval of the signed-rank test: exact for up
/// to 50 values, by the normal approximation beyond.
///
/// # Errors
/// [`Error::NotAttainable`] with too few values: n < 6 at 95 %.
pub fn hodges_lehmann_interval(sample: &Sample, confidence: Confidence) -> Result<Estimate, Error> {
    let n = sample.len();
    let tail = if n <= signed_rank::EXACT_PAIRS {
        let ranks: Vec<usize> = (1..=n).collect();
        exact_tail(&signed_rank::null_distribution(&ranks), confidence)
    } else {
        let n = n as f64;
        normal_tail(n * (n + 1.0) / 4.0, signed_rank::variance(n, 0.0), confidence)
    };
    let (skipped, coverage) = tail.ok_or_else(|| Error::NotAttainable {
        got: n,
        needed: attainable::least_pairs(confidence.alpha()),
        confidence: confidence.get(),
    })?;
    let averages = walsh_averages(sample);
    let interval = Interval {
        lo: kth_walsh_average(sample.sorted(), skipped),
        hi: kth_walsh_average(sample.sorted(), averages + 1 - skipped),
    };
    Ok(Estimate { value: hodges_lehmann(sample), interval, coverage })
}

/// Returns the median of all differences `candidate - baseline`: the amount by which the candidate
/// is higher.
pub fn shift(baseline: &Sample, candidate: &Sample) -> f64 {
    middle_difference(baseline.sorted(), candidate.sorted())
}

/// Returns the [`shift`] with the interval of the rank-sum test: exact for up to 60 values in
/// total, by the normal approximation beyond.
///
/// # Errors
/// [`Error::NotAttainable`] with too few values: below 4 against 4 at 95 %.
pub fn shift_interval(
    baseline: &Sample,
    candidate: &Sample,
    confidence: Confidence,
) -> Result<Estimate, Error> {
    let (first, second) = (baseline.len(), candidate.len());
    let tail = if first + second <= rank_sum::EXACT_VALUES {
        exact_tail(&u_distribution(first, second), confidence)
    } else {
        let (first, second) = (first as f64, second as f64);
        normal_tail(first * second / 2.0, rank_sum::variance(first, second, 0.0), confidence)
    };
    let (skipped, coverage) = tail.ok_or_else(|| Error::NotAttainable {
        got: first.min(second),
        needed: attainable::least_values_a_side(confidence.alpha()).max(first.min(second) + 1),
        confidence: confidence.get(),
    })?;
    let kth = |k| kth_difference(baseline.sorted(), candidate.sorted(), k);
    let values = first + second;
    let ends = || [skipped, first * second + 1 - skipped].map(kth);
    let ([lo, hi], value) = both(values, ends, || shift(baseline, candidate));
    Ok(Estimate { value, interval: Interval { lo, hi }, coverage })
}

/// Returns `candidate - baseline` for each pair in the order taken.
///
/// # Errors
/// [`Error::LengthsDiffer`] unless both have the same length, [`Error::NotFinite`] if a difference
/// overflows.
pub fn paired_differences(baseline: &Sample, candidate: &Sample) -> Result<Sample, Error> {
    if baseline.len() != candidate.len() {
        return Err(Error::LengthsDiffer { left: baseline.len(), right: candidate.len() });
    }
    let pairs = baseline.values().iter().zip(candidate.values());
    Sample::new(pairs.map(|(baseline, candidate)| candidate - baseline).collect::<Vec<_>>())
}

/// Converts a log ratio to a change in percent: 0.0953 is 10 %.
pub fn percent_change(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

fn walsh_averages(sample: &Sample) -> usize {
    sample.len() * (sample.len() + 1) / 2
}

/// Returns the null distribution of U without ties.
fn u_distribution(first: usize, second: usize) -> Vec<f64> {
    let ranks: Vec<usize> = (1..=first + second).collect();
    let mut chances = rank_sum::null_distribution(&ranks, second);
    chances.drain(..second * (second + 1) / 2);
    chances
}

/// Returns the largest `c + 1` with `P(statistic <= c) <= alpha / 2`, and the coverage it leaves.
fn exact_tail(null: &[f64], confidence: Confidence) -> Option<(usize, f64)> {
    // The sums of probabilities carry rounding errors: 0.025 itself must count as reached.
    let allowed = confidence.alpha() / 2.0 * (1.0 + 1e-12);
    let mut below = 0.0;
    let mut found = None;
    for (index, chance) in null.iter().enumerate() {
        below += chance;
        if below > allowed {
            break;
        }
        found = Some((index + 1, 1.0 - 2.0 * below));
    }
    found
}

/// Returns what [`exact_tail`] does, by the normal approximation with continuity correction.
fn normal_tail(mean: f64, variance: f64, confidence: Confidence) -> Option<(usize, f64)> {
    let deviation = variance.sqrt();
    let distance = normal_quantile(1.0 - confidence.alpha() / 2.0) * deviation;
    let skipped = whole::floor(mean + 0.5 - distance);
    let coverage = 1.0 - 2.0 * normal_cdf((skipped as f64 - 0.5 - mean) / deviation);
    (skipped > 0).then_some((skipped, coverage))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: impl IntoIterator<Item = i32>) -> Sample {
        Sample::new(values.into_iter().map(f64::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_estimate_is_the_median_of_walsh_averages() {
        // 1, 1.5, 2, 3, 3.5, 5 (of 1, 2, 5): the middle of 2 and 3.
        assert_eq!(hodges_lehmann(&sample([5, 1, 2])), 2.5);
        assert_eq!(hodges_lehmann(&sample([7])), 7.0);
    }

    #[test]
    fn the_shift_is_the_median_of_differences() {
        assert_eq!(shift(&sample([1, 2, 3]), &sample([11, 12, 13])), 10.0);
        assert_eq!(shift(&sample([11, 12, 13]), &sample([1, 2])), -10.5);
    }

    #[test]
    fn twenty_differences_skip_the_tabulated_fifty_two_averages() {
        // Hollander & Wolfe, table A.4: P(T+ <= 52) = 0.024 for n = 20.
        let ranks: Vec<usize> = (1..=20).collect();
        let null = signed_rank::null_distribution(&ranks);
        assert_eq!(exact_tail(&null, Confidence::P95).unwrap().0, 53);
        let estimate = hodges_lehmann_interval(&sample(1..=20), Confidence::P95).unwrap();
        assert_eq!(estimate.value, 10.5);
        assert_eq!(estimate.interval, Interval { lo: 7.5, hi: 13.5 });
        assert!(estimate.coverage > 0.95 && estimate.coverage < 0.96);
    }

    #[test]
    fn five_pairs_or_three_against_three_have_no_95_percent_interval() {
        let refused = hodges_lehmann_interval(&sample(1..=5), Confidence::P95);
        assert!(matches!(refused, Err(Error::NotAttainable { got: 5, needed: 6, .. })));
        let refused = shift_interval(&sample(1..=3), &sample(1..=3), Confidence::P95);
        assert!(matches!(refused, Err(Error::NotAttainable { got: 3, needed: 4, .. })));
        assert!(shift_interval(&sample(1..=4), &sample(1..=4), Confidence::P95).is_ok());
        assert!(hodges_lehmann_interval(&sample(1..=6), Confidence::P95).is_ok());
    }

    #[test]
    fn the_normal_intervals_continue_the_exact_ones() {
        let width = |n: i32| {
            let found = hodges_lehmann_interval(&sample(1..=n), Confidence::P95).unwrap();
            found.interval.width() / f64::from(n)
        };
        assert!((width(50) - width(51)).abs() < 0.01);
        let width = |n: i32| {
            let found = shift_interval(&sample(1..=30), &sample(1..=n), Confidence::P95).unwrap();
            assert!((found.coverage - 0.95).abs() < 0.005, "{found:?}");
            found.interval.width()
        };
        assert!((width(30) - width(31)).abs() <= 1.0);
    }

    #[test]
    fn samples_of_different_length_are_not_paired() {
        let refused = paired_differences(&sample([1, 2]), &sample([1]));
        assert_eq!(refused, Err(Error::LengthsDiffer { left: 2, right: 1 }));
        let differences = paired_differences(&sample([5, 1]), &sample([2, 4])).unwrap();
        assert_eq!(differences.values(), [-3.0, 3.0]);
    }

    #[test]
    fn a_log_ratio_is_converted_to_percent() {
        assert!((percent_change(1.1_f64.ln()) - 10.0).abs() < 1e-12);
        assert!((percent_change(0.5_f64.ln()) + 50.0).abs() < 1e-12);
    }
}
