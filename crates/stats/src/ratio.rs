//! The ratio of two means with Fieller's interval.
//!
//! Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16 (1954), with Welch's
//! degrees of freedom (Biometrika 34, 1947) where the samples are independent. Assumes that the
//! means are about normal; the stated coverage is nominal.

use crate::distribution::student_quantile;
use crate::{Confidence, Error, Estimate, Interval, Sample};

/// Returns `mean(candidate) / mean(baseline)` of independent samples with its interval.
///
/// # Errors
/// [`Error::NotAttainable`] with fewer than two values on a side, [`Error::Unbounded`] if the
/// baseline's mean is not clearly separated from zero.
pub fn ratio_of_means(
    baseline: &Sample,
    candidate: &Sample,
    confidence: Confidence,
) -> Result<Estimate, Error> {
    let (below, above) = (squared_error(baseline), squared_error(candidate));
    let ratio = candidate.mean() / baseline.mean();
    let spread = above + ratio * ratio * below;
    let freedom = spread.powi(2)
        / (above.powi(2) / (candidate.len() as f64 - 1.0)
            + (ratio.powi(4) * below.powi(2)) / (baseline.len() as f64 - 1.0));
    let means = Means { baseline, candidate, variances: [below, above], covariance: 0.0 };
    means.fieller(freedom, confidence)
}

/// Returns `mean(candidate) / mean(baseline)` of pairs with its interval.
///
/// # Errors
/// As [`ratio_of_means`], and [`Error::LengthsDiffer`] unless both have the same length.
pub fn ratio_of_means_paired(
    baseline: &Sample,
    candidate: &Sample,
    confidence: Confidence,
) -> Result<Estimate, Error> {
    if baseline.len() != candidate.len() {
        return Err(Error::LengthsDiffer { left: baseline.len(), right: candidate.len() });
    }
    let n = baseline.len() as f64;
    let centres = (baseline.mean(), candidate.mean());
    let pairs = baseline.values().iter().zip(candidate.values());
    let products: f64 = pairs.map(|(b, c)| (b - centres.0) * (c - centres.1)).sum();
    let means = Means {
        baseline,
        candidate,
        variances: [squared_error(baseline), squared_error(candidate)],
        covariance: products / ((n - 1.0) * n),
    };
    means.fieller(n - 1.0, confidence)
}

/// Returns the squared standard error of the mean.
fn squared_error(sample: &Sample) -> f64 {
    sample.variance() / sample.len() as f64
}

/// Two means with the variances and the covariance of their errors.
struct Means<'a> {
    baseline: &'a Sample,
    candidate: &'a Sample,
    variances: [f64; 2],
    covariance: f64,
}

impl Means<'_> {
    /// Returns the interval of the ratios r for which `candidate - r baseline` is not clearly
    /// separated from zero: it is between the roots of a quadratic.
    fn fieller(&self, freedom: f64, confidence: Confidence) -> Result<Estimate, Error> {
        let fewest = self.baseline.len().min(self.candidate.len());
        if fewest < 2 {
            let confidence = confidence.get();
            return Err(Error::NotAttainable { got: fewest, needed: 2, confidence });
        }
        let (below, above) = (self.baseline.mean(), self.candidate.mean());
        let varies = self.variances.iter().any(|variance| *variance > 0.0);
        let t =
            if varies { student_quantile(1.0 - confidence.alpha() / 2.0, freedom) } else { 0.0 };
        let square = below * below - t * t * self.variances[0];
        if square.is_nan() || square <= 0.0 {
            let g = t * t * self.variances[0] / (below * below);
            return Err(Error::Unbounded { mean: below, g });
        }
        let linear = below * above - t * t * self.covariance;
        let constant = above * above - t * t * self.variances[1];
        let root = (linear * linear - square * constant).max(0.0).sqrt();
        let interval = Interval { lo: (linear - root) / square, hi: (linear + root) / square };
        Ok(Estimate { value: above / below, interval, coverage: confidence.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn pairs_that_move_together_give_a_narrower_interval() {
        let (a, b) = (sample(&[10.0, 20.0, 30.0, 40.0]), sample(&[11.0, 22.1, 32.9, 44.0]));
        let paired = ratio_of_means_paired(&a, &b, Confidence::P95).unwrap();
        assert!((paired.value - 1.1).abs() < 1e-12 && paired.interval.width() < 0.03, "{paired:?}");
        let apart = ratio_of_means(&a, &b, Confidence::P95);
        assert!(apart.is_err() || apart.unwrap().interval.width() > 0.5);
    }

    #[test]
    fn a_denominator_that_may_be_zero_has_no_bounded_interval() {
        let noise = sample(&[-1.0, 1.0, 0.5, -0.3]);
        let refused = ratio_of_means(&noise, &sample(&[5.0, 6.0]), Confidence::P95);
        assert!(matches!(refused, Err(Error::Unbounded { g, .. }) if g > 1.0), "{refused:?}");
        let zeros = ratio_of_means(&sample(&[0.0; 3]), &sample(&[5.0; 3]), Confidence::P95);
        assert!(matches!(zeros, Err(Error::Unbounded { .. })));
    }

    #[test]
    fn equal_values_give_a_point_and_one_value_none() {
        let (two, three) = (sample(&[2.0; 4]), sample(&[3.0; 4]));
        for found in [
            ratio_of_means(&two, &three, Confidence::P95),
            ratio_of_means_paired(&two, &three, Confidence::P95),
        ] {
            assert_eq!(found.unwrap().interval, Interval { lo: 1.5, hi: 1.5 });
        }
        let refused = ratio_of_means(&sample(&[1.0]), &two, Confidence::P95);
        assert!(matches!(refused, Err(Error::NotAttainable { got: 1, needed: 2, .. })));
        assert!(ratio_of_means_paired(&sample(&[1.0]), &two, Confidence::P95).is_err());
    }
}
