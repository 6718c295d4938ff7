//! Guests on this host: where their virtual cpus run, and where their memory lies.

mod advice;
mod qemu;
pub mod xen;

use numalab_host::{Root, read_machine};
use numalab_topology::{CpuId, CpuSet, Machine, NodeId};
use serde::Serialize;

use crate::error::ExploreError;
use crate::finding::Finding;
use crate::spread::{self, BytesByNode};

/// The guests of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestsView {
    /// The guests: those of Xen by domain, then those of QEMU by process.
    pub guests: Vec<GuestView>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is missing here and who could see it.
    pub unseen: Vec<String>,
}

/// What runs a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Hypervisor {
    /// QEMU, with or without KVM.
    Qemu,
    /// Xen.
    Xen,
}

/// A guest.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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

/// Looks for guests of QEMU among the processes, and asks `xl` where Xen runs.
///
/// # Errors
/// [`ExploreError::Machine`] if the machine cannot be read, [`ExploreError::Xl`] if Xen
/// runs and `xl` fails.
pub fn read_guests(root: &Root) -> Result<GuestsView, ExploreError> {
    let machine = read_machine(root)?.machine;
    let mut view = GuestsView::default();
    if root.is_live() && xen::is_dom0() {
        let (guests, unseen) = xen::read_live()?;
        view.guests = guests;
        view.unseen.extend(unseen);
    }
    qemu::read(root, &machine, &mut view);
    view.guests.iter_mut().for_each(GuestView::weigh);
    view.findings = findings(&view.guests, &machine);
    Ok(view)
}

/// What is wrong with these guests on this host; of Xen's guests the machine is not asked.
#[must_use]
pub fn findings(guests: &[GuestView], machine: &Machine) -> Vec<Finding> {
    guests.iter().flat_map(|guest| advice::findings(guest, machine)).collect()
}

impl GuestView {
    /// Gives each virtual cpu its remote share, and the guest their mean.
    pub fn weigh(&mut self) {
        let (mut sum, mut count) = (0.0, 0.0);
        for vcpu in &mut self.vcpus {
            let own = self
                .memory
                .iter()
                .find(|memory| memory.guest_node.is_some() && memory.guest_node == vcpu.guest_node);
            let bytes = own.map_or(&self.bytes_by_node, |memory| &memory.bytes_by_node);
            vcpu.remote_share = vcpu.node.and_then(|node| spread::share_beside(bytes, node));
            if let Some(share) = vcpu.remote_share {
                sum += share;
                count += 1.0;
            }
        }
        self.remote_share = (count > 0.0).then(|| sum / count);
    }
}
