//! The median, and the fewest values for its interval.

use crate::{Confidence, whole};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two_in_any_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }
}
