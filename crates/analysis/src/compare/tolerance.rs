//! How much change counts as none.

use numalab_stats::{Error, Interval, Margin, Verdict};

/// By how much a figure may differ without anything of importance having changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance(Margin);

impl Tolerance {
    /// A tolerance in percent of the baseline.
    ///
    /// # Errors
    /// As [`Margin::percent`]: what is not a positive, finite percentage.
    pub fn percent(percent: f64) -> Result<Self, Error> {
        Margin::percent(percent).map(Self)
    }

    /// The tolerance as a margin of equivalence.
    #[must_use]
    pub fn margin(self) -> Margin {
        self.0
    }

    /// The tolerance in percent.
    #[must_use]
    pub fn as_percent(self) -> f64 {
        self.0.as_percent()
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self(Margin::TWO_PERCENT)
    }
}

/// The verdict, but better or worse only where the whole interval lies beyond the
/// tolerance.
#[must_use]
pub fn beyond(verdict: Verdict, interval: Option<Interval>, tolerance: Tolerance) -> Verdict {
    let least = tolerance.as_percent();
    let is_beyond = interval.is_some_and(|interval| {
        // Symmetric in ratio, as the margin is: +5 % is undone by -4.76 %.
        interval.lo > least || interval.hi < -100.0 * least / (100.0 + least)
    });
    match verdict {
        Verdict::Better | Verdict::Worse if !is_beyond => {
            Verdict::Inconclusive { further_blocks: None }
        }
        verdict => verdict,
    }
}
