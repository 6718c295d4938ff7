//! A machine as QEMU's arguments: cpus, nodes, distances, latencies.
//!
//! Memory is left to [`host_memory`](super::host_memory), which knows what
//! stands behind it on the host.

use std::collections::BTreeSet;

use numalab_topology::{AccessAttributes, AccessClass, Cpu, Machine, Node, NodeId};

/// QEMU's limit (`MAX_NODES`).
const MOST_NODES: usize = 128;
/// Memory of a node is a multiple of this many bytes.
const MEMORY_GRAIN_BYTES: u64 = 1 << 20;

/// Why a machine cannot be a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// It has no cpu.
    #[error("the machine has no cpu that is online")]
    NoCpus,
    /// It has no node.
    #[error("the machine has no node")]
    NoNodes,
    /// It has more nodes than QEMU takes.
    #[error("the machine has {nodes} nodes, QEMU takes at most {MOST_NODES}")]
    TooManyNodes {
        /// Its nodes.
        nodes: usize,
    },
    /// A cpu has no node.
    #[error("cpu {cpu} has no node: a guest needs to know where each cpu is")]
    CpuWithoutNode {
        /// The cpu.
        cpu: u32,
    },
    /// A node's memory is not in whole mebibytes.
    #[error("node {node} has {bytes} bytes of memory, expected a multiple of {MEMORY_GRAIN_BYTES}")]
    MemoryGrain {
        /// The node.
        node: NodeId,
        /// Its memory.
        bytes: u64,
    },
    /// No node has memory.
    #[error("no node of the machine has memory")]
    NoMemory,
    /// A distance is one that QEMU refuses.
    #[error("distance {distance} from node {from} to node {to}: expected 10 within a node and 11 to 254 (255: unreachable) between nodes")]
    Distance {
        /// From this node.
        from: NodeId,
        /// To this node.
        to: NodeId,
        /// The distance.
        distance: u8,
    },
}

/// How the cpus are made up: sockets of dies of cores of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    sockets: usize,
    dies: usize,
    cores: usize,
    threads: usize,
}

/// The cpus that a guest has, in the order in which QEMU numbers them: by
/// package, L3 group and core, siblings together.
pub fn guest_cpus(machine: &Machine) -> Vec<&Cpu> {
    let mut cpus: Vec<&Cpu> = machine.cpus.iter().filter(|cpu| cpu.online).collect();
    cpus.sort_by_key(|cpu| (cpu.package, cpu.l3_group, cpu.core, cpu.thread, cpu.id));
    cpus
}

/// Checks that QEMU can be this machine.
///
/// # Errors
/// [`MachineError`].
pub fn check(machine: &Machine) -> Result<(), MachineError> {
    let cpus = guest_cpus(machine);
    if cpus.is_empty() {
        return Err(MachineError::NoCpus);
    }
    if machine.nodes.is_empty() {
        return Err(MachineError::NoNodes);
    }
    if machine.nodes.len() > MOST_NODES {
        let nodes = machine.nodes.len();
        return Err(MachineError::TooManyNodes { nodes });
    }
    let homeless = |cpu: &&&Cpu| cpu.node.and_then(|node| machine.node_index(node)).is_none();
    if let Some(cpu) = cpus.iter().find(homeless) {
        return Err(MachineError::CpuWithoutNode { cpu: cpu.id.0 });
    }
    if machine.memory_bytes() == 0 {
        return Err(MachineError::NoMemory);
    }
    let uneven = |node: &&Node| node.memory_bytes % MEMORY_GRAIN_BYTES != 0;
    if let Some(node) = machine.nodes.iter().find(uneven) {
        return Err(MachineError::MemoryGrain {
            node: node.id,
            bytes: node.memory_bytes,
        });
    }
    check_distances(machine)
}

fn check_distances(machine: &Machine) -> Result<(), MachineError> {
    for from in &machine.nodes {
        for to in &machine.nodes {
            let Some(distance) = machine.distance(from.id, to.id) else {
                continue;
            };
            let fits = if from.id == to.id { distance == 10 } else { distance > 10 };
            if !fits {
                return Err(MachineError::Distance {
                    from: from.id,
                    to: to.id,
                    distance,
                });
            }
        }
    }
    Ok(())
}

/// The arguments for cpus, nodes and distances. `memory_of` names the memory
/// backend of the node with a dense index.
pub fn arguments(machine: &Machine, memory_of: impl Fn(usize) -> Option<String>) -> Vec<String> {
    let cpus = guest_cpus(machine);
    let Shape {
        sockets,
        dies,
        cores,
        threads,
    } = shape(&cpus);
    let mut words = vec![
        "-smp".to_owned(),
        format!("{},sockets={sockets},dies={dies},cores={cores},threads={threads}", cpus.len()),
    ];
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    for (index, node) in machine.nodes.iter().enumerate() {
        add("-numa", node_argument(machine, &cpus, index, node, memory_of(index)));
    }
    for (from, to, distance) in distances(machine) {
        add("-numa", format!("dist,src={from},dst={to},val={distance}"));
    }
    for latency in latencies(machine) {
        add("-numa", latency);
    }
    words
}

/// Whether the machine says what accesses cost (a table of ACPI: HMAT).
pub fn has_latencies(machine: &Machine) -> bool {
    !latencies(machine).is_empty()
}

