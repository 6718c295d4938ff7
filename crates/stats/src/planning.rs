//! Planning: the number of blocks still needed, and the least effect that would be seen.
//!
//! Uses the normal approximation: the standard error is the half width of the interval over its
//! quantile, and it falls with the root of the number of blocks (Chow, Shao & Wang, *Sample Size
//! Calculations in Clinical Research*, 2nd ed., 2008, chapter 3).

use crate::distribution::{normal_quantile, student_quantile};
use crate::evidence::{Evidence, Ground};
use crate::{Confidence, Interval, least_p_paired, whole};

/// The power for which studies are planned.
const POWER: f64 = 0.8;
/// Larger numbers of blocks are not worth reporting.
const MOST_BLOCKS: f64 = 100_000.0;

/// Returns the number of blocks still needed to show the observed effect, or to show that it is
/// within the bound, whichever takes fewer; at least 1. The test of a difference must reach the
/// level of the evidence, which is stricter for several metrics and later looks.
pub(crate) fn further_blocks(evidence: &Evidence, confidence: Confidence) -> Option<usize> {
    if let Ground::TooFew { needed } = evidence.ground {
        return Some(needed.saturating_sub(evidence.values).max(1));
    }
    let error = standard_error(&evidence.interval?, confidence);
    let effect = evidence.effect.abs();
    let alpha = evidence.later.alpha();
    let difference = blocks(evidence.values, error, effect, 1.0 - evidence.level / 2.0);
    let equivalence = blocks(evidence.values, error, evidence.bound - effect, 1.0 - alpha);
    let needed = match difference.min(equivalence) {
        // The interval would already suffice, but the tests do not: with two modes, the interval of
        // the shift is as narrow as one mode, whereas the tests count ranks over both.
        needed if needed <= evidence.values as f64 => by_tests(evidence, alpha),
        needed => needed,
    };
    let further = || whole::ceil(needed).max(evidence.fewest).saturating_sub(evidence.values);
    (needed <= MOST_BLOCKS).then(|| further().max(1))
}

/// Returns the smallest effect that a study with such an interval shows with 80 % power.
pub(crate) fn least_detectable(interval: &Interval, confidence: Confidence) -> f64 {
    let reach = normal_quantile(1.0 - confidence.alpha() / 2.0) + normal_quantile(POWER);
    reach * standard_error(interval, confidence)
}

/// Returns the smallest log ratio that `blocks` blocks show with 80 % power in one test at `level`,
/// if the log ratios of blocks have the standard deviation `spread` and are near normal; `None` if
/// no outcome of that number of blocks reaches the level.
///
/// Uses Student's quantiles and the efficiency of signed ranks relative to t, which is 3/pi (Hodges
/// & Lehmann, Ann. Math. Stat. 27, 1956).
pub fn least_effect(blocks: usize, level: Confidence, spread: f64) -> Option<f64> {
    if least_p_paired(blocks) > level.alpha() {
        return None;
    }
    let freedom = blocks as f64 - 1.0;
    let quantile = |p| student_quantile(p, freedom);
    let reach = quantile(1.0 - level.alpha() / 2.0) + quantile(POWER);
    Some(reach * spread * (std::f64::consts::FRAC_PI_3 / blocks as f64).sqrt())
}

/// Returns the total number of blocks by the p-values: the quantile of a test grows with the root of
/// the number of blocks.
fn by_tests(evidence: &Evidence, alpha: f64) -> f64 {
    let needed = |p: f64, level: f64| {
        let reached = normal_quantile((1.0 - p).max(f64::EPSILON));
        let reach = normal_quantile(level) + normal_quantile(POWER);
        match reached > 0.0 {
            true => evidence.values as f64 * (reach / reached).powi(2),
            false => f64::INFINITY,
        }
    };
    let difference = needed(evidence.p_difference / 2.0, 1.0 - evidence.level / 2.0);
    difference.min(needed(evidence.p_equivalence, 1.0 - alpha))
}

/// Returns the total number of blocks with which a distance is `z(level) + z(power)` standard
/// errors.
fn blocks(values: usize, error: f64, distance: f64, level: f64) -> f64 {
    if distance <= 0.0 {
        return f64::INFINITY;
    }
    let reach = normal_quantile(level) + normal_quantile(POWER);
    values as f64 * (reach * error / distance).powi(2)
}

