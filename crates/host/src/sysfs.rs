//! Reads the machine from `/sys` and `/proc`.

mod access;
mod caches;
mod core_kinds;
mod cpuinfo;
mod cpus;
mod cxl;
mod devices;
mod distances;
mod error;
mod memory;
mod nodes;
mod ranges;
mod reader;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use numalab_record::Pages;
use numalab_topology::{
    Allowed, Cpu, CpuSet, Device, Finding, LOCAL_DISTANCE, Machine, Node, NodeId, NodeSet,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::allowed::{allowed_now, allowed_then, isolated_now};
use crate::root::Root;
use crate::system_page::{base_page_bytes_of, transparent_huge_page_bytes};
use crate::virtual_machine::is_guest;
pub use devices::has_interface_or_disk;
pub use error::SysfsError;
pub(crate) use memory::figures_disagree;
use reader::Reader;

/// The findings of [`Machine::validate`] that are reported: contradictions between files are reported by
/// their readers, and other oddities are usual.
const ODD: [&str; 5] = [
    "l3-group-spans-nodes",
    "core-spans-nodes",
    "free-exceeds-memory",
    "pool-exceeds-memory",
    "access-local-slower",
];

/// A machine, with the irregularities of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineReading {
    pub machine: Machine,
    /// Values that were ignored, replaced or are unusual, with file and value.
    pub findings: Vec<Finding>,
}

/// Reads the machine below `root`, without its devices. Nonsensical values are left out and
/// reported as findings; only a directory without any cpu is an error. A machine without cpu
/// directories has the cpus of `/proc/cpuinfo`, or those of its nodes; one without node directories is
/// one node.
/// [`Machine::allowed`] of a copied tree is from its `proc/self/status`, if that restricts anything.
///
/// # Errors
/// [`SysfsError::NoCpus`] if no source lists a cpu, [`SysfsError::NoDirectory`] or
/// [`SysfsError::NotDirectory`] if that is why, [`SysfsError::TooManyOpen`],
/// [`SysfsError::NoMemory`] if nothing on the running system lists any memory.
pub fn read_machine(root: &Root) -> Result<MachineReading, SysfsError> {
    read(root, |_, _| Vec::new())
}

/// Reads the machine like [`read_machine`], with its PCI devices: a dozen files for each.
///
/// # Errors
/// As [`read_machine`].
pub fn read_machine_and_devices(root: &Root) -> Result<MachineReading, SysfsError> {
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
) -> Result<MachineReading, SysfsError> {
    check_open(root)?;
    let mut reader = Reader::new(root);
    let mut allowed = root.is_live().then(|| allowed_now().ok()).flatten();
    let usable = allowed.as_ref().map(|allowed| &allowed.cpus);
    let mut cpus = cpus::read(&mut reader, usable);
    cpus::note_unknown_cores(&mut reader, &cpus);
    core_kinds::note(&mut reader, &cpus);
    if cpus.is_empty() {
        cpus = cpuinfo::read(&mut reader, usable);
    }
    if cpus.is_empty() {
        cpus = nodes::listed_cpus(&mut reader);
    }
    let isolated = cpus::isolated(&mut reader);
    if cpus.is_empty() {
        return Err(no_cpus(root));
    }
    match &mut allowed {
        Some(allowed) => allowed.isolated = isolated_now(&isolated, &allowed.cpus),
        None => allowed = mask_of_tree(&mut reader, &cpus, &isolated),
    }
    let caches = caches::read(&mut reader, &cpus);
    caches::assign_l3_groups(&mut cpus, &caches);
    check_nodes(root, allowed.as_ref())?;
    let mut nodes = nodes::read(&mut reader, &cpus);
    cpus::add_hidden(&mut reader, &mut cpus, &nodes);
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
    note_oddities(&mut reader, &machine);
    let mut findings = reader.findings.into_list();
    let odd = |code: &str| ODD.contains(&code);
    findings.extend(machine.validate().into_iter().filter(|finding| odd(&finding.code)));
    Ok(MachineReading { machine, findings })
}

