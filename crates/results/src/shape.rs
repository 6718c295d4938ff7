//! Features of a sample that its median does not show: its tail, and two modes.

use numalab_stats::{Direction, Extreme, Margin, Modes, Sample, two_modes};
use serde::{Deserialize, Serialize};

/// Change of a tail in percent above which it is reported even if it may be chance.
const FAR_PERCENT: f64 = 100.0;

/// A percentile at which two samples differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tail {
    /// The percentile, counted from the better end.
    pub percentile: f64,
    /// The values of baseline and candidate at the percentile.
    pub values: [f64; 2],
    /// The candidate's change in percent: at the percentile, if the difference is shown; otherwise
    /// the larger of that change and the change at the worse end of the interval.
    pub change_percent: f64,
    /// True if the candidate's tail is worse.
    pub is_worse: bool,
    /// True if the difference is shown; otherwise the values are too few to exclude it.
    pub is_shown: bool,
}

impl Tail {
    /// Returns the farthest percentile at which a difference is shown to exceed the margin, or else
    /// one at which the candidate may deviate far enough to be mentioned.
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

    /// Reports whether the candidate's tail is shown to be worse.
    pub fn is_shown_worse(&self) -> bool {
        self.is_shown && self.is_worse
    }
}

/// Two groups of values that a median does not describe.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TwoModes {
    /// The medians of the lower and of the upper group.
    pub centres: [f64; 2],
    /// The share of the values in the upper group.
    pub upper_share: f64,
    /// True if one of the groups has several modes itself.
    pub several: bool,
}

impl TwoModes {
    /// Returns a sample's two modes, if it has two that differ by more than the margin; `worth` is
    /// the share of its values that count as independent.
    pub fn of(sample: &Sample, worth: f64, margin: Margin) -> Option<Self> {
        let is_apart = |modes: &Modes| modes.percent_apart() > margin.as_percent();
        let modes = two_modes(sample, worth).filter(is_apart)?;
        let Modes { centres, upper_share, several, .. } = modes;
        Some(Self { centres, upper_share, several })
    }
}
