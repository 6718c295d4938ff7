//! Mean and variance.

use crate::Sample;

impl Sample {
    /// Returns the arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.sorted().iter().sum::<f64>() / self.len() as f64
    }

    /// Returns the unbiased variance (divisor n - 1), 0 for one value.
    pub fn variance(&self) -> f64 {
        if self.is_constant() {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self.sorted().iter().map(|value| (value - mean).powi(2)).sum();
        squares / (self.len() - 1) as f64
    }

    /// Returns the square root of [`variance`](Self::variance).
    pub fn standard_deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_divides_by_one_less_than_the_number_of_values() {
        let sample = Sample::new(vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(sample.mean(), 2.5);
        assert!((sample.variance() - 5.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn equal_values_have_exactly_no_variance() {
        assert_eq!(Sample::new(vec![0.1; 7]).unwrap().variance(), 0.0);
        assert_eq!(Sample::new(vec![0.1]).unwrap().standard_deviation(), 0.0);
    }
}
