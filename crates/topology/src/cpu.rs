//! One logical cpu.

use crate::id::{CpuId, NodeId};

/// A logical cpu (hardware thread) and its place in the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// The operating system's number.
    pub id: CpuId,
    /// True if the system currently schedules on it.
    pub online: bool,
    /// The node it belongs to, if any is known.
    pub node: Option<NodeId>,
    /// The package (socket), as numbered by the system.
    pub package: Option<u32>,
    /// The machine-wide dense index of its core, which SMT siblings share.
    pub core: Option<u32>,
    /// The cpu's position among the SMT siblings of its core, from 0.
    pub thread: u32,
    /// The machine-wide dense index of its L3 group (CCD on AMD): the cpus that
    /// share one level 3 cache.
    pub l3_group: Option<u32>,
    /// The APIC id, if tables gave it.
    pub apic_id: Option<u32>,
}