/// Checks that a file can be opened; the readers open one at a time.
fn check_open(root: &Root) -> Result<(), SysfsError> {
    let directory = root.directory();
    match rustix::fs::open(directory, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
            Err(SysfsError::TooManyOpen { directory: directory.to_owned(), errno })
        }
        _ => Ok(()),
    }
}

fn no_cpus(root: &Root) -> SysfsError {
    let directory = root.directory().to_owned();
    match (directory.is_dir(), directory.exists()) {
        (false, false) => SysfsError::NoDirectory(directory),
        (false, true) => SysfsError::NotDirectory(directory),
        (true, _) => {
            let instead = tree_nearby(&directory);
            SysfsError::NoCpus { directory, instead, live: root.is_live() }
        }
    }
}

/// Returns the tree that the directory is a part of, or that is in it.
fn tree_nearby(directory: &Path) -> Option<PathBuf> {
    let has_cpus = |tree: &Path| tree.join("sys/devices/system/cpu").is_dir();
    let is_part_of = |tree: &&Path| {
        ["sys", "proc"].iter().any(|part| directory.starts_with(tree.join(part))) && has_cpus(tree)
    };
    let above = directory.ancestors().skip(1).find(is_part_of);
    // Of `sys` alone it is the working directory.
    let above = above.map(|tree| if tree == Path::new("") { ".".into() } else { tree.to_owned() });
    above.or_else(|| {
        let inside = directory.read_dir().ok()?.flatten().map(|entry| entry.path());
        inside.filter(|inside| has_cpus(inside)).min()
    })
}

fn note_oddities(reader: &mut Reader<'_>, machine: &Machine) {
    note_hidden_nodes(reader, machine);
    note_invented_distances(reader, machine);
    note_offline_memory(reader, machine);
    note_page_sizes(reader);
    machine.note_odd_shapes(&mut reader.findings);
    machine.note_odd_distances(&mut reader.findings);
    let cause = nodes::by_fake(reader);
    machine.note_equally_near(&mut reader.findings, reader::NODE_DIRECTORY, cause);
}

/// Checks that the running system shows its nodes, or has one.
fn check_nodes(root: &Root, allowed: Option<&Allowed>) -> Result<(), SysfsError> {
    match root.is_live() && root.numbered(reader::NODE_DIRECTORY, "node").is_empty() {
        true => check_one_node(allowed),
        false => Ok(()),
    }
}

/// Checks that a system without node directories can be taken for one node.
fn check_one_node(allowed: Option<&Allowed>) -> Result<(), SysfsError> {
    let nodes = allowed.map(|allowed| allowed.memory_nodes.clone()).unwrap_or_default();
    let is_one = nodes.is_empty() || nodes == NodeSet::from_iter([NodeId(0)]);
    if is_one { Ok(()) } else { Err(SysfsError::NoNodes { nodes }) }
}

/// Returns the restrictions of a copied tree if they allow less than the tree has. A set of nodes that
/// is empty is unknown, and one of other nodes is of another machine.
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

/// Notes transparent huge pages that are not 2 MiB, their size on most processors with pages of 4
/// KiB.
fn note_page_sizes(reader: &mut Reader<'_>) {
    let Some(huge) = transparent_huge_page_bytes(reader.root).filter(|huge| *huge != 2 << 20)
    else {
        return;
    };
    let name = |bytes| Pages::Sized(bytes).name();
    let base = base_page_bytes_of(reader.root).map(name);
    let base = base.map_or_else(String::new, |base| format!(" and base pages {base}"));
    let message = format!(
        "transparent huge pages have {}{base}: a smaller buffer gets no huge page",
        name(huge)
    );
    reader.note("page-sizes", "sys/kernel/mm/transparent_hugepage", message);
}

