//! The paired permutation test: under the null hypothesis each difference might as well have had
//! the other sign (Fisher, *The Design of Experiments*, 1935, section 21).

use crate::{Alternative, Method, Rng, Sample, Test};

/// The largest number of non-zero differences for which all sign patterns are counted.
const EXACT_PAIRS: usize = 30;

/// The number of random sign patterns to draw when there are too many to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// Number of patterns drawn.
    pub draws: usize,
    /// Seed of the generator.
    pub seed: u64,
}

/// Tests whether differences of pairs have mean zero, by exchanging their signs.
///
/// Exact for up to 30 non-zero differences, by counting pairs of half sums (Horowitz & Sahni, JACM
/// 21, 1974); by random patterns beyond, with p = (1 + hits) / (1 + draws) so that it is valid
/// (Phipson & Smyth, SAGMB 9, 2010). The statistic is the mean difference.
pub fn paired_permutation(differences: &Sample, alternative: Alternative, draws: &Draws) -> Test {
    let sizes: Vec<f64> =
        differences.values().iter().map(|d| d.abs()).filter(|size| *size > 0.0).collect();
    let sum: f64 = differences.values().iter().sum();
    // Sums of the same values in another order differ by rounding; they count as equal.
    let slack = 1e-12 * sizes.iter().sum::<f64>();
    let statistic = sum / differences.len() as f64;
    if sizes.len() <= EXACT_PAIRS {
        let at_least = share_at_least(&sizes, sum - slack);
        let at_most = share_at_least(&sizes, -sum - slack);
        return Test { statistic, p: alternative.p(at_most, at_least), method: Method::Exact };
    }
    let (mut at_most, mut at_least) = (1_usize, 1_usize);
    let mut rng = Rng::new(draws.seed);
    for _ in 0..draws.draws {
        let drawn = random_sum(&sizes, &mut rng);
        at_most += usize::from(drawn <= sum + slack);
        at_least += usize::from(drawn >= sum - slack);
    }
    let share = |hits: usize| hits as f64 / (draws.draws + 1) as f64;
    let p = alternative.p(share(at_most), share(at_least));
    Test { statistic, p, method: Method::MonteCarlo { draws: draws.draws } }
}

/// Returns the share of sign patterns whose sum is at least `threshold`.
fn share_at_least(sizes: &[f64], threshold: f64) -> f64 {
    let (left, right) = sizes.split_at(sizes.len() / 2);
    let (left, right) = (signed_sums(left), signed_sums(right));
    let mut from = right.len();
    let mut hits = 0_u64;
    for sum in &left {
        while from > 0 && sum + right[from - 1] >= threshold {
            from -= 1;
        }
        hits += (right.len() - from) as u64;
    }
    hits as f64 / (left.len() * right.len()) as f64
}

/// Returns the sums of all sign patterns, smallest first.
fn signed_sums(sizes: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for size in sizes {
        sums = sums.iter().flat_map(|sum| [sum - size, sum + size]).collect();
    }
    sums.sort_unstable_by(f64::total_cmp);
    sums
}

fn random_sum(sizes: &[f64], rng: &mut Rng) -> f64 {
    let mut sum = 0.0;
    for chunk in sizes.chunks(64) {
        let mut signs = rng.next_u64();
        for size in chunk {
            sum += if signs & 1 == 0 { *size } else { -size };
            signs >>= 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: Draws = Draws { draws: 9_999, seed: 1 };

    fn test(differences: &[f64], alternative: Alternative) -> Test {
        paired_permutation(&Sample::new(differences).unwrap(), alternative, &DRAWS)
    }

    #[test]
    fn one_sign_pattern_in_sixty_four_is_most_extreme() {
        let found = test(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], Alternative::TwoSided);
        assert_eq!((found.p, found.method), (2.0 / 64.0, Method::Exact));
        assert!((found.statistic - 0.35).abs() < 1e-15);
    }

    #[test]
    fn sums_that_differ_only_by_rounding_count_as_equal() {
        // 0.1 + 0.2 - 0.3 is 5.6e-17: patterns with this sum are all zero.
        assert_eq!(test(&[0.1, 0.2, -0.3], Alternative::TwoSided).p, 1.0);
        assert_eq!(test(&[0.1, 0.2, -0.3], Alternative::Greater).p, 5.0 / 8.0);
    }

    #[test]
    fn zeros_show_nothing_and_change_nothing() {
        assert_eq!(test(&[0.0; 4], Alternative::TwoSided).p, 1.0);
        let without = test(&[1.0, 2.0, 3.0], Alternative::Greater).p;
        assert_eq!(test(&[1.0, 0.0, 2.0, 3.0], Alternative::Greater).p, without);
    }

    #[test]
    fn random_patterns_agree_with_all_of_them() {
        let thirty: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 11) - 4.1).collect();
        let exact = test(&thirty, Alternative::TwoSided);
        // Two more differences, too small to matter, push it over the limit.
        let more = [&thirty[..], &[1e-6, -1e-6]].concat();
        let drawn = test(&more, Alternative::TwoSided);
        assert_eq!(drawn.method, Method::MonteCarlo { draws: 9_999 });
        let error = 5.0 * (exact.p * (1.0 - exact.p) / 9_999.0).sqrt();
        assert!((exact.p - drawn.p).abs() < 2.0 * error + 1e-3, "{exact:?} {drawn:?}");
        assert_eq!(drawn, test(&more, Alternative::TwoSided));
    }

    #[test]
    fn a_drawn_p_is_never_zero() {
        let found = test(&[1.0; 40], Alternative::Greater);
        assert_eq!(found.p, 1.0 / 10_000.0);
    }
}
