//! The result of an access: the source of its line, and the vCPU's wait.

use core::time::Duration;

use crate::tlb::TlbPlace;

/// The action that an access requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// No action.
    #[default]
    None,
    /// The guest's clock advances by this many nanoseconds.
    Advance(u64),
    /// The vCPU's thread sleeps.
    Sleep(Duration),
}

/// The source of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A cache of the vCPU, or a line already in flight.
    #[default]
    Cache,
    /// Memory.
    Memory,
    /// Another vCPU's caches on the same node.
    Near,
    /// The caches of a vCPU on another node.
    Far,
}

/// The result of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The action that it requires.
    pub effect: Effect,
    /// The source of its line.
    pub source: Source,
    /// True if the access reached memory: its line was in no cache and not in flight.
    pub missed: bool,
    /// True if the vCPU's own caches had the line.
    pub own_cache: bool,
    /// True if a shared cache would have had the line with all vCPUs on one node.
    pub on_one_node: bool,
    /// Cost of memory or caches.
    pub cost_ps: u64,
    /// Part of the cost spent waiting for bandwidth.
    pub queue_ps: u64,
    /// Total wait of the vCPU.
    pub waited_ps: u64,
    /// Part of the wait that this access causes.
    pub own_wait_ps: u64,
    /// Time at which the vCPU continued after waiting for earlier accesses.
    pub resumed_ps: u64,
    /// Time at which the access is complete.
    pub done_ps: u64,
    /// The expected place of its line at the next access.
    pub known: Option<Known>,
}

/// The place where a vCPU's last access left a line, valid while nothing changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub(crate) translated: TlbPlace,
    /// Index of the line in the directory, 0 without one; [`NOT_WRITTEN`] if the vCPU has not
    /// stored to it since it came to the nearest cache.
    pub(crate) written: u32,
}

pub(crate) const NOT_WRITTEN: u32 = u32::MAX;
