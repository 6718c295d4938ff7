//! Wilcoxon's signed-rank test.
//!
//! Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945);
//! Hollander & Wolfe, *Nonparametric Statistical Methods*, 2nd ed., section 3.1.

use crate::distribution::normal_cdf;
use crate::{Alternative, Method, Sample, Test, midrank::Midranks};

/// The largest number of non-zero differences for which the null distribution is exact, with or
/// without ties.
pub(crate) const EXACT_PAIRS: usize = 50;

/// Tests whether differences of pairs are symmetric about zero.
///
/// Zeros are dropped (Wilcoxon's way); all zeros give p = 1. Exact for up to 50 non-zero
/// differences, by convolution over midranks, so also with ties; by the normal approximation
/// beyond, with tie and continuity corrections. The statistic is the sum of the ranks of positive
/// differences.
pub fn signed_rank(differences: &Sample, alternative: Alternative) -> Test {
    let nonzero: Vec<f64> =
        differences.values().iter().copied().filter(|difference| *difference != 0.0).collect();
    let sizes: Vec<f64> = nonzero.iter().map(|difference| difference.abs()).collect();
    let ranks = Midranks::of(&sizes);
    let doubled_sum: usize =
        ranks.doubled.iter().zip(&nonzero).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    let statistic = doubled_sum as f64 / 2.0;
    if nonzero.len() <= EXACT_PAIRS {
        let null = null_distribution(&ranks.doubled);
        let at_most: f64 = null[..=doubled_sum].iter().sum();
        let at_least: f64 = null[doubled_sum..].iter().sum();
        return Test { statistic, p: alternative.p(at_most, at_least), method: Method::Exact };
    }
    let n = nonzero.len() as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = variance(n, ranks.tie_loss).sqrt();
    let at_most = normal_cdf((statistic - mean + 0.5) / deviation);
    let at_least = normal_cdf((mean - statistic + 0.5) / deviation);
    Test { statistic, p: alternative.p(at_most, at_least), method: Method::Normal }
}

/// Returns the probability of each sum when each weight is included or not by a fair coin.
pub(crate) fn null_distribution(weights: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; weights.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    let mut highest = 0;
    for weight in weights {
        highest += weight;
        for sum in (0..=highest).rev() {
            let with = if sum >= *weight { chances[sum - weight] } else { 0.0 };
            chances[sum] = 0.5 * (chances[sum] + with);
        }
    }
    chances
}

/// Returns the variance of the rank sum of n differences under the null hypothesis.
pub(crate) fn variance(n: f64, tie_loss: f64) -> f64 {
    n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - tie_loss / 48.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(differences: &[f64], alternative: Alternative) -> Test {
        signed_rank(&Sample::new(differences).unwrap(), alternative)
    }

    #[test]
    fn six_differences_of_one_sign_give_one_in_thirty_two() {
        let found = test(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Alternative::TwoSided);
        assert_eq!((found.p, found.method, found.statistic), (2.0 / 64.0, Method::Exact, 21.0));
        assert_eq!(test(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Alternative::Greater).p, 1.0 / 64.0);
        assert_eq!(test(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Alternative::Less).p, 1.0);
    }

    #[test]
    fn equal_differences_are_a_sign_test() {
        // Three of one sign and one of the other, all ties: P(at most 1 of 4) = 5/16.
        assert_eq!(test(&[2.0, 2.0, -2.0, 2.0], Alternative::TwoSided).p, 10.0 / 16.0);
    }

    #[test]
    fn zeros_are_dropped_and_only_zeros_show_nothing() {
        let with = test(&[0.0, 1.0, 2.0, -3.0, 0.0], Alternative::TwoSided);
        assert_eq!(with, test(&[1.0, 2.0, -3.0], Alternative::TwoSided));
        assert_eq!(test(&[0.0, 0.0], Alternative::TwoSided).p, 1.0);
    }

    #[test]
    fn the_null_distribution_sums_to_one_and_is_symmetric() {
        let null = null_distribution(&[2, 4, 7, 7, 10]);
        assert!((null.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        assert!(null.iter().eq(null.iter().rev()));
    }
}
