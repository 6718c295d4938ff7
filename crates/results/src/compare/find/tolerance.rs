//! The tolerance of a comparison.

use numalab_stats::{Error, Margin};

/// The largest relative difference that does not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance(Margin);

impl Tolerance {
    /// Makes a tolerance from percent of the baseline.
    ///
    /// # Errors
    /// Same as [`Margin::percent`]: anything but a positive, finite percentage.
    pub fn percent(percent: f64) -> Result<Self, Error> {
        Margin::percent(percent).map(Self)
    }

    /// Returns the tolerance as an equivalence margin.
    pub fn margin(self) -> Margin {
        self.0
    }

    /// Returns the tolerance in percent.
    pub fn as_percent(self) -> f64 {
        self.0.as_percent()
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self(Margin::TWO_PERCENT)
    }
}
