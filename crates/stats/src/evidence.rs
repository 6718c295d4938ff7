//! The basis of a verdict.

use crate::{Confidence, Interval};

/// The basis of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Tests.
    Tested,
    /// Too few values: no outcome of the test could show a difference.
    TooFew {
        /// Number of blocks (unpaired: values on each side) needed to show one.
        needed: usize,
    },
    /// Too few values in the order taken to see whether they depend on each other.
    TooFewInOrder {
        /// Number of values on each side needed to see it.
        needed: usize,
    },
    /// Three or more values that do not vary, as in virtual time: the effect is compared directly
    /// with the margin. A coarse clock also gives such values; the margin must then be wider than
    /// its tick.
    NoVariance,
    /// Values that drift: a difference between samples taken one after the other may come from the
    /// drift.
    Drifts,
    /// Tests that do not count, because the metric that answers the question is not decided.
    Gated,
}

/// The input of [`judge`](crate::verdict::judge); effect, interval and bound are on one scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    pub effect: f64,
    pub interval: Option<Interval>,
    pub bound: f64,
    pub p_difference: f64,
    pub p_equivalence: f64,
    /// Confidence with which more values would be judged.
    pub later: Confidence,
    /// The level that the p-value of a difference must then reach before adjustment.
    pub level: f64,
    /// The smallest number of values that it needs.
    pub fewest: usize,
    /// Number of blocks, or of values on the smaller side.
    pub values: usize,
    pub ground: Ground,
}
