use std::sync::Arc;

use crate::Error;

/// One or more finite values in the order taken, with a sorted copy.
///
/// Both hold by construction, so no statistic on a `Sample` has to handle NaN or an empty sample.
/// Clones share the values, of which there may be millions.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Arc<Vec<f64>>,
    sorted: Arc<Vec<f64>>,
}

impl Sample {
    /// Checks and keeps values in the order taken.
    ///
    /// # Errors
    /// [`Error::Empty`] without values, [`Error::NotFinite`] at the first NaN or infinity.
    pub fn new(values: impl Into<Vec<f64>>) -> Result<Self, Error> {
        let values = values.into();
        if values.is_empty() {
            return Err(Error::Empty);
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NotFinite { index, value: values[index] });
        }
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self { values: values.into(), sorted: sorted.into() })
    }

    /// Returns the values in the order taken.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the values from smallest to largest.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// Returns the number of values, which is never 0.
    #[expect(clippy::len_without_is_empty, reason = "a sample is never empty")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the natural logarithms, in the order taken.
    ///
    /// # Errors
    /// [`Error::NotPositive`] at the first value that is zero or below.
    pub fn logs(&self) -> Result<Self, Error> {
        match self.values.iter().position(|value| *value <= 0.0) {
            Some(index) => Err(Error::NotPositive { index, value: self.values[index] }),
            None => Ok(self.map_rising(f64::ln)),
        }
    }

    /// Returns the natural logarithms from smallest to largest, for statistics that do not depend on
    /// the order taken: half the memory of [`Self::logs`]. `None` if a value is zero or below.
    pub(crate) fn sorted_logs(&self) -> Option<Self> {
        let sorted = (self.min() > 0.0).then(|| Arc::new(map_sorted(&self.sorted, f64::ln)))?;
        Some(Self { values: sorted.clone(), sorted })
    }

    /// Maps the values through a function that keeps their order, and finite values finite.
    pub(crate) fn map_rising(&self, function: impl Fn(f64) -> f64) -> Self {
        let values: Vec<f64> = self.values.iter().map(|value| function(*value)).collect();
        Self { values: values.into(), sorted: map_sorted(&self.sorted, function).into() }
    }

    /// Returns the smallest value.
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// Returns the largest value.
    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// Returns true if all values are equal, as in virtual time.
    pub fn is_constant(&self) -> bool {
        self.min() == self.max()
    }
}

fn map_sorted(sorted: &[f64], function: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut mapped: Vec<f64> = sorted.iter().map(|value| function(*value)).collect();
    // Rounding may exchange neighbours; sorting sorted values takes one pass.
    mapped.sort_unstable_by(f64::total_cmp);
    mapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_values_are_refused() {
        assert_eq!(Sample::new(vec![]), Err(Error::Empty));
    }

    #[test]
    fn nan_and_infinity_are_refused_with_their_index() {
        let refused = Sample::new(vec![1.0, 2.0, f64::NAN]);
        assert!(matches!(refused, Err(Error::NotFinite { index: 2, value }) if value.is_nan()));
        let refused = Sample::new(vec![f64::NEG_INFINITY]);
        assert_eq!(refused, Err(Error::NotFinite { index: 0, value: f64::NEG_INFINITY }));
    }

    #[test]
    fn the_order_taken_is_kept_next_to_the_sorted_view() {
        let sample = Sample::new(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!(sample.values(), [3.0, 1.0, 2.0]);
        assert_eq!(sample.sorted(), [1.0, 2.0, 3.0]);
        assert_eq!((sample.min(), sample.max(), sample.len()), (1.0, 3.0, 3));
    }

    #[test]
    fn a_zero_has_no_logarithm_and_the_error_says_where() {
        let sample = Sample::new(vec![1.0, 0.0]).unwrap();
        assert_eq!(sample.logs(), Err(Error::NotPositive { index: 1, value: 0.0 }));
        let logs = Sample::new(vec![1.0, std::f64::consts::E]).unwrap().logs().unwrap();
        assert_eq!(logs.values(), [0.0, 1.0]);
    }

    #[test]
    fn sorted_logarithms_are_those_of_the_sorted_values() {
        let e = std::f64::consts::E;
        let sample = Sample::new(vec![e, 1.0, e]).unwrap();
        let logs = sample.sorted_logs().unwrap();
        assert_eq!((logs.values(), logs.sorted()), (&[0.0, 1.0, 1.0][..], &[0.0, 1.0, 1.0][..]));
        assert_eq!(Sample::new(vec![1.0, -0.0]).unwrap().sorted_logs(), None);
    }

    #[test]
    fn equal_values_are_constant_and_one_value_is_too() {
        assert!(Sample::new(vec![2.0, 2.0]).unwrap().is_constant());
        assert!(Sample::new(vec![2.0]).unwrap().is_constant());
        assert!(!Sample::new(vec![2.0, 2.5]).unwrap().is_constant());
    }
}
