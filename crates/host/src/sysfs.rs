//! Reads the machine from `/sys` and `/proc`.

mod access;
mod caches;
mod cpuinfo;
mod cpus;
mod cxl;
mod devices;
mod distances;
mod memory;
mod nodes;
mod ranges;
mod reader;

use std::path::PathBuf;

use numalab_topology::{Allowed, Cpu, CpuSet, Device, Finding, Machine, Node, NodeSet};

use crate::allowed::{allowed_now, allowed_then, isolated_now};
use crate::error_class::{Classed, ErrorClass};
use crate::root::Root;
use crate::virtual_machine::is_guest;
pub use devices::has_interface_or_disk;
pub(crate) use memory::{figures_disagree, pool_kilobytes};
use reader::Reader;

/// A machine, with the peculiarities of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub machine: Machine,
    /// Values that were ignored, replaced or are unusual, with file and value.
    pub findings: Vec<Finding>,
}

/// Reason why no machine could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SysfsError {
    /// The directory has no cpus in `sys/devices/system/cpu`, and none in `proc/cpuinfo`.
    #[error(
        "{directory}: no sys/devices/system/cpu/cpu* and no processor in proc/cpuinfo: expected a directory that holds sys/ and proc/ of a Linux machine"
    )]
    NoCpus {
        directory: PathBuf,
        /// True if it is the running system.
        live: bool,
    },
    /// The running system reports no size of memory in any file.
    #[error(
        "/proc/meminfo has no MemTotal, nor has any /sys/devices/system/node/node*/meminfo: this \
         system's memory is unknown; mount /proc (mount -t proc proc /proc), or start the \
         container with it"
    )]
    NoMemory,
}

impl Classed for SysfsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoCpus { live: true, .. } | Self::NoMemory => ErrorClass::Lacking,
            Self::NoCpus { live: false, .. } => ErrorClass::BadInput,
        }
    }
}

/// Reads the machine below `root`, without its devices. Nonsensical values are left out and
/// reported as findings; only a directory without any cpu is an error. A machine without cpu
/// directories has the cpus of `/proc/cpuinfo`; one without node directories is one node.
/// [`Machine::allowed`] of a copied tree is from its `proc/self/status`, if that restricts anything.
///
/// # Errors
/// [`SysfsError::NoCpus`] if no source lists a cpu, [`SysfsError::NoMemory`] if nothing on the
/// running system lists any memory.
pub fn read_machine(root: &Root) -> Result<Reading, SysfsError> {
    read(root, |_, _| Vec::new())
}

/// Reads the machine like [`read_machine`], with its PCI devices: a dozen files for each.
///
/// # Errors
/// As [`read_machine`].
pub fn read_machine_and_devices(root: &Root) -> Result<Reading, SysfsError> {
    read(root, devices::read)
}

/// Returns the nodes from which devices access memory, such as a GPU's own memory (Linux 5.10 or
/// later).
pub fn generic_initiators(root: &Root) -> NodeSet {
    let list = root.value("sys/devices/system/node/has_generic_initiator").ok();
    list.and_then(|list| list.parse().ok()).unwrap_or_default()
}

fn read(
    root: &Root,
    devices: impl FnOnce(&mut Reader<'_>, &[Node]) -> Vec<Device>,
) -> Result<Reading, SysfsError> {
    let mut reader = Reader::new(root);
    let mut allowed = root.is_live().then(|| allowed_now().ok()).flatten();
    let usable = allowed.as_ref().map(|allowed| &allowed.cpus);
    let mut cpus = cpus::read(&mut reader, usable);
    if cpus.is_empty() {
        cpus = cpuinfo::read(&mut reader, usable);
    }
    let isolated = cpus::isolated(&mut reader);
    if cpus.is_empty() {
        return Err(SysfsError::NoCpus {
            directory: root.directory().to_owned(),
            live: root.is_live(),
        });
    }
    match &mut allowed {
        Some(allowed) => allowed.isolated = isolated_now(&isolated, &allowed.cpus),
        None => allowed = mask_of_tree(&mut reader, &cpus, &isolated),
    }
    let caches = caches::read(&mut reader, &cpus);
    caches::assign_l3_groups(&mut cpus, &caches);
    let mut nodes = nodes::read(&mut reader, &cpus);
    let distances = distances::read(&mut reader, &nodes);
    nodes::assign_cpus(&mut reader, &mut nodes, &mut cpus, &distances);
    cxl::mark(&mut reader, &mut nodes);
    let ranges = ranges::read(&mut reader, &nodes);
    memory::complete(&mut reader, &mut nodes, &ranges);
    if root.is_live() && nodes.iter().all(|node| node.memory_bytes == 0) {
        return Err(SysfsError::NoMemory);
    }
    let devices = devices(&mut reader, &nodes);
    let mut machine = Machine {
        access: Vec::new(),
        tiers: access::tiers(&mut reader),
        devices,
        allowed,
        nodes,
        cpus,
        distances,
        caches,
        ranges,
    };
    machine.access = access::attributes(&mut reader, &machine);
    if let Some(allowed) = machine.allowed.take_if(|_| !root.is_live()) {
        machine.allowed = restriction(&mut reader, &machine, allowed);
    }
    note_guest(&mut reader, &machine);
    machine.note_odd_distances(&mut reader.findings);
    let mut findings = reader.findings.into_list();
    // Contradictions between files have been reported above; spanning groups are normal in virtual
    // machines.
    let odd = |code: &str| ["l3-group-spans-nodes", "free-exceeds-memory"].contains(&code);
    findings.extend(machine.validate().into_iter().filter(|finding| odd(&finding.code)));
    Ok(Reading { machine, findings })
}

/// Returns the restrictions of a copied tree if they allow less than the tree has. An empty set of
/// nodes means unknown, and a set of other nodes belongs to another machine.
fn restriction(
    reader: &mut Reader<'_>,
    machine: &Machine,
    mut allowed: Allowed,
) -> Option<Allowed> {
    let nodes = machine.memory_nodes();
    let is_known = !allowed.memory_nodes.is_empty() && !nodes.is_empty();
    if is_known && allowed.memory_nodes.intersection(&nodes).is_empty() {
        let message = format!(
            "memory of nodes {} is allowed, but only nodes {nodes} have memory: the list is ignored",
            allowed.memory_nodes
        );
        reader.warn("mems-of-other-nodes", "proc/self/status", message);
        allowed.memory_nodes = NodeSet::new();
    }
    let has_all = allowed.memory_nodes.is_empty() || nodes.is_subset(&allowed.memory_nodes);
    let is_less = !machine.online_cpus().is_subset(&allowed.cpus) || !has_all;
    is_less.then_some(allowed)
}

/// Returns the restrictions of a copied tree, unless they name cpus that the tree does not have.
fn mask_of_tree(reader: &mut Reader<'_>, cpus: &[Cpu], isolated: &CpuSet) -> Option<Allowed> {
    let allowed = allowed_then(reader.root, cpus, isolated)?;
    if allowed.cpus.is_empty() {
        let message = "none of the online cpus may be used: the mask is ignored".to_owned();
        reader.warn("affinity-of-other-cpus", "proc/self/status", message);
        return None;
    }
    Some(allowed)
}

/// Notes that a virtual machine with one node may have memory on several nodes of its host.
fn note_guest(reader: &mut Reader<'_>, machine: &Machine) {
    if machine.nodes.len() == 1 && machine.cpus.len() > 1 && is_guest(reader.root) {
        let message = "this virtual machine sees one node, which may hide several of its host's";
        reader.note("guest-of-one-node", reader::NODE_DIRECTORY, message.to_owned());
    }
}
