//! Guests of a host: where their virtual cpus run, and where their memory lies.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use super::{BytesByNode, Unseen};

/// The guests of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestsView {
    /// The guests: those of Xen by domain, then those of QEMU by process.
    pub guests: Vec<GuestView>,
    /// The cpus of each node of the host.
    pub cpus_by_node: BTreeMap<NodeId, CpuSet>,
    /// What is missing here and who could see it.
    pub unseen: Vec<Unseen>,
}

/// What runs a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Hypervisor {
    /// QEMU, with or without KVM.
    Qemu,
    /// Xen.
    Xen,
}

/// A guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestView {
    /// What runs it.
    pub hypervisor: Hypervisor,
    /// Its name.
    pub name: String,
    /// The process of QEMU, or the domain of Xen.
    pub number: u32,
    /// Its virtual cpus.
    pub vcpus: Vec<VcpuView>,
    /// Its memory: one entry for each backend that is known by name, else one in all.
    pub memory: Vec<GuestMemory>,
    /// Bytes of its memory by node of the host.
    pub bytes_by_node: BytesByNode,
    /// The share of its memory that is remote to its virtual cpus, 0 to 1: their mean.
    pub remote_share: Option<f64>,
    /// Where a QEMU takes commands from others (`numalab guest pin --qmp`).
    pub control: Option<String>,
}

/// A virtual cpu.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VcpuView {
    /// Its index in the guest.
    pub index: u32,
    /// The guest's node that it is on, where known.
    pub guest_node: Option<u32>,
    /// The thread of the host that runs it.
    pub thread: Option<u32>,
    /// The cpu that it runs on, or ran on last.
    pub cpu: Option<CpuId>,
    /// The node of that cpu.
    pub node: Option<NodeId>,
    /// The cpus that it may run on; `None` for all.
    pub allowed: Option<CpuSet>,
    /// The cpus that it should run on (Xen's soft affinity); `None` for all.
    pub preferred: Option<CpuSet>,
    /// The share of its memory that is remote, 0 to 1: of the memory of its guest node,
    /// or else of the whole guest.
    pub remote_share: Option<f64>,
}

/// A piece of guest memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestMemory {
    /// Its backend's name.
    pub name: String,
    /// The guest's node that it is, where the name tells.
    pub guest_node: Option<u32>,
    /// Its policies in the kernel's words.
    pub policies: Vec<String>,
    /// Bytes by node of the host.
    pub bytes_by_node: BytesByNode,
}
