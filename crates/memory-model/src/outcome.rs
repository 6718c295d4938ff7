//! How an access went: where its line came from, and until when the vCPU waited for what.

use core::time::Duration;

use crate::tlb::TlbPlace;

/// What must be done for an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    #[default]
    None,
    /// The guest's clock goes on by so many nanoseconds.
    Advance(u64),
    /// The vCPU's thread sleeps.
    Sleep(Duration),
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A cache that the vCPU reaches, or a line on its way already.
    #[default]
    Cache,
    /// Memory.
    Memory,
    /// Another vCPU's caches on its own node.
    Near,
    /// Those of a vCPU on another node.
    Far,
}

/// How an access went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What must be done for it.
    pub effect: Effect,
    /// Where its line came from.
    pub source: Source,
    /// Whether it reached memory: no cache had its line, nor was it on its way.
    pub missed: bool,
    /// Whether caches of its own had the line.
    pub own_cache: bool,
    /// Whether a shared cache would have had the line if all vCPUs were on one node.
    pub on_one_node: bool,
    /// What memory or caches took.
    pub cost_ps: u64,
    /// Of that, waiting for bandwidth.
    pub queue_ps: u64,
    /// How long the vCPU waited in all, and of that for this access itself.
    pub waited_ps: u64,
    /// As above.
    pub own_wait_ps: u64,
    /// When the vCPU went on after it had waited for accesses before this one.
    pub resumed_ps: u64,
    /// When the access is done.
    pub done_ps: u64,
    /// Where its line is to be found next time.
    pub known: Option<Known>,
}

/// A line as a vCPU accessed it last: where it is to be found if nothing has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub(crate) translated: TlbPlace,
    /// Where the directory has it; [`NOT_WRITTEN`] if the vCPU did not store there.
    pub(crate) written: u32,
}

pub(crate) const NOT_WRITTEN: u32 = u32::MAX;
