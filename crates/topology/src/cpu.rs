//! One logical cpu.

use crate::id::{CpuId, NodeId};

/// A logical cpu (hardware thread) and where it sits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// The operating system's number.
    pub id: CpuId,
    /// Whether the system schedules on it now.
    pub online: bool,
    /// The node it belongs to, if any is known.
    pub node: Option<NodeId>,
    /// The package (socket) as the system numbers it.
    pub package: Option<u32>,
    /// The machine-wide dense index of its core: SMT siblings share it.
    pub core: Option<u32>,
    /// Its position among the siblings of its core, 0 for the first.
    pub thread: u32,
    /// The machine-wide dense index of its L3 group (CCD on AMD): the cpus that
    /// share one level 3 cache.
    pub l3_group: Option<u32>,
    /// The APIC id, where tables gave it.
    pub apic_id: Option<u32>,
}
