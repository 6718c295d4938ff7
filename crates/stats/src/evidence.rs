//! What a verdict rests on.

use crate::Interval;

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// On tests.
    Tested,
    /// On too few values: no outcome of the test could show a difference.
    TooFew {
        /// Blocks (unpaired: values on each side) with which one could.
        needed: usize,
    },
    /// On values that do not vary (three or more), as virtual time gives them: the effect is
    /// compared with the margin as it stands. A coarse clock gives such values too: then the
    /// margin must be wider than its tick.
    NoVariance,
    /// On values that drift: a difference between samples taken one after the other may be the
    /// drift's.
    Drifts,
    /// On tests that do not count, since the metric that answers the question is not decided.
    Gated,
}

/// All that [`judge`](crate::verdict::judge) looks at; effect, interval and bound in one scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    pub effect: f64,
    pub interval: Option<Interval>,
    pub bound: f64,
    pub p_difference: f64,
    pub p_equivalence: f64,
    /// What the p-value of a difference must reach before it is adjusted.
    pub level: f64,
    /// Blocks, or values on the smaller side.
    pub values: usize,
    pub ground: Ground,
}
