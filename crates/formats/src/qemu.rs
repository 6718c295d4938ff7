//! QEMU arguments (`qemu-system-x86_64`): `-smp`, `-m`, memory backends and `-numa`.
//!
//! Packages become sockets and the L3 groups of one become dies. Distances that are not
//! known are written as 10 and 20.

mod arguments;

use numalab_topology::{AccessAttributes, Findings, Machine, MemorySideCache};

use crate::error::WriteError;
use crate::feature::Feature;
use crate::guest::{Guest, HostPlacement};
use crate::reading::Written;
pub use arguments::{HostPages, MemoryBackend, QemuMachine, QemuNode, Smp};

const FORMAT: &str = "QEMU";
/// Levels of memory-side caches in a HMAT (ACPI 6.5, section 5.2.28.5).
const MOST_CACHE_LEVELS: u8 = 3;

/// What it carries beside nodes, online cpus and memory.
pub const CARRIES: &[Feature] = &[
    Feature::Packages,
    Feature::Cores,
    Feature::L3Groups,
    Feature::Distances,
    Feature::Access,
    Feature::MemorySideCaches,
];

/// Writes the arguments that make QEMU show a guest a machine like this one. They
/// go with any `-machine` of type `pc` or `q35`, and leave out the accelerator and devices.
///
/// # Errors
/// [`WriteError::Unknown`] without nodes, cpus or memory.
pub fn write(machine: &Machine, host: &HostPlacement) -> Result<Written<Vec<String>>, WriteError> {
    let Written { mut output, losses } = describe(machine)?;
    for backend in output.backends_mut() {
        if let Some(page_bytes) = host.huge_page_bytes {
            backend.pages = HostPages::Huge { page_bytes };
        }
        let host = host.nodes.get(backend.node);
        backend.host_nodes = host.map(|host| host.node).into_iter().collect();
    }
    Ok(Written { output: output.words(), losses })
}

/// The arguments of [`write()`] by what they mean, with memory of the usual pages.
///
/// # Errors
/// As [`write()`].
pub fn describe(machine: &Machine) -> Result<Written<QemuMachine>, WriteError> {
    let mut findings = Findings::default();
    let guest = Guest::of(FORMAT, machine, &mut findings)?;
    let mut attributes = Vec::new();
    cpus(&guest, &mut attributes);
    distances(&guest, &mut attributes);
    if !guest.access.is_empty() {
        heterogeneous_memory(&guest, &mut attributes, &mut findings);
    }
    side_caches(machine, &guest, &mut attributes, &mut findings);
    let shape = guest.shape;
    let output = QemuMachine {
        smp: Smp {
            cpus: guest.cpus.len(),
            sockets: shape.packages,
            dies: shape.l3_groups,
            cores: shape.cores,
            threads: shape.threads,
        },
        memory_mib: guest.memory_mib(),
        nodes: (0..guest.nodes.len()).map(|index| node(&guest, index)).collect(),
        attributes,
    };
    Ok(Written { output, losses: findings.into_list() })
}

fn node(guest: &Guest, node: usize) -> QemuNode {
    let size_mib = guest.nodes[node].memory_mib;
    let backend = MemoryBackend { node, size_mib, ..MemoryBackend::default() };
    QemuNode {
        backend: (size_mib > 0).then_some(backend),
        initiator: (!guest.access.is_empty()).then(|| guest.initiator(node)),
    }
}

fn add(arguments: &mut Vec<String>, option: &str, value: String) {
    arguments.push(option.to_owned());
    arguments.push(value);
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
    for (from, node) in guest.nodes.iter().enumerate() {
        for (to, distance) in node.distances.iter().enumerate().filter(|&(to, _)| to != from) {
            add(arguments, "-numa", format!("dist,src={from},dst={to},val={distance}"));
        }
    }
}

fn heterogeneous_memory(guest: &Guest, arguments: &mut Vec<String>, findings: &mut Findings) {
    add(arguments, "-machine", "hmat=on".to_owned());
    for (&(initiator, target), access) in &guest.access {
        for (kind, value) in attributes(access, findings) {
            let pair = format!("hmat-lb,initiator={initiator},target={target},hierarchy=memory");
            add(arguments, "-numa", format!("{pair},data-type={kind}{value}"));
        }
    }
}

/// Memory-side caches, which QEMU takes only of a node whose latency and bandwidth were given,
/// level by level from the memory and each larger than the one before.
fn side_caches(
    machine: &Machine,
    guest: &Guest,
    arguments: &mut Vec<String>,
    findings: &mut Findings,
) {
    let online = machine.nodes.iter().filter(|node| node.online);
    for (index, node) in online.enumerate() {
        let of_node = || guest.access.iter().filter(|((_, target), _)| *target == index);
        let has = |known: fn(&AccessAttributes) -> bool| of_node().any(|(_, access)| known(access));
        let described = has(has_latency) && has(has_bandwidth);
        let mut caches: Vec<&MemorySideCache> = node.memory_side_caches.iter().collect();
        caches.sort_by_key(|cache| cache.level);
        let in_order =
            (1..=MOST_CACHE_LEVELS).zip(&caches).all(|(level, cache)| cache.level == level)
                && caches.len() <= usize::from(MOST_CACHE_LEVELS)
                && caches.windows(2).all(|pair| pair[0].size_bytes < pair[1].size_bytes);
        if described && in_order {
            caches.iter().for_each(|cache| add(arguments, "-numa", side_cache(index, cache)));
        } else if !caches.is_empty() {
            let why = if described {
                "they are not in order of level and size"
            } else {
                "QEMU takes them only with latencies and bandwidths"
            };
            let message = format!("its memory-side caches are left out: {why}");
            findings.warning("memory-side-caches-lost", format!("node {}", node.id), message);
        }
    }
}

/// Whether a latency is written for the pair.
fn has_latency(access: &AccessAttributes) -> bool {
    [access.read_latency_ps, access.write_latency_ps].iter().flatten().any(|&ps| ps >= 500)
}

fn has_bandwidth(access: &AccessAttributes) -> bool {
    let both = [access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s];
    both.iter().flatten().any(|&mb| mb > 0)
}

/// The attributes of one pair by QEMU's names.
fn attributes(access: &AccessAttributes, findings: &mut Findings) -> Vec<(String, String)> {
    let mut nanoseconds = |ps: Option<u64>| {
        let ps = ps?;
        if ps % 1000 != 0 {
            let place = format!("access {} to {}", access.initiator, access.target);
            let message = format!("{ps} ps are rounded to whole nanoseconds");
            findings.note("latency-rounded", place, message);
        }
        let rounded = ps.saturating_add(500) / 1000;
        (rounded > 0).then(|| format!(",latency={rounded}"))
    };
    let megabytes = |mb: Option<u64>| mb.filter(|&mb| mb > 0).map(|mb| format!(",bandwidth={mb}M"));
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