fn node_argument(
    machine: &Machine,
    cpus: &[&Cpu],
    index: usize,
    node: &Node,
    memory: Option<String>,
) -> String {
    let mut text = format!("node,nodeid={index}");
    let mine = cpus.iter().enumerate().filter(|(_, cpu)| cpu.node == Some(node.id));
    let mine: Vec<usize> = mine.map(|(position, _)| position).collect();
    for range in ranges(&mine) {
        text.push_str(&format!(",cpus={range}"));
    }
    if let Some(memory) = memory {
        text.push_str(&format!(",memdev={memory}"));
    }
    if has_latencies(machine)
        && let Some(initiator) = initiator(machine, node, !mine.is_empty())
    {
        text.push_str(&format!(",initiator={initiator}"));
    }
    text
}

/// The node whose cpus reach this one's memory best: itself if it has cpus, else
/// the one with the least latency, else the nearest.
fn initiator(machine: &Machine, node: &Node, has_cpus: bool) -> Option<usize> {
    if has_cpus {
        return machine.node_index(node.id);
    }
    let with_cpus = machine.cpu_nodes();
    let cost = |from: &NodeId| {
        let said = machine.access.iter().find(|a| a.initiator == *from && a.target == node.id);
        let latency = said.and_then(|access| access.read_latency_ps);
        (latency.unwrap_or(u64::MAX), machine.distance(*from, node.id).unwrap_or(u8::MAX))
    };
    let best = with_cpus.iter().min_by_key(cost)?;
    machine.node_index(best)
}

fn distances(machine: &Machine) -> Vec<(usize, usize, u8)> {
    let count = machine.nodes.len();
    let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    let known = pairs.filter_map(|(from, to)| Some((from, to, machine.distances.get(from, to)?)));
    known.filter(|(from, to, _)| from != to).collect()
}

/// What accesses cost, for initiators with cpus and targets with memory.
fn latencies(machine: &Machine) -> Vec<String> {
    let with_cpus = machine.cpu_nodes();
    let with_memory = machine.memory_nodes();
    let mut words = Vec::new();
    let usable = |access: &&AccessAttributes| {
        access.class == AccessClass::Any
            && with_cpus.contains(access.initiator)
            && with_memory.contains(access.target)
    };
    for access in machine.access.iter().filter(usable) {
        let nodes = (machine.node_index(access.initiator), machine.node_index(access.target));
        let (Some(initiator), Some(target)) = nodes else {
            continue;
        };
        let prefix = format!("hmat-lb,initiator={initiator},target={target},hierarchy=memory");
        let mut add = |kind: &str, value: String| {
            words.push(format!("{prefix},data-type={kind},{value}"));
        };
        // QEMU reads latencies in nanoseconds and bandwidths in bytes per second.
        let nanoseconds = |ps: u64| format!("latency={}", ps.div_ceil(1000));
        let bandwidth = |mb: u64| format!("bandwidth={}M", (mb * 1_000_000).div_ceil(1 << 20));
        if let Some(ps) = access.read_latency_ps {
            add("read-latency", nanoseconds(ps));
        }
        if let Some(ps) = access.write_latency_ps {
            add("write-latency", nanoseconds(ps));
        }
        if let Some(mb) = access.read_bandwidth_mb_per_s {
            add("read-bandwidth", bandwidth(mb));
        }
        if let Some(mb) = access.write_bandwidth_mb_per_s {
            add("write-bandwidth", bandwidth(mb));
        }
    }
    words
}

/// How the cpus are made up. QEMU has only regular machines: where packages are
/// unknown or differ, each node that has cpus is a package if they are equal,
/// else each cpu is one.
fn shape(cpus: &[&Cpu]) -> Shape {
    let threads = even_parts(cpus, |cpu| cpu.core.map(u64::from));
    let threads = threads.map_or(1, |cores| cpus.len() / cores);
    let sockets = even_parts(cpus, |cpu| cpu.package.map(u64::from))
        .or_else(|| even_parts(cpus, |cpu| cpu.node.map(|node| u64::from(node.0))))
        .filter(|sockets| (cpus.len() / sockets) % threads == 0);
    let Some(sockets) = sockets else {
        return Shape {
            sockets: cpus.len(),
            dies: 1,
            cores: 1,
            threads: 1,
        };
    };
    let per_socket = cpus.len() / sockets;
    let dies = even_parts(cpus, |cpu| cpu.l3_group.map(u64::from));
    let dies = dies.filter(|groups| groups % sockets == 0).map_or(1, |groups| groups / sockets);
    let dies = if per_socket % (dies * threads) == 0 { dies } else { 1 };
    Shape {
        sockets,
        dies,
        cores: per_socket / dies / threads,
        threads,
    }
}

/// How many parts there are, if every cpu is in one, all are of one size, and
/// the cpus of a part follow each other.
fn even_parts(cpus: &[&Cpu], part_of: impl Fn(&Cpu) -> Option<u64>) -> Option<usize> {
    let parts: Option<Vec<u64>> = cpus.iter().map(|cpu| part_of(cpu)).collect();
    let parts = parts?;
    let distinct = parts.iter().collect::<BTreeSet<_>>().len();
    if distinct == 0 || parts.len() % distinct != 0 {
        return None;
    }
    let size = parts.len() / distinct;
    let whole = |chunk: &[u64]| chunk.iter().all(|part| *part == chunk[0]);
    parts.chunks(size).all(whole).then_some(distinct)
}

/// `0,1,2,5` as `0-2` and `5`.
fn ranges(numbers: &[usize]) -> Vec<String> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let text = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    ranges.into_iter().map(text).collect()
}