/// Notes nodes with all memory offline, as that of a CXL device before it is brought online.
fn note_offline_memory(reader: &mut Reader<'_>, machine: &Machine) {
    for node in machine.nodes.iter().filter(|node| !node.may_have_memory()) {
        let directory = nodes::directory(node.id);
        let blocks = reader.root.numbered(&directory, "memory").into_iter();
        let states =
            blocks.map(|block| reader.root.value(&format!("{directory}/memory{block}/state")));
        let is_offline =
            states.into_iter().all(|state| state.is_ok_and(|state| state == "offline"));
        let ranges = machine.ranges.iter().filter(|range| range.node == node.id);
        let offline_bytes: u64 = ranges.map(|range| range.length_bytes).sum();
        if offline_bytes > 0 && is_offline {
            let message = format!(
                "{} MiB are offline: `daxctl online-memory`, or `echo online` to the file `state` of \
                 each memory block, brings them online",
                offline_bytes >> 20
            );
            reader.note("memory-offline", &directory, message);
        }
    }
}

/// Notes that a machine with one node may hide several: a virtual machine those of its host, a
/// machine with several packages those that its firmware or the kernel joins.
fn note_hidden_nodes(reader: &mut Reader<'_>, machine: &Machine) {
    if machine.nodes.len() != 1 || machine.cpus.len() <= 1 {
        return;
    }
    let packages = machine.packages().len();
    if is_guest(reader.root) {
        let message = "this virtual machine sees one node, which may hide several of its host's";
        reader.note("guest-of-one-node", reader::NODE_DIRECTORY, message.to_owned());
    } else if packages > 1 && !reader.root.numbered(reader::NODE_DIRECTORY, "node").is_empty() {
        let command_line = reader.document("proc/cmdline").unwrap_or_default();
        let cause = match command_line.split_ascii_whitespace().any(|word| word == "numa=off") {
            true => "the kernel option numa=off hides the others",
            false => {
                "their memory may be interleaved by the firmware, whose tables name one node, or be \
                 equally near"
            }
        };
        let message = format!("{packages} packages have one node: {cause}");
        reader.note("packages-of-one-node", reader::NODE_DIRECTORY, message);
    }
}

/// The nodes of a machine that can all be equally far from each other: each package is linked to
/// three others at most.
const MOST_EQUALLY_FAR: usize = 4;

/// Notes that a virtual machine has one distance between more nodes than hardware can have at one
/// distance.
fn note_invented_distances(reader: &mut Reader<'_>, machine: &Machine) {
    let nodes = 0..machine.nodes.len();
    let pairs = nodes.clone().flat_map(|from| nodes.clone().map(move |to| (from, to)));
    let remote = pairs.filter(|(from, to)| from != to);
    let distances: BTreeSet<_> = remote.map(|(from, to)| machine.distances.get(from, to)).collect();
    let is_one = distances.len() == 1 && distances.first() > Some(&Some(LOCAL_DISTANCE));
    if nodes.len() > MOST_EQUALLY_FAR && is_one && is_guest(reader.root) {
        let message = format!(
            "the {} nodes of this virtual machine are all equally far from each other, which is what \
             hypervisors set by default: distances of its host may differ",
            machine.nodes.len()
        );
        reader.note("guest-distances", reader::NODE_DIRECTORY, message);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::error_class::{Classed, ErrorClass};
    use crate::tests::in_own_process;

    #[test]
    fn without_a_free_descriptor_the_limit_is_named_and_no_missing_file() {
        let test = "sysfs::tests::without_a_free_descriptor_the_limit_is_named_and_no_missing_file";
        if !in_own_process(test, Duration::from_secs(60)) {
            return;
        }
        let usual = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..usual }).unwrap();
        let error = read_machine(&Root::live()).unwrap_err();
        // Sanitizers open files at the process's end.
        setrlimit(Resource::Nofile, usual).unwrap();
        assert_eq!(error.class(), ErrorClass::Lacking);
        let said = error.to_string();
        assert!(said.contains("Too many open files") && said.contains("ulimit -n"), "{said}");
    }

    #[test]
    fn a_system_of_several_nodes_is_not_taken_for_one_where_sysfs_is_missing() {
        let check = |nodes: &str| {
            let memory_nodes = nodes.parse().unwrap();
            check_one_node(Some(&Allowed { memory_nodes, ..Allowed::default() }))
        };
        assert_eq!((check(""), check("0"), check_one_node(None)), (Ok(()), Ok(()), Ok(())));
        let error = check("0-1").unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("memory of nodes 0,1: "), "{error}");
        assert!(check("1").is_err(), "node 0 is another one");
    }
}
