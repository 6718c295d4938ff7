//! A test that decides, while values come in, on which side of a threshold a mean is.
//!
//! Student's one-sided interval at a few looks, each at an equal share of the error, so that all
//! looks together are wrong no more often than the level says, wherever the mean is. Values are log
//! ratios, which are nearly symmetric: for those t errs no more often with heavy tails (Benjamini,
//! JASA 78, 1983); `tests/bisection.rs` counts it.

use crate::distribution::student_quantile;
use crate::{Confidence, Error};

/// The number of values at each look.
const LOOKS: [usize; 8] = [3, 4, 6, 9, 14, 21, 32, 48];

/// A side of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdSide {
    /// The mean is less.
    Below,
    /// The mean is more.
    Above,
}

/// The result of a look at the values so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookResult {
    /// The mean is on this side.
    Decided(ThresholdSide),
    /// More values are needed for the next look.
    Continue {
        /// Total number of values at that look.
        look_at: usize,
    },
    /// The largest number of values that may be taken does not decide it.
    Undecided,
}

/// A sequential rule that decides on which side of a threshold a mean is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdTest {
    threshold: f64,
    level: Confidence,
    most: usize,
}

impl ThresholdTest {
    /// Creates a test of at most `most` values that names the wrong side with a probability of at
    /// most `1 - level`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the threshold is a finite number and `most` is at least 3.
    pub fn new(threshold: f64, level: Confidence, most: usize) -> Result<Self, Error> {
        let wrong = |what, value, expected| Err(Error::OutOfRange { what, value, expected });
        if !threshold.is_finite() {
            return wrong("threshold", threshold, "a finite number");
        }
        if most < LOOKS[0] {
            return wrong("most values", most as f64, "3 or more");
        }
        Ok(Self { threshold, level, most })
    }

    /// Returns the number of values at the first look.
    pub fn first_look(&self) -> usize {
        LOOKS[0]
    }

    /// Returns true if there is a look at this number of values.
    pub fn is_look(&self, count: usize) -> bool {
        self.sizes().any(|size| size == count)
    }

    /// Decides from the values so far. Call it with the number of values it last requested: looking
    /// more often errs more often.
    pub fn look(&self, values: &[f64]) -> LookResult {
        let count = values.len();
        let error = self.level.alpha() / self.sizes().count() as f64;
        if count >= LOOKS[0]
            && let Some(side) = self.side(values, error)
        {
            return LookResult::Decided(side);
        }
        let mut later = self.sizes().filter(|&size| size > count);
        later.next().map_or(LookResult::Undecided, |look_at| LookResult::Continue { look_at })
    }

    /// Returns the number of values at each look.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        LOOKS.into_iter().filter(|&size| size < self.most).chain([self.most])
    }

    fn side(&self, values: &[f64], error: f64) -> Option<ThresholdSide> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0) / count).sqrt();
        let reach = student_quantile(1.0 - error, count - 1.0) * deviation;
        if mean - reach > self.threshold {
            Some(ThresholdSide::Above)
        } else if mean + reach < self.threshold {
            Some(ThresholdSide::Below)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test() -> ThresholdTest {
        ThresholdTest::new(0.0, Confidence::P99, 32).unwrap()
    }

    #[test]
    fn values_far_from_the_threshold_decide_at_the_first_look() {
        assert_eq!(test().look(&[0.1, 0.101, 0.099]), LookResult::Decided(ThresholdSide::Above));
        assert_eq!(test().look(&[-0.1, -0.101, -0.099]), LookResult::Decided(ThresholdSide::Below));
    }

    #[test]
    fn equal_values_decide_unless_they_are_the_threshold() {
        assert_eq!(test().look(&[0.001; 3]), LookResult::Decided(ThresholdSide::Above));
        assert_eq!(test().look(&[0.0; 3]), LookResult::Continue { look_at: 4 });
    }

    #[test]
    fn values_near_the_threshold_need_more_up_to_the_limit() {
        let values: Vec<f64> = (0..32).map(|i| if i % 2 == 0 { 0.1 } else { -0.1 }).collect();
        let mut sizes = vec![test().first_look()];
        while let LookResult::Continue { look_at } = test().look(&values[..sizes[sizes.len() - 1]])
        {
            sizes.push(look_at);
        }
        assert_eq!(sizes, [3, 4, 6, 9, 14, 21, 32]);
        assert_eq!(test().look(&values), LookResult::Undecided);
    }

    #[test]
    fn two_values_decide_nothing() {
        assert_eq!(test().look(&[5.0, 5.0]), LookResult::Continue { look_at: 3 });
    }

    #[test]
    fn a_threshold_that_is_not_a_number_is_refused() {
        assert!(ThresholdTest::new(f64::NAN, Confidence::P95, 9).is_err());
        assert!(ThresholdTest::new(0.0, Confidence::P95, 2).is_err());
    }
}
