//! The ranks of a launch, and the cells that each of them measured.

use serde::{Deserialize, Serialize};

/// The launch whose ranks took a run together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launch {
    /// The launcher that started the ranks.
    pub launcher: String,
    /// The channel over which they exchanged messages.
    pub meeting: String,
    /// True if they took turns.
    pub serial: bool,
    /// The number of loads measured per size (latency), else 0.
    pub iterations: u64,
    /// The number of loads before these.
    pub warmup: u64,
    /// The ranks by number.
    pub ranks: Vec<RankSeat>,
    /// The ranks of each cell of one size, in the order of the plan: the same for every size.
    pub teams: Vec<Vec<usize>>,
}

/// The host and memory policy of a rank, in addition to its placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSeat {
    /// Its host.
    pub host: String,
    /// The requested memory policy: `bind:0`.
    pub policy: String,
}
