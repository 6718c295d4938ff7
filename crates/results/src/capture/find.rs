//! A machine file out of what a run measured: topology, latencies, caches, transfers, load.

mod caches;
mod core;
mod load;
mod tlb;
mod transfers;

pub use load::{CurveFamily, curve_families};

use numalab_memory_model::curve::Curve;
use numalab_memory_model::machine::{Core, Family, Tlb, Transfers};
use numalab_record::Document;
use numalab_topology::{Machine, Node, NodeId};
use serde::Serialize;

use crate::run::{Chase, NodeAccess, Summary};

/// What a machine file says: what a machine is, and what its memory takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFigures {
    /// Its topology, with latencies and bandwidths between nodes.
    pub machine: Machine,
    /// What a hit in each level of the data caches takes in ns, nearest first.
    pub cache_latency_ns: Vec<f64>,
    /// What a core has under way.
    pub core: Option<Core>,
    /// How addresses are translated.
    pub tlb: Option<Tlb>,
    /// What a line takes from one core's caches to another's.
    pub transfers: Option<Transfers>,
    /// What memory and links take under load.
    pub loads: Vec<Load>,
}

/// Load on the memory of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Whose memory.
    pub node: NodeId,
    /// The node of the cpus, for the link from there; `None` for the memory itself.
    pub from: Option<NodeId>,
    /// The bandwidth at which it saturates in 10^6 bytes a second, where there is no curve.
    pub peak_mb_s: Option<f64>,
    /// Latency over bandwidth, by rising share of writes.
    pub curves: Vec<Curve>,
}

/// A machine file's figures out of a run, with what must be known of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// The figures.
    pub figures: MachineFigures,
    /// The chase that the latencies are of.
    pub chase: Option<Chase>,
    /// What was derived or replaced, and what is left out.
    pub remarks: Vec<Remark>,
}

/// Something about a captured figure, or about one that is not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remark {
    /// No latency from a node's cpus to a node's memory.
    NoLatency {
        /// The node of the cpus.
        from: NodeId,
        /// The node of the memory.
        to: NodeId,
    },
    /// The sweep found another size than the system reports, and the file has what was found.
    CacheFound {
        /// The cache's level.
        level: u8,
        /// Its size by the sweep, in whole sets.
        found_bytes: u64,
        /// What the system reports.
        reported_bytes: u64,
    },
    /// A cache that the sweep did not find is left out.
    NoCache {
        /// Its level.
        level: u8,
    },
    /// No sweep over sizes: caches are as reported, and what a hit takes is left out.
    NoSweep,
    /// A core's outstanding lines are what its reads reach by Little's law; how many of them are
    /// prefetched, how far it looks ahead, and what it runs a cycle are assumed.
    CoreDerived {
        /// Outstanding lines, those included that are prefetched.
        lines: u32,
        /// Lines that are prefetched.
        prefetch: u32,
        /// What one core reads, in GB/s.
        gb_per_s: f64,
        /// Instructions a cycle.
        per_cycle: u8,
    },
    /// What instructions take is that of the family's table, known by vendor and L2.
    CoreTimed {
        /// The family.
        family: Family,
    },
    /// What instructions take by class is left out: no table for such a core.
    NoTiming,
    /// What a core has under way is left out: no reads by one core alone, or no clock.
    NoCore,
    /// What an atomic addition takes is left out: an older run did not measure it.
    NoAtomicAdd,
    /// What a line takes from cache to cache is left out: not every kind of pair was measured.
    NoTransfers,
    /// Load on a node's memory is left out.
    NoLoad {
        /// The node.
        node: NodeId,
        /// Why.
        why: NoLoad,
    },
    /// Of the TLB, what nothing measures is assumed.
    TlbAssumed {
        /// Entries of upper page tables that a core keeps.
        upper_entries: u32,
        /// Walks at a time.
        walkers: u32,
    },
    /// A walk takes longer than an access to a page table.
    LongWalks {
        /// Accesses that it takes beside that one.
        accesses: u32,
    },
    /// Translations are left out: no end of the TLB was found.
    NoTlb,
}

/// Why there is no curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoLoad {
    /// Nothing loaded this memory.
    NotMeasured,
    /// Other load disturbed what would be the latency without load.
    Doubtful,
    /// The cores did not saturate it, so that its limit is not known.
    NotSaturated {
        /// What they moved at most, in 10^6 bytes a second.
        most_mb_s: u64,
    },
}

/// The machine file of a run.
#[must_use]
pub fn capture(document: &Document) -> Captured {
    let summary = Summary::of(document);
    let NodeAccess { access, chase, .. } = NodeAccess::of(document);
    let mut remarks = Vec::new();
    let mut machine = of_now(&document.run.machine);
    machine.access = access;
    remarks.extend(missing_latencies(&machine));
    let cache_latency_ns = caches::caches(&summary, &mut machine, &mut remarks);
    let loads = load::loads(&summary, &machine, &mut remarks);
    let core = core::core(&summary, &machine, (&loads, &cache_latency_ns), &mut remarks);
    let transfers = transfers::transfers(&summary, &machine, &mut remarks);
    let tlb = tlb::tlb(&summary, &machine, &mut remarks);
    let figures = MachineFigures { machine, cache_latency_ns, core, tlb, transfers, loads };
    Captured { figures, chase, remarks }
}

/// The machine without what is true of one moment or one process only.
fn of_now(machine: &Machine) -> Machine {
    let node = |node: &Node| Node { free_bytes: None, huge_pages: Vec::new(), ..node.clone() };
    Machine { nodes: machine.nodes.iter().map(node).collect(), allowed: None, ..machine.clone() }
}

fn missing_latencies(machine: &Machine) -> Vec<Remark> {
    let online = || machine.nodes.iter().filter(|node| node.online);
    let initiators = online().filter(|node| !node.cpus.is_empty());
    let pairs = initiators
        .flat_map(|from| online().filter(|to| to.memory_bytes > 0).map(|to| (from.id, to.id)));
    let known = |from: NodeId, to: NodeId| {
        let mut access = machine.access.iter();
        access.any(|pair| {
            (pair.initiator, pair.target) == (from, to) && pair.read_latency_ps.is_some()
        })
    };
    pairs
        .filter(|&(from, to)| !known(from, to))
        .map(|(from, to)| Remark::NoLatency { from, to })
        .collect()
}
