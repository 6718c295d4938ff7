//! QEMU arguments (`qemu-system-x86_64`): `-smp`, `-m`, memory backends and `-numa`.
//!
//! Devices are shown near their nodes, if QEMU has a model of their kind. Packages become sockets,
//! and the L3 groups of a package become dies. Unknown distances are written as 10 and 20.

mod arguments;
mod backend;
mod cxl;
mod devices;

use numalab_topology::{AccessAttributes, Findings, Machine, MemorySideCache};

use crate::error::WriteError;
use crate::feature::{Carried, Feature};
use crate::guest::{self, Guest};
use crate::reading::Written;
use crate::regular::note_unknown_parts;
pub use arguments::{QemuMachine, QemuNode, Smp};
use backend::add;
pub use backend::{HostPages, MemoryBackend};

const FORMAT: &str = "QEMU";

/// The largest number of cpus of a q35 of QEMU 7.2 (`hw/i386/pc_q35.c`, `max_cpus`).
const MOST_CPUS: usize = 288;
/// The number of APIC ids that do not need an x2APIC.
const APIC_IDS: usize = 255;
/// The largest number of nodes of a guest (`include/sysemu/numa.h`, `MAX_NODES`).
const MOST_NODES: usize = 128;

/// The features that the arguments represent.
pub const CARRIED: Carried = Carried {
    format: "QEMU's command line",
    features: &[
        Feature::UnplacedCpus,
        Feature::Nodes,
        Feature::Memory,
        Feature::Packages,
        Feature::Cores,
        Feature::L3Groups,
        Feature::Distances,
        Feature::Access,
        Feature::MemorySideCaches,
        Feature::Cxl,
        Feature::Devices,
    ],
    but: &[
        Feature::DeviceIds,
        Feature::DeviceNames,
        Feature::Bytes,
        Feature::SharedCpus,
        Feature::CpulessInitiators,
        Feature::AccessClasses,
        Feature::Picoseconds,
    ],
};

/// Writes the arguments that make QEMU show a guest a machine like this one. They can be used with
/// any `-machine` of type `pc` or `q35` (with devices: `q35`), and do not select an accelerator.
///
/// # Errors
/// [`WriteError::Unknown`] without nodes, cpus or memory.
pub fn write(machine: &Machine) -> Result<Written<Vec<String>>, WriteError> {
    let Written { output, mut losses } = describe(machine)?;
    let mut assumed = Findings::default();
    note_unknown_parts(machine, &mut assumed);
    losses.extend(assumed.into_list());
    Ok(Written { output: output.words(), losses })
}

/// Returns the arguments of [`write()`] in structured form, with memory in ordinary pages.
///
/// # Errors
/// As [`write()`].
pub fn describe(machine: &Machine) -> Result<Written<QemuMachine>, WriteError> {
    let mut findings = Findings::default();
    let guest = Guest::of(FORMAT, machine, &mut findings)?;
    cxl::check(&guest, &mut findings)?;
    let mut attributes = Vec::new();
    cpus(&guest, &mut attributes);
    distances(&guest, &mut attributes);
    if !guest.access.is_empty() {
        heterogeneous_memory(&guest, &mut attributes);
    }
    let own_nodes = guest.nodes.iter().take_while(|node| !node.cxl).count();
    let side_caches = guest.side_caches(machine, &mut findings);
    for (index, caches) in side_caches.iter().take(own_nodes).enumerate() {
        caches.iter().for_each(|cache| add(&mut attributes, "-numa", side_cache(index, cache)));
    }
    check_size(&guest, &mut findings);
    let devices = devices::words(machine, &guest, &mut findings);
    let shape = guest.shape;
    let output = QemuMachine {
        smp: Smp {
            cpus: guest.cpus.len(),
            sockets: shape.packages,
            dies: shape.l3_groups,
            cores: shape.cores,
            threads: shape.threads,
        },
        memory_mib: guest.nodes[..own_nodes].iter().map(|node| node.memory_mib).sum(),
        nodes: (0..own_nodes).map(|index| node(&guest, index)).collect(),
        cxl: (own_nodes..guest.nodes.len()).map(|index| backend(&guest, index)).collect(),
        attributes,
        devices,
    };
    Ok(Written { output, losses: findings.into_list() })
}

/// Reports sizes that no QEMU supports, and those that older versions do not: tried with 7.2 and
/// 10.0.
fn check_size(guest: &Guest, findings: &mut Findings) {
    let (cpus, nodes) = (guest.cpus.len(), guest.nodes.len());
    if cpus > MOST_CPUS || largest_apic_id(guest) >= APIC_IDS {
        let message = format!(
            "{cpus} cpus: QEMU 7.2 takes at most {MOST_CPUS}, and without KVM APIC ids below \
             {APIC_IDS}; QEMU 10 takes more, with -cpu max"
        );
        findings.warning("cpus-beyond-qemu", "cpus", message);
    }
    if nodes > MOST_NODES {
        let message = format!("{nodes} nodes: QEMU takes at most {MOST_NODES}");
        findings.warning("nodes-beyond-qemu", "nodes", message);
    }
}

