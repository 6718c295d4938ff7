//! Guests of a host: where their vCPUs run and where their memory is.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use super::{BytesByNode, RoomByNode, Unseen};

/// The guests of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestsView {
    /// The guests: Xen's by domain, then QEMU's by process.
    pub guests: Vec<GuestView>,
    /// The cpus of each node of the host.
    pub cpus_by_node: BTreeMap<NodeId, CpuSet>,
    /// The memory of each node of the host; empty if it is unknown.
    #[serde(default)]
    pub room_by_node: RoomByNode,
    /// The facts that could not be read, with the user who could read them.
    pub unseen: Vec<Unseen>,
}

/// The hypervisor of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hypervisor {
    /// QEMU, with or without KVM.
    Qemu,
    /// Xen.
    Xen,
}

/// A guest: where its vCPUs run and where its memory is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestView {
    pub hypervisor: Hypervisor,
    /// The guest's name.
    pub name: String,
    /// The process id of QEMU, or the Xen domain.
    pub number: u32,
    /// The guest's vCPUs.
    pub vcpus: Vec<VcpuView>,
    /// The guest's memory: an entry for each backend known by name, else one for all memory.
    pub memory: Vec<GuestMemory>,
    /// Bytes of the guest's memory by host node.
    pub bytes_by_node: BytesByNode,
    /// The mean share of the guest's memory that is remote to its vCPUs, from 0 to 1.
    pub remote_share: Option<f64>,
    /// The socket on which QEMU takes commands (`numalab guest pin --qmp`).
    pub control: Option<String>,
}

/// A vCPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VcpuView {
    /// The vCPU's index in the guest.
    pub index: u32,
    /// The guest node of the vCPU, if known.
    pub guest_node: Option<u32>,
    /// The host thread that runs the vCPU.
    pub thread: Option<u32>,
    /// The cpu that the vCPU is running on or last ran on.
    pub cpu: Option<CpuId>,
    /// The node of that cpu.
    pub node: Option<NodeId>,
    /// The cpus that the vCPU may run on; `None` for all.
    pub allowed: Option<CpuSet>,
    /// The cpus that the vCPU should run on (Xen's soft affinity); `None` for all.
    pub preferred: Option<CpuSet>,
    /// The remote share of the memory of its guest node, or else of the whole guest, from 0 to 1.
    pub remote_share: Option<f64>,
}

/// A piece of guest memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestMemory {
    /// The name of the memory backend.
    pub name: String,
    /// The guest node that the memory backs, if the name shows it.
    pub guest_node: Option<u32>,
    /// The memory policies, as the kernel writes them.
    pub policies: Vec<String>,
    /// Bytes by host node.
    pub bytes_by_node: BytesByNode,
}
