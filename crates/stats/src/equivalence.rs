//! Equivalence within a bound by two one-sided tests.
//!
//! Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15 (1987), with rank tests in place of t
//! tests (Wellek, *Testing Statistical Hypotheses of Equivalence and Noninferiority*, 2nd ed.,
//! 2010, chapters 5 and 6): the samples are shifted by the bound to either side.

use crate::rank_sum::shifted_rank_sum;
use crate::{Alternative, Error, Sample, signed_rank};

/// The largest change that still counts as no change: a ratio and its inverse.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Margin(f64);

impl Margin {
    /// 2 %.
    pub const TWO_PERCENT: Self = Self(2.0);

    /// Creates the margin for a change in percent: 2 means from 1 / 1.02 to 1.02. 0 admits no
    /// change.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 <= percent <= 1000`.
    pub fn percent(percent: f64) -> Result<Self, Error> {
        if (0.0..=1_000.0).contains(&percent) {
            Ok(Self(percent))
        } else {
            Err(Error::OutOfRange {
                what: "margin",
                value: percent,
                expected: "a number of percent from 0 to 1000",
            })
        }
    }

    /// Returns the margin as a bound on log ratios.
    pub fn as_log(self) -> f64 {
        (self.0 / 100.0).ln_1p()
    }

    /// Returns the margin in percent.
    pub fn as_percent(self) -> f64 {
        self.0
    }
}

/// The p-values of two one-sided tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equivalence {
    /// p against an effect at or below minus the bound.
    pub p_not_below: f64,
    /// p against an effect at or above the bound.
    pub p_not_above: f64,
}

impl Equivalence {
    /// Returns the p-value against "not equivalent": the larger of the two.
    pub fn p(&self) -> f64 {
        self.p_not_below.max(self.p_not_above)
    }
}

/// Tests whether the log ratios of pairs are within `bound` of zero, by signed ranks.
pub fn equivalence_paired(log_ratios: &Sample, bound: f64) -> Equivalence {
    let above_lower = log_ratios.map_rising(|value| value + bound);
    let below_upper = log_ratios.map_rising(|value| value - bound);
    Equivalence {
        p_not_below: signed_rank(&above_lower, Alternative::Greater).p,
        p_not_above: signed_rank(&below_upper, Alternative::Less).p,
    }
}

/// Tests whether two independent samples of logarithms are within `bound` of each other, by rank
/// sums.
pub fn equivalence_unpaired(
    baseline_logs: &Sample,
    candidate_logs: &Sample,
    bound: f64,
) -> Equivalence {
    let shifted =
        |by, alternative| shifted_rank_sum(baseline_logs, candidate_logs, by, alternative).p;
    Equivalence {
        p_not_below: shifted(bound, Alternative::Greater),
        p_not_above: shifted(-bound, Alternative::Less),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn small_log_ratios_are_equivalent_within_a_wide_margin_only() {
        let ratios = sample(&[0.001, -0.002, 0.003, -0.001, 0.002, 0.0005]);
        assert_eq!(equivalence_paired(&ratios, 0.02).p(), 1.0 / 64.0);
        assert!(equivalence_paired(&ratios, 0.0015).p() > 0.05);
    }

    #[test]
    fn an_effect_beyond_the_margin_is_seen_on_its_side() {
        let found = equivalence_paired(&sample(&[0.05, 0.06, 0.07, 0.08, 0.09]), 0.02);
        assert_eq!((found.p_not_below, found.p_not_above), (1.0 / 32.0, 1.0));
        let (a, b) = (sample(&[1.0, 1.01, 1.02]), sample(&[1.2, 1.21, 1.22]));
        let found = equivalence_unpaired(&a, &b, 0.1);
        assert!((found.p_not_below - 1.0 / 20.0).abs() < 1e-15);
        assert_eq!(found.p_not_above, 1.0);
        assert!((equivalence_unpaired(&a, &b, 0.3).p() - 1.0 / 20.0).abs() < 1e-15);
    }

    #[test]
    fn a_margin_is_the_same_for_a_ratio_and_its_inverse() {
        let margin = Margin::percent(25.0).unwrap();
        assert!((margin.as_log() + 0.8_f64.ln()).abs() < 1e-15);
        assert_eq!(margin.as_percent(), 25.0);
        assert!(Margin::percent(-1.0).is_err() && Margin::percent(f64::NAN).is_err());
    }
}