/// Returns the largest APIC id: package, L3 group, core and thread each take the bits that they
/// need.
fn largest_apic_id(guest: &Guest) -> usize {
    let shape = guest.shape;
    let bits = |count: usize| count.next_power_of_two().trailing_zeros();
    let levels = [shape.packages, shape.l3_groups, shape.cores, shape.threads];
    levels.into_iter().fold(0, |id, count| (id << bits(count)) + count - 1)
}

fn node(guest: &Guest, node: usize) -> QemuNode {
    QemuNode {
        backend: (guest.nodes[node].memory_mib > 0).then(|| backend(guest, node)),
        initiator: (!guest.access.is_empty()).then(|| guest.initiator(node)),
    }
}

fn backend(guest: &Guest, node: usize) -> MemoryBackend {
    let size_mib = guest.nodes[node].memory_mib;
    MemoryBackend { node, size_mib, ..MemoryBackend::default() }
}

fn cpus(guest: &Guest, arguments: &mut Vec<String>) {
    for cpu in &guest.cpus {
        let mut numa = format!("cpu,node-id={},socket-id={}", cpu.node, cpu.package);
        if guest.shape.l3_groups > 1 {
            numa += &format!(",die-id={}", cpu.l3_group);
        }
        numa += &format!(",core-id={},thread-id={}", cpu.core, cpu.thread);
        add(arguments, "-numa", numa);
    }
}

fn distances(guest: &Guest, arguments: &mut Vec<String>) {
    let tables = |index: usize| !guest.nodes[index].cxl;
    for (from, node) in guest.nodes.iter().enumerate().filter(|&(from, _)| tables(from)) {
        let to = node.distances.iter().enumerate();
        for (to, distance) in to.filter(|&(to, _)| to != from && tables(to)) {
            add(arguments, "-numa", format!("dist,src={from},dst={to},val={distance}"));
        }
    }
}

fn heterogeneous_memory(guest: &Guest, arguments: &mut Vec<String>) {
    add(arguments, "-machine", "hmat=on".to_owned());
    let reported = guest.access.iter().filter(|((_, target), _)| !guest.nodes[*target].cxl);
    let step_mb_s = bandwidth_step(reported.clone().map(|(_, access)| access));
    for (&(initiator, target), access) in reported {
        for (kind, value) in attributes(access, step_mb_s) {
            let pair = format!("hmat-lb,initiator={initiator},target={target},hierarchy=memory");
            add(arguments, "-numa", format!("{pair},data-type={kind}{value}"));
        }
    }
}

/// Returns the step of bandwidths in 10^6 bytes per second. They are at most 65535 steps: HMAT's
/// entries have 16 bits, and QEMU refuses larger values (`hw/core/numa.c`, `parse_numa_hmat_lb`).
fn bandwidth_step<'a>(all: impl Iterator<Item = &'a AccessAttributes>) -> u64 {
    let both = all.flat_map(|of| [of.read_bandwidth_mb_per_s, of.write_bandwidth_mb_per_s]);
    let bits = u64::BITS - both.flatten().max().unwrap_or(0).leading_zeros();
    1 << bits.saturating_sub(u16::BITS)
}

/// Returns the attributes of one pair with QEMU's names.
fn attributes(access: &AccessAttributes, step_mb_s: u64) -> Vec<(String, String)> {
    let nanoseconds = |ps| guest::nanoseconds(ps).map(|ns| format!(",latency={ns}"));
    let megabytes = |mb: Option<u64>| {
        let mb = mb.filter(|&mb| mb > 0)?;
        Some(format!(",bandwidth={}M", (mb / step_mb_s).max(1) * step_mb_s))
    };
    let latency = (nanoseconds(access.read_latency_ps), nanoseconds(access.write_latency_ps));
    let bandwidth =
        (megabytes(access.read_bandwidth_mb_per_s), megabytes(access.write_bandwidth_mb_per_s));
    let mut attributes = Vec::new();
    for ((read, write), name) in [(latency, "latency"), (bandwidth, "bandwidth")] {
        if read == write {
            attributes.extend(read.map(|value| (format!("access-{name}"), value)));
        } else {
            attributes.extend(read.map(|value| (format!("read-{name}"), value)));
            attributes.extend(write.map(|value| (format!("write-{name}"), value)));
        }
    }
    attributes
}

fn side_cache(node: usize, cache: &MemorySideCache) -> String {
    let associativity = match cache.ways {
        None => "none",
        Some(1) => "direct",
        Some(_) => "complex",
    };
    let line = cache.line_bytes.unwrap_or_default();
    format!(
        "hmat-cache,node-id={node},size={},level={},associativity={associativity},policy=none,line={line}",
        cache.size_bytes, cache.level
    )
}
