//! How much change counts as none.

use numalab_stats::{Error, Margin};

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
