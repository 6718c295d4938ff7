//! Quantiles by linear interpolation between order statistics, type 7 of Hyndman & Fan, "Sample
//! quantiles in statistical packages", The American Statistician 50 (1996): the default of numpy
//! and R.

use crate::{Sample, whole};

impl Sample {
    /// Returns the quantile of type 7 at a probability, which is clamped to 0..=1.
    pub fn quantile(&self, probability: f64) -> f64 {
        let last = (self.len() - 1) as f64;
        at(self.sorted(), probability.clamp(0.0, 1.0) * last)
    }

    /// Returns the [`quantile`](Self::quantile) at `percent` / 100.
    pub fn percentile(&self, percent: f64) -> f64 {
        self.quantile(percent / 100.0)
    }

    /// Returns the middle value, or the mean of the two middle ones.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Returns the value at a real position of a sorted slice, counted from 0 and interpolated linearly
/// between neighbours.
pub(crate) fn at(sorted: &[f64], position: f64) -> f64 {
    let below = whole::floor(position).min(sorted.len() - 1);
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// Returns the median of values in any order, of which there is at least one.
pub(crate) fn median_of(mut values: Vec<f64>) -> f64 {
    let count = values.len();
    let (_, lower, above) = values.select_nth_unstable_by((count - 1) / 2, f64::total_cmp);
    match above.iter().copied().min_by(f64::total_cmp) {
        Some(upper) if count.is_multiple_of(2) => at(&[*lower, upper], 0.5),
        _ => *lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_unsorted_values_is_that_of_the_sample() {
        for values in [vec![4.0], vec![2.0, 1.0], vec![9.0, 1.0, 5.0], vec![7.0, 3.0, 3.0, 1.0]] {
            let sample = Sample::new(values.clone()).unwrap();
            assert_eq!(median_of(values), sample.median());
        }
    }

    #[test]
    fn quantiles_interpolate_between_neighbours_as_numpy_does() {
        let sample = Sample::new(vec![40.0, 10.0, 20.0, 30.0]).unwrap();
        assert_eq!(sample.median(), 25.0);
        assert_eq!(sample.quantile(0.25), 17.5);
        assert!((sample.percentile(90.0) - 37.0).abs() < 1e-12);
    }

    #[test]
    fn probabilities_outside_the_range_give_the_extremes() {
        let sample = Sample::new(vec![1.0, 2.0]).unwrap();
        assert_eq!(sample.quantile(-1.0), 1.0);
        assert_eq!(sample.quantile(7.0), 2.0);
    }

    #[test]
    fn one_value_is_every_quantile() {
        let sample = Sample::new(vec![5.0]).unwrap();
        assert_eq!([sample.quantile(0.0), sample.median(), sample.quantile(1.0)], [5.0; 3]);
    }
}
