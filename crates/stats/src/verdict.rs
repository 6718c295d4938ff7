//! The rule from evidence to one of four answers.

use std::fmt;

use crate::evidence::{Evidence, Ground};
use crate::{Confidence, planning};

/// The direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    /// Lower is better, as for times and latencies.
    #[cfg_attr(feature = "serde", serde(rename = "lower"))]
    LowerIsBetter,
    /// Higher is better, as for bandwidths and operations per second.
    #[cfg_attr(feature = "serde", serde(rename = "higher"))]
    HigherIsBetter,
}

impl Direction {
    /// Returns the direction as a word: `lower` or `higher`.
    pub fn name(self) -> &'static str {
        match self {
            Self::LowerIsBetter => "lower",
            Self::HigherIsBetter => "higher",
        }
    }
}

/// `lower is better`.
impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is better", self.name())
    }
}

/// The answer to "is the candidate better than the baseline?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A difference is shown, for the better.
    Better,
    /// A difference is shown, for the worse.
    Worse,
    /// The difference is shown to be within the margin.
    Equivalent,
    /// Neither is shown.
    Inconclusive {
        /// Number of blocks (unpaired: values on each side) still needed for an answer with 80 %
        /// power if the true effect is the observed one, with all metrics allowed for; `None` if it
        /// is more than 100,000.
        further_blocks: Option<usize>,
    },
}

impl Verdict {
    /// Returns `true` unless the verdict is inconclusive.
    pub fn is_decided(self) -> bool {
        !matches!(self, Self::Inconclusive { .. })
    }
}

/// Judges in this order: values without variance by the effect alone; values that drift are not
/// judged; equivalence, so that a difference that is real but within the margin counts as none; a
/// difference, for which the test and the interval must agree, and the interval must reach beyond the
/// margin; otherwise inconclusive.
pub(crate) fn judge(evidence: &Evidence, direction: Direction, confidence: Confidence) -> Verdict {
    if evidence.ground == Ground::NoVariance {
        return if evidence.effect.abs() <= evidence.bound {
            Verdict::Equivalent
        } else {
            side(evidence.effect, direction)
        };
    }
    if evidence.ground == Ground::Drifts {
        return Verdict::Inconclusive { further_blocks: None };
    }
    if let Ground::TooFewInOrder { needed } = evidence.ground {
        let further_blocks = Some(needed.saturating_sub(evidence.values));
        return Verdict::Inconclusive { further_blocks };
    }
    let alpha = confidence.alpha();
    if evidence.p_equivalence <= alpha {
        return Verdict::Equivalent;
    }
    // With two modes, the interval can be within the bound although the test of equivalence, by ranks,
    // does not show it.
    let shown = |interval: crate::Interval| {
        !interval.contains(0.0) && (interval.lo < -evidence.bound || interval.hi > evidence.bound)
    };
    if evidence.interval.is_some_and(shown) && evidence.p_difference <= alpha {
        return side(evidence.effect, direction);
    }
    Verdict::Inconclusive { further_blocks: planning::further_blocks(evidence, confidence) }
}

fn side(effect: f64, direction: Direction) -> Verdict {
    if (effect < 0.0) == (direction == Direction::LowerIsBetter) {
        Verdict::Better
    } else {
        Verdict::Worse
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    const SHOWN: Evidence = Evidence {
        effect: -0.10,
        interval: Some(Interval { lo: -0.12, hi: -0.08 }),
        bound: 0.02,
        p_difference: 0.001,
        p_equivalence: 0.999,
        later: Confidence::P95,
        level: 0.05,
        fewest: 6,
        values: 20,
        ground: Ground::Tested,
    };

    fn judged(evidence: &Evidence) -> Verdict {
        judge(evidence, Direction::LowerIsBetter, Confidence::P95)
    }

    #[test]
    fn lower_is_better_for_times_and_worse_for_bandwidths() {
        assert_eq!(judged(&SHOWN), Verdict::Better);
        let of_bandwidth = judge(&SHOWN, Direction::HigherIsBetter, Confidence::P95);
        assert_eq!(of_bandwidth, Verdict::Worse);
        let interval = Some(Interval { lo: 0.08, hi: 0.12 });
        assert_eq!(judged(&Evidence { effect: 0.1, interval, ..SHOWN }), Verdict::Worse);
    }

    #[test]
    fn a_real_difference_within_the_margin_is_equivalent() {
        let tiny = Evidence {
            effect: -0.01,
            interval: Some(Interval { lo: -0.012, hi: -0.008 }),
            p_equivalence: 0.001,
            ..SHOWN
        };
        assert_eq!(judged(&tiny), Verdict::Equivalent);
        let modes = Evidence { p_equivalence: 0.5, ..tiny };
        assert!(matches!(judged(&modes), Verdict::Inconclusive { .. }), "not a change either");
    }

    #[test]
    fn equivalence_is_shown_at_the_level_itself() {
        let near = Evidence { p_equivalence: 0.049, ..SHOWN };
        assert_eq!(judged(&near), Verdict::Equivalent);
        assert_eq!(judged(&Evidence { p_equivalence: 0.051, ..SHOWN }), Verdict::Better);
    }

    #[test]
    fn an_adjusted_p_above_the_level_is_inconclusive_whatever_the_interval() {
        let unsure = judged(&Evidence { p_difference: 0.06, ..SHOWN });
        assert!(matches!(unsure, Verdict::Inconclusive { .. }));
    }

    #[test]
    fn a_small_p_with_an_interval_that_contains_zero_is_inconclusive() {
        let interval = Some(Interval { lo: -0.2, hi: 0.0 });
        let unsure = judged(&Evidence { interval, ..SHOWN });
        assert!(matches!(unsure, Verdict::Inconclusive { .. }));
        let unsure = judged(&Evidence { interval: None, ..SHOWN });
        assert!(matches!(unsure, Verdict::Inconclusive { .. }));
    }

    #[test]
    fn values_without_variance_are_judged_by_the_margin_alone() {
        let still = Evidence { ground: Ground::NoVariance, p_difference: 1.0, ..SHOWN };
        assert_eq!(judged(&still), Verdict::Better);
        assert_eq!(judged(&Evidence { effect: 0.02, ..still }), Verdict::Equivalent);
        assert_eq!(judged(&Evidence { effect: 0.03, ..still }), Verdict::Worse);
    }
}