fn standard_error(interval: &Interval, confidence: Confidence) -> f64 {
    interval.half_width() / normal_quantile(1.0 - confidence.alpha() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSURE: Evidence = Evidence {
        effect: 0.05,
        interval: Some(Interval { lo: -0.05, hi: 0.15 }),
        bound: 0.0,
        p_difference: 0.4,
        p_equivalence: 0.9,
        later: Confidence::P95,
        level: 0.05,
        fewest: 6,
        values: 10,
        ground: Ground::Tested,
    };

    #[test]
    fn half_the_half_width_takes_eight_times_the_blocks_at_80_percent_power() {
        // (2 * (1.96 + 0.84) / 1.96)^2 = 8.17.
        assert_eq!(further_blocks(&UNSURE, Confidence::P95), Some(82 - 10));
    }

    #[test]
    fn six_blocks_are_the_first_to_show_anything_and_more_show_less() {
        let level = Confidence::P95.at_look(1);
        assert_eq!(least_effect(5, level, 0.05), None);
        let (six, many) = (least_effect(6, level, 0.05), least_effect(24, level, 0.05));
        assert!(six > Some(0.07) && many < Some(0.035) && many > Some(0.03), "{six:?} {many:?}");
    }

    #[test]
    fn eight_metrics_take_more_blocks_than_one() {
        let one_of_eight = Evidence { level: 0.05 / 8.0, ..UNSURE };
        // (2 * (2.734 + 0.842) / 1.96)^2 * 10 = 133.2.
        assert_eq!(further_blocks(&one_of_eight, Confidence::P95), Some(134 - 10));
    }

    #[test]
    fn a_wide_margin_is_reached_before_a_small_effect_is_shown() {
        let near_zero = Evidence { effect: 0.001, bound: 0.101, ..UNSURE };
        // (0.1 / 0.1 * (1.645 + 0.842) / 1.96)^2 * 10 = 16.1.
        assert_eq!(further_blocks(&near_zero, Confidence::P95), Some(17 - 10));
    }

    #[test]
    fn no_effect_without_a_margin_can_never_be_answered() {
        let nothing = Evidence { effect: 0.0, ..UNSURE };
        assert_eq!(further_blocks(&nothing, Confidence::P95), None);
        let almost = Evidence { effect: 1e-6, ..UNSURE };
        assert_eq!(further_blocks(&almost, Confidence::P95), None);
    }

    #[test]
    fn with_too_few_blocks_the_plan_is_the_least_number_a_test_needs() {
        let ground = Ground::TooFew { needed: 6 };
        let one = Evidence { ground, values: 1, interval: None, ..UNSURE };
        assert_eq!(further_blocks(&one, Confidence::P95), Some(5));
    }

    #[test]
    fn a_later_look_takes_more_blocks_and_no_fewer_than_its_test_needs() {
        let later = Confidence::P95.at_look(2);
        let wide = Evidence { later, level: later.alpha(), fewest: 8, ..UNSURE };
        // (2 * (2.612 + 0.842) / 1.96)^2 * 10 = 124.2.
        assert_eq!(further_blocks(&wide, Confidence::P95), Some(125 - 10));
        let narrow = Interval { lo: 0.049, hi: 0.051 };
        let clear = Evidence { interval: Some(narrow), values: 6, p_difference: 0.001, ..wide };
        assert_eq!(further_blocks(&clear, Confidence::P95), Some(2));
    }

    #[test]
    fn the_plan_is_at_least_one_more_block() {
        let narrow = Interval { lo: 0.049, hi: 0.051 };
        let close = Evidence { interval: Some(narrow), p_difference: 0.001, ..UNSURE };
        assert_eq!(further_blocks(&close, Confidence::P95), Some(1));
    }

    /// Regression: with two modes, "about 1 more value" never sufficed.
    #[test]
    fn where_the_tests_do_not_show_what_the_interval_does_the_plan_follows_the_tests() {
        let narrow = Interval { lo: 0.049, hi: 0.051 };
        let modes = Evidence { interval: Some(narrow), values: 400, ..UNSURE };
        // 400 * ((1.96 + 0.842) / 0.842)^2 = 4433.
        let further = further_blocks(&modes, Confidence::P95).unwrap();
        assert!((4_000..4_070).contains(&further), "{further}");
    }

    #[test]
    fn the_least_detectable_effect_is_1_43_half_widths() {
        let least = least_detectable(&Interval { lo: -0.1, hi: 0.1 }, Confidence::P95);
        assert!((least - 0.142_940).abs() < 1e-6, "{least}");
    }
}
