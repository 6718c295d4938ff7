//! The ranks of a launch: who they were and which cells are theirs.

use serde::{Deserialize, Serialize};

/// The launch whose ranks took a run together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launch {
    /// Who started the ranks.
    pub launcher: String,
    /// How they met.
    pub meeting: String,
    /// Whether they took turns.
    pub serial: bool,
    /// Loads measured for each size (latency), else 0.
    pub iterations: u64,
    /// Loads before these.
    pub warmup: u64,
    /// The ranks by number.
    pub ranks: Vec<RankSeat>,
    /// The ranks of each cell of a size, in the order of the plan: the same for every size.
    pub teams: Vec<Vec<usize>>,
}

/// Where a rank was, beyond what its placement says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSeat {
    /// Its host.
    pub host: String,
    /// Where its memory was asked from: `bind:0`.
    pub policy: String,
}
