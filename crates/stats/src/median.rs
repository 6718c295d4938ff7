//! Confidence intervals of the median of independent values, from order statistics alone.

use crate::{
    Confidence, Error, Estimate, Interval, Sample, distribution::fair_binomial_cdf, whole,
};

/// Returns the median with its distribution-free interval: the order statistics `l` and `n + 1 - l`
/// with the largest `l` for which the exact binomial coverage is at least `confidence`.
///
/// Assumes only that the values are independent (Conover, *Practical Nonparametric Statistics*, 3rd
/// ed., section 3.2). `coverage` is the one achieved, which for small n is well above the requested
/// one.
///
/// # Errors
/// [`Error::NotAttainable`] if even the whole range covers less: n < 6 at 95 %.
pub fn median_interval(sample: &Sample, confidence: Confidence) -> Result<Estimate, Error> {
    let depth = deepest(sample.len(), confidence)?;
    let sorted = sample.sorted();
    let interval = Interval { lo: sorted[depth - 1], hi: sorted[sorted.len() - depth] };
    Ok(Estimate { value: sample.median(), interval, coverage: coverage(depth, sample.len()) })
}

/// Returns the middle of the values, or the mean of the two middle ones; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let below = sorted.len().checked_sub(1)? / 2;
    Some(f64::midpoint(sorted[below], sorted[sorted.len() / 2]))
}

/// Returns the smallest number of independent values with a range that covers the median at this
/// confidence.
pub(crate) fn fewest_values(confidence: Confidence) -> usize {
    whole::ceil(1.0 - confidence.alpha().log2())
}

/// Returns the probability that order statistics `depth` and `n + 1 - depth` enclose the median.
fn coverage(depth: usize, n: usize) -> f64 {
    1.0 - 2.0 * fair_binomial_cdf(depth - 1, n)
}

/// Returns the largest depth with a coverage of at least the confidence.
fn deepest(n: usize, confidence: Confidence) -> Result<usize, Error> {
    let enough = |depth: usize| coverage(depth, n) >= confidence.get();
    if n < 2 || !enough(1) {
        let needed = fewest_values(confidence).max(n + 1);
        return Err(Error::NotAttainable { got: n, needed, confidence: confidence.get() });
    }
    let (mut deep_enough, mut too_deep) = (1, n / 2 + 1);
    while too_deep - deep_enough > 1 {
        let middle = deep_enough.midpoint(too_deep);
        if enough(middle) {
            deep_enough = middle;
        } else {
            too_deep = middle;
        }
    }
    Ok(deep_enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(n: usize) -> Sample {
        Sample::new((1..=n).map(|i| i as f64).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn twenty_values_give_the_sixth_and_fifteenth_as_the_tables_say() {
        let estimate = median_interval(&counting(20), Confidence::P95).unwrap();
        assert_eq!(estimate.interval, Interval { lo: 6.0, hi: 15.0 });
        assert!((estimate.coverage - 0.958_610_534_667_968_8).abs() < 1e-12);
    }

    #[test]
    fn five_values_cannot_give_95_percent_and_six_can() {
        let refused = median_interval(&counting(5), Confidence::P95);
        assert_eq!(refused, Err(Error::NotAttainable { got: 5, needed: 6, confidence: 0.95 }));
        let estimate = median_interval(&counting(6), Confidence::P95).unwrap();
        assert_eq!(estimate.interval, Interval { lo: 1.0, hi: 6.0 });
        assert!((estimate.coverage - 0.968_75).abs() < 1e-12);
    }

    #[test]
    fn one_value_is_never_enough() {
        let low = Confidence::new(0.01).unwrap();
        assert!(median_interval(&counting(1), low).is_err());
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two_in_any_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }
}
