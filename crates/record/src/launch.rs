//! The ranks of a launch, and the cells that each of them measured.

use serde::{Deserialize, Serialize};

/// The parallel launch that measured a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Launch {
    /// The launcher that started the ranks.
    pub launcher: String,
    /// The channel over which they exchanged messages.
    pub meeting: String,
    /// True if the ranks took turns.
    pub serial: bool,
    /// The number of loads measured per size (latency), else 0.
    pub iterations: u64,
    /// The number of warm-up loads before the measured ones.
    pub warmup: u64,
    /// The ranks by number.
    pub ranks: Vec<RankSeat>,
    /// The ranks of each cell of one size, in the order of the plan, which is the same for every
    /// size.
    pub teams: Vec<Vec<usize>>,
}

/// The host and memory policy of a rank, in addition to its placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RankSeat {
    /// The rank's host.
    pub host: String,
    /// The requested memory policy: `bind:0`.
    pub policy: String,
}
