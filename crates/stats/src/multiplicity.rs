//! Adjustment of p-values for multiple comparisons.

/// Returns Holm's adjusted p-values in the order given. The chance of any false claim stays below
/// the level (Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6,
/// 1979).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p_values.len()];
    let mut running = 0.0_f64;
    let steps = holm_steps(p_values);
    for index in ascending(p_values) {
        running = running.max(steps[index] as f64 * p_values[index]).min(1.0);
        adjusted[index] = running;
    }
    adjusted
}

/// Returns the divisor of the level that Holm's method uses for each p-value, in the order given:
/// the number of p-values for the smallest, 1 for the largest.
pub(crate) fn holm_steps(p_values: &[f64]) -> Vec<usize> {
    let mut steps = vec![0; p_values.len()];
    for (rank, index) in ascending(p_values).into_iter().enumerate() {
        steps[index] = p_values.len() - rank;
    }
    steps
}

/// Returns Benjamini and Hochberg's adjusted p-values in the order given. The expected share of
/// false claims among all claims stays below the level (J. R. Stat. Soc. B 57, 1995). Meant for
/// fleets.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let count = p_values.len() as f64;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut running = 1.0_f64;
    for (rank, index) in ascending(p_values).into_iter().enumerate().rev() {
        running = running.min(count / (rank + 1) as f64 * p_values[index]);
        adjusted[index] = running;
    }
    adjusted
}

/// Returns the indices from the smallest p-value to the largest.
fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_multiplies_the_smallest_p_by_the_number_of_tests_and_never_decreases() {
        assert_eq!(holm(&[0.04, 0.01, 0.03]), [0.06, 0.03, 0.06]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn benjamini_hochberg_divides_by_the_rank_and_never_falls() {
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.5]);
        let expected = [0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5];
        for (found, expected) in adjusted.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15, "{adjusted:?}");
        }
    }

    #[test]
    fn the_smallest_p_value_must_reach_the_strictest_level() {
        assert_eq!(holm_steps(&[0.04, 0.01, 0.03]), [1, 3, 2]);
    }

    #[test]
    fn a_single_p_value_is_not_adjusted() {
        assert_eq!((holm(&[0.03]), benjamini_hochberg(&[0.03])), (vec![0.03], vec![0.03]));
    }
}
