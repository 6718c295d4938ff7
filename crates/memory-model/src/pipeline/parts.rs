//! The parts of a core that a block keeps busy.

/// Time that a block takes in the parts of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Time of the parts that fetch and decode instructions, if the block falls through and if it
    /// jumps.
    pub front_ps: u64,
    pub jumps_ps: u64,
    /// True if the block always jumps, or is assumed to, as loops do.
    pub jumps: bool,
    /// Time of the parts that execute instructions other than stores.
    pub back_ps: u64,
    /// Time in which the cache takes their stores.
    pub stores_ps: u64,
}

impl Parts {
    /// Returns the time of a block by itself.
    pub fn all_ps(self) -> u64 {
        let front_ps = if self.jumps { self.jumps_ps } else { self.front_ps };
        front_ps.max(self.back_ps).max(self.stores_ps)
    }
}
