//! Values far from the rest, by a score that they cannot hide in.

use statrs::function::beta::beta_reg;

use crate::{Sample, spread::MAD_TO_SD};

/// The score above which a value counts as an outlier by custom.
pub const OUTLIER_SCORE: f64 = 3.5;

/// The mean absolute deviation times this estimates the standard deviation of normal values.
const MEAN_DEVIATION_TO_SD: f64 = 1.253_314_137_315_500_3;

/// A value far from the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Its position in the order taken.
    pub index: usize,
    /// Its robust z: standard deviations from the median, negative below it.
    pub score: f64,
}

/// The values whose modified z-score is above `threshold` to either side, in the order taken.
///
/// Iglewicz & Hoaglin, *How to Detect and Handle Outliers* (1993): distance from the median over
/// the scaled median absolute deviation; where more than half of the values are equal, over the
/// scaled mean absolute deviation. Values without variance have no outliers.
#[must_use]
pub fn outliers(sample: &Sample, threshold: f64) -> Vec<Outlier> {
    let median = sample.median();
    let mad = MAD_TO_SD * sample.mad();
    let scale = if mad > 0.0 {
        mad
    } else {
        MEAN_DEVIATION_TO_SD * sample.map_finite(|value| (value - median).abs()).mean()
    };
    let scored = sample.values().iter().enumerate();
    scored
        .map(|(index, value)| Outlier { index, score: (value - median) / scale })
        .filter(|outlier| outlier.score.abs() > threshold)
        .collect()
}

/// The share of the degrees of freedom that a scale by the median absolute deviation is worth:
/// its efficiency for normal values (Rousseeuw & Croux, J. Am. Stat. Assoc. 88, 1993).
const MAD_EFFICIENCY: f64 = 0.37;

/// The chance of a robust score this far from 0 or farther among `peers` normal values: by
/// Student's distribution with the degrees of freedom that a scale from the median absolute
/// deviation has.
#[must_use]
pub fn outlier_p(score: f64, peers: usize) -> f64 {
    let freedom = (MAD_EFFICIENCY * (peers.max(2) - 1) as f64).max(1.0);
    if !score.is_finite() {
        return if score.is_nan() { 1.0 } else { 0.0 };
    }
    beta_reg(freedom / 2.0, 0.5, freedom / (freedom + score * score))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[f64]) -> Vec<usize> {
        let sample = Sample::new(values).unwrap();
        outliers(&sample, OUTLIER_SCORE).iter().map(|outlier| outlier.index).collect()
    }

    #[test]
    fn two_wild_values_do_not_hide_each_other() {
        assert_eq!(found(&[10.0, 500.0, 11.0, 9.0, 10.5, 9.5, 520.0, 10.2]), [1, 6]);
        assert_eq!(found(&[10.0, 11.0, 9.0, 10.5, 9.5, 10.2]), [0_usize; 0]);
    }

    #[test]
    fn the_score_counts_standard_deviations_with_their_sign() {
        let sample = Sample::new(vec![8.0, 9.0, 10.0, 11.0, -20.0]).unwrap();
        let outliers = outliers(&sample, OUTLIER_SCORE);
        assert_eq!(outliers.len(), 1);
        assert!((outliers[0].score + 29.0 / MAD_TO_SD).abs() < 1e-12, "{outliers:?}");
    }

    #[test]
    fn one_value_apart_from_equal_ones_is_an_outlier_and_none_is_among_equals() {
        let mut values = vec![5.0; 20];
        assert_eq!(found(&values), [0_usize; 0]);
        values[7] = 6.0;
        assert_eq!(found(&values), [7]);
    }

    #[test]
    fn the_chance_of_a_score_is_students_and_nearly_normal_among_many() {
        assert!((outlier_p(1.959_964, 1_000_000) - 0.05).abs() < 1e-6);
        // 0.37 x 27 is 10 degrees of freedom: 2.228 is the tabled 5 % point.
        assert!((outlier_p(2.228, 28) - 0.05).abs() < 2e-4);
        assert!(outlier_p(5.0, 10) > 50.0 * outlier_p(5.0, 10_000));
        assert_eq!((outlier_p(f64::INFINITY, 9), outlier_p(0.0, 9)), (0.0, 1.0));
    }
}
