//! Guests of Xen, as seen by its first domain.

use std::path::Path;
use std::thread;
use std::time::Duration;

use numalab_guest::xen::text::{
    ListedDomain, ListedVcpu, PAGE_BYTES, XenDump, read_list, read_vcpus,
};
use numalab_guest::xen::tool_path;
use numalab_host::{CommandError, Root, output_of, tool};
use numalab_record::explore::{BytesByNode, GuestMemory, GuestView, Hypervisor, Unseen, VcpuView};

use super::weigh;
use crate::error::ExploreError;

/// Time limit for a toolstack; one that takes longer has lost its daemon.
const LIMIT: Duration = Duration::from_secs(30);
/// The firmware's table of nodes in Linux.
const SRAT: &str = "/sys/firmware/acpi/tables/SRAT";
/// The console takes a moment to be written.
const SETTLE: Duration = Duration::from_millis(300);

/// Returns true if this is Xen's first domain, according to the file that its drivers make.
pub fn is_dom0() -> bool {
    let capabilities = Root::live().value("proc/xen/capabilities").unwrap_or_default();
    capabilities.contains("control_d") || Path::new("/dev/xen/privcmd").exists()
}

/// Returns the information that a hypervisor without node support cannot give; `tables` is true if
/// the firmware describes nodes.
pub fn unseen(dump: &XenDump, tables: bool) -> Option<Unseen> {
    (dump.nodes.len() == 1 && tables).then_some(Unseen::NodesOfDomains)
}

/// Queries `xl`: the list, the vCPUs, and the debug key `u` for the placement of memory.
///
/// # Errors
/// [`ExploreError::Xl`] if it is missing or fails.
pub fn read_live() -> Result<(Vec<GuestView>, Option<Unseen>), ExploreError> {
    let list = xl(&["list", "-n"])?;
    let vcpus = xl(&["vcpu-list"])?;
    xl(&["debug-keys", "u"])?;
    thread::sleep(SETTLE);
    let dump = XenDump::read(&xl(&["dmesg"])?);
    let unseen = unseen(&dump, Path::new(SRAT).exists());
    Ok((placement(&list, &vcpus, &dump), unseen))
}

fn xl(arguments: &[&str]) -> Result<String, CommandError> {
    output_of(tool(tool_path("xl"), arguments), LIMIT)
}

/// Returns the guests according to the output of `xl list -n`, `xl vcpu-list` and the debug key
/// `u`, with their shares computed.
pub fn placement(list: &str, vcpus: &str, dump: &XenDump) -> Vec<GuestView> {
    let vcpus = read_vcpus(vcpus);
    let mut guests: Vec<GuestView> =
        read_list(list).into_iter().map(|domain| guest(domain, &vcpus, dump)).collect();
    guests.iter_mut().for_each(weigh);
    guests
}

fn guest(domain: ListedDomain, vcpus: &[ListedVcpu], dump: &XenDump) -> GuestView {
    let known = dump.pages_of(domain.domain).into_iter().flatten();
    let bytes_by_node: BytesByNode = known
        .filter(|(_, pages)| **pages > 0)
        .map(|(node, pages)| (*node, pages.saturating_mul(PAGE_BYTES)))
        .collect();
    let vcpus = vcpus.iter().filter(|vcpu| vcpu.domain == domain.domain);
    GuestView {
        hypervisor: Hypervisor::Xen,
        number: domain.domain,
        vcpus: vcpus.map(|vcpu| vcpu_view(vcpu, dump)).collect(),
        memory: vec![GuestMemory {
            name: domain.name.clone(),
            bytes_by_node: bytes_by_node.clone(),
            ..GuestMemory::default()
        }],
        name: domain.name,
        bytes_by_node,
        remote_share: None,
        control: None,
    }
}

fn vcpu_view(vcpu: &ListedVcpu, dump: &XenDump) -> VcpuView {
    VcpuView {
        index: vcpu.index,
        cpu: vcpu.cpu,
        node: vcpu.cpu.and_then(|cpu| dump.cpus.get(&cpu).copied()),
        allowed: vcpu.hard.clone(),
        preferred: vcpu.soft.clone(),
        ..VcpuView::default()
    }
}
