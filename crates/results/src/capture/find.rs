//! Machine files captured from a measured run: topology, latencies, caches, transfers and load.

mod caches;
mod core;
mod load;
mod memory;
mod quiet;
mod tlb;
mod transfers;

pub use load::{CurveFamily, curve_families};

use numalab_formats::machine_toml::{LoadFigures, MachineFile, MemoryFigures};
use numalab_formats::memory_emulator::Curve;
use numalab_memory_model::machine::{Calls, Family, Faults};
use numalab_record::Document;
use numalab_topology::{Machine, Node, NodeId, NodeSet};
use serde::Serialize;

use crate::run::{Chase, NodeAccess, Summary};

/// The figures captured from a run, with remarks on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    pub figures: MachineFile,
    /// The chase that measured the latencies.
    pub chase: Option<Chase>,
    /// Figures that were derived, replaced or omitted.
    pub remarks: Vec<Remark>,
}

impl Captured {
    /// Takes these load curves for the memory of every node.
    pub fn take_curves(&mut self, curves: &[Curve]) {
        let nodes = self.figures.machine.memory_nodes();
        let load = |node| {
            let nodes = NodeSet::from_iter([node]);
            LoadFigures { nodes, from: None, peak_mb_s: None, curves: curves.to_vec() }
        };
        self.figures.memory.load = nodes.iter().map(load).collect();
        self.remarks.retain(|remark| !matches!(remark, Remark::NoLoad { .. }));
    }
}

/// A remark on a captured figure, or on a missing one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remark {
    /// No latency was measured between a pair of nodes.
    NoLatency {
        from: NodeId,
        /// The memory's node.
        to: NodeId,
    },
    /// The additional latency of other pages follows from random loads over small pages, minus page
    /// walks and cache hits.
    OtherPages {
        /// The additional latency, in ns.
        more_ns: f64,
        /// The time of a random load, in ns.
        load_ns: f64,
        /// The buffer's length in bytes.
        bytes: u64,
    },
    /// The sweep contradicts the reported cache size, and the file has the size found.
    CacheFound {
        level: u8,
        /// The size from the sweep in bytes, rounded to whole sets.
        found_bytes: u64,
        /// The size that the system reports, in bytes.
        reported_bytes: u64,
    },
    /// Other guests of the host use a cache as well, and evict lines that are not used.
    CacheShared {
        level: u8,
        /// The mean time in ns after which a line is gone.
        life_ns: f64,
    },
    /// The sweep shows no plateau of a cache, because others use most of it: the file has a bound.
    CacheHidden {
        level: u8,
        /// The upper bound on its latency, in ns.
        at_most_ns: f64,
    },
    /// A cache that the sweep did not find is omitted.
    NoCache { level: u8 },
    /// There is no sweep over sizes: caches are as reported, without hit latencies.
    NoSweep,
    /// The number of outstanding lines follows from the read bandwidth by Little's law; prefetch
    /// share, look-ahead and instructions per cycle are assumptions.
    CoreDerived {
        /// Outstanding lines, including prefetches.
        lines: u32,
        /// The number of these that are prefetches.
        prefetch: u32,
        /// Read bandwidth of one core, in GB/s.
        gb_per_s: f64,
        /// Entries of the reorder buffer, those of the family or assumed.
        window: u32,
        /// Assumed instructions per cycle.
        per_cycle: u8,
    },
    /// Reads by one core had fewer lines outstanding than it has fill buffers, because other users
    /// of the memory took bandwidth: its buffers and the usual prefetches are assumed.
    CoreContended {
        /// The lines outstanding by Little's law.
        measured: u32,
        /// Read bandwidth of one core, in GB/s.
        gb_per_s: f64,
        /// Entries of the reorder buffer, those of the family or assumed.
        window: u32,
        /// Assumed instructions per cycle.
        per_cycle: u8,
    },
    /// Instruction latencies come from the table of the core's family, identified by vendor, family and
    /// model in CPUID.
    CoreTimed { family: Family },
    /// The same, identified by vendor and L2 size, because the run lacks family and model.
    CoreTimedByL2 { family: Family },
    /// There is no table for this core; instruction latencies come from that of the nearest family.
    CoreNearest {
        family: Family,
        /// The core, as CPUID identifies it.
        cpu: String,
    },
    /// Instruction latencies by class are omitted: there is no table for cores of this vendor.
    NoTiming {
        /// The core, as CPUID identifies it.
        cpu: String,
    },
    /// The core's resources are omitted: reads by a single core, or the clock, were not measured.
    NoCore,
    /// The latency of an atomic add is omitted: older runs did not measure it.
    NoAtomicAdd,
    /// Cache-to-cache latencies are omitted: some kind of pair was not measured.
    NoTransfers,
    /// Latency under load of a node's memory is omitted.
    NoLoad { node: NodeId, why: NoLoad },
    /// Parts of the TLB that no measurement shows are assumed.
    TlbAssumed {
        /// Entries for upper-level page tables that a core caches.
        upper_entries: u32,
        /// Number of concurrent page walks, if it could not be measured.
        walkers: Option<u32>,
    },
    /// The size of the host's pages behind this guest's memory follows from the gain of huge pages.
    HostPages { bytes: u64 },
    /// A walk takes longer than its accesses to page tables.
    LongWalks {
        /// The additional time, in ns.
        walk_ns: f64,
    },
    /// The number of concurrent page walks follows from independent reads of pages.
    WalkersFound {
        walkers: u32,
        /// The time of a read, in ns.
        read_ns: f64,
    },
    /// Address translation is omitted: the size of the TLB was not found.
    NoTlb,
}

