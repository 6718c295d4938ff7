//! What a median does not show of a sample: its far end, and whether it has two modes.

use numalab_stats::{Direction, Extreme, Margin, Modes, Sample, two_modes};
use serde::Serialize;

/// Far ends that reach this much farther, in percent, are named even where chance could have made
/// them so.
const FAR_PERCENT: f64 = 100.0;

/// A percentile at which two samples differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FarEnd {
    /// The percentile, counted from the good end.
    pub percentile: f64,
    /// The values of baseline and candidate there.
    pub values: [f64; 2],
    /// The candidate's change in percent: of the percentile where it is shown, else of the bad end
    /// of its interval.
    pub change_percent: f64,
    /// Whether the candidate's end is the worse one.
    pub is_worse: bool,
    /// Whether the difference is shown; if not, the values are too few to exclude it.
    pub is_shown: bool,
}

impl FarEnd {
    /// The farthest percentile at which the samples are shown to differ by more than the margin,
    /// else one at which the candidate may be so far off that it has to be said.
    #[must_use]
    pub fn of(extremes: &[Extreme], direction: Direction, margin: Margin) -> Option<Self> {
        let margin = margin.as_percent();
        let shown = |extreme: &&Extreme| extreme.is_shown() && extreme.percent().abs() > margin;
        let far =
            |extreme: &&Extreme| extreme.reach_percent(direction).abs() > FAR_PERCENT.max(margin);
        let ends = || extremes.iter().rev();
        let found = ends().find(shown).or_else(|| ends().find(far))?;
        let is_shown = found.is_shown();
        let change_percent =
            if is_shown { found.percent() } else { found.reach_percent(direction) };
        Some(Self {
            percentile: found.percentile,
            values: found.values,
            change_percent,
            is_worse: (change_percent > 0.0) == (direction == Direction::LowerIsBetter),
            is_shown,
        })
    }

    /// Reports whether the candidate's end is shown to be the worse one.
    #[must_use]
    pub fn is_shown_worse(&self) -> bool {
        self.is_shown && self.is_worse
    }
}

/// Two groups of values that a median does not describe.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwoModes {
    /// The medians of the lower and of the upper group.
    pub centres: [f64; 2],
    /// The share of the values in the upper group.
    pub upper_share: f64,
}

impl TwoModes {
    /// The modes of a sample, if it has two that are farther apart than the margin; `worth` is the
    /// share of its values that are independent.
    #[must_use]
    pub fn of(sample: &Sample, worth: f64, margin: Margin) -> Option<Self> {
        let is_apart = |modes: &Modes| modes.percent_apart() > margin.as_percent();
        let modes = two_modes(sample, worth).filter(is_apart)?;
        Some(Self { centres: modes.centres, upper_share: modes.upper_share })
    }
}
