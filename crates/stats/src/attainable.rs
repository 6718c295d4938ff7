//! Limits on what exact tests can show with few values.

/// Returns the smallest two-sided p that `pairs` pairs can give in the signed-rank and the
/// permutation test, `2 / 2^pairs`: with five pairs or fewer it is above 0.05 whatever is measured.
pub fn least_p_paired(pairs: usize) -> f64 {
    i32::try_from(pairs).map_or(0.0, |pairs| (2.0 * 0.5_f64.powi(pairs)).min(1.0))
}

/// Returns the smallest two-sided p that two samples of these sizes can give in the rank-sum test,
/// `2 / C(first + second, first)`.
pub fn least_p_unpaired(first: usize, second: usize) -> f64 {
    let smaller = first.min(second);
    let larger = first.max(second) as f64;
    let ways: f64 = (1..=smaller).map(|i| (larger + i as f64) / i as f64).product();
    (2.0 / ways).min(1.0)
}

/// Returns the fewest pairs with which a paired test can reach `alpha`: 6 for 0.05.
pub fn least_pairs(alpha: f64) -> usize {
    fewest(|pairs| least_p_paired(pairs) <= alpha)
}

/// Returns the fewest values on each side with which the rank-sum test can reach `alpha`: 4 for
/// 0.05.
pub(crate) fn least_values_a_side(alpha: f64) -> usize {
    fewest(|values| least_p_unpaired(values, values) <= alpha)
}

/// Returns the first number, counted from 1, that is enough. The search always ends, because the
/// p-value reaches 0.
fn fewest(enough: impl Fn(usize) -> bool) -> usize {
    (1..1_100).find(|number| enough(*number)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_pairs_can_never_reach_five_percent_and_six_can() {
        assert_eq!(least_p_paired(5), 0.0625);
        assert_eq!(least_p_paired(6), 0.031_25);
        assert_eq!((least_pairs(0.05), least_pairs(0.01)), (6, 8));
        assert_eq!(least_p_paired(1), 1.0);
        assert_eq!(least_p_paired(0), 1.0);
    }

    #[test]
    fn three_against_three_can_never_reach_five_percent_and_four_against_four_can() {
        assert!((least_p_unpaired(3, 3) - 0.1).abs() < 1e-15);
        assert!((least_p_unpaired(4, 4) - 2.0 / 70.0).abs() < 1e-15);
        assert!((least_p_unpaired(2, 39) - 2.0 / 820.0).abs() < 1e-15);
        assert_eq!(least_values_a_side(0.05), 4);
        assert_eq!(least_p_unpaired(1, 1), 1.0);
    }
}