/// The reason why a curve is missing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoLoad {
    /// No cell loaded this memory.
    NotMeasured,
    /// Other load disturbed the latency without load.
    Doubtful,
    /// The cores did not saturate it, so its limit is unknown.
    NotSaturated {
        /// The highest traffic reached, in 10^6 bytes per second.
        most_mb_s: u64,
    },
}

/// Captures a run's machine file from the quiet moments of the run.
pub fn capture(document: &Document) -> Captured {
    let document = &quiet::quiet(document);
    let summary = Summary::of(document);
    let NodeAccess { access, chase, .. } = NodeAccess::of(document);
    let mut remarks = Vec::new();
    let mut machine = of_now(&document.run.machine);
    machine.access = access;
    remarks.extend(missing_latencies(&machine));
    let (cache_latency_ns, life_ns) = caches::caches(&summary, &mut machine, &mut remarks);
    let memory = MemoryFigures { cache_latency_ns, life_ns, ..MemoryFigures::default() };
    let mut figures = MachineFile { machine, memory };
    figures.memory.tlb = tlb::tlb(&summary, &figures.caches(), &mut remarks);
    memory::memory(&summary, &mut figures, &mut remarks);
    let MachineFile { machine, memory } = &mut figures;
    memory.load = load::loads(&summary, machine, &mut remarks);
    let known = (&memory.load[..], &memory.cache_latency_ns[..]);
    memory.core = core::core(&summary, machine, known, &mut remarks);
    let mut faults = summary.cores.iter().filter_map(|core| core.faults);
    memory.faults = faults.next().map(in_tenths);
    let mut calls = summary.cores.iter().filter_map(|core| core.calls);
    memory.calls = calls.next().map(calls_in_tenths);
    memory.transfers = transfers::transfers(&summary, machine, &mut remarks);
    Captured { figures, chase, remarks }
}

fn in_tenths(faults: Faults) -> Faults {
    Faults {
        load_ns: load::tenths(faults.load_ns),
        store_ns: load::tenths(faults.store_ns),
        copy_ns: load::tenths(faults.copy_ns),
        file_ns: load::tenths(faults.file_ns),
        free_ns: load::tenths(faults.free_ns),
        unmap_ns: load::tenths(faults.unmap_ns),
        huge_ns: faults.huge_ns.map(load::tenths),
    }
}

fn calls_in_tenths(calls: Calls) -> Calls {
    Calls {
        call_ns: load::tenths(calls.call_ns),
        yield_ns: load::tenths(calls.yield_ns),
        map_ns: load::tenths(calls.map_ns),
        page_ns: load::tenths(calls.page_ns),
        read_ns: load::tenths(calls.read_ns),
        write_ns: load::tenths(calls.write_ns),
        grow_ns: load::tenths(calls.grow_ns),
        new_page_ns: load::tenths(calls.new_page_ns),
        pipe_page_ns: load::tenths(calls.pipe_page_ns),
        wake_ns: load::tenths(calls.wake_ns),
        open_ns: load::tenths(calls.open_ns),
        fork_ns: load::tenths(calls.fork_ns),
        fork_page_ns: load::tenths(calls.fork_page_ns),
        fork_map_ns: load::tenths(calls.fork_map_ns),
        execute_ns: load::tenths(calls.execute_ns),
        cpuid_ns: load::tenths(calls.cpuid_ns),
    }
}

/// Returns the machine without facts that hold only for a moment or a process.
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
