//! Synthetic runs, cell by cell, on a machine of two nodes with two cpus each.

use std::collections::BTreeMap;

use numalab_formats::described::uniform;
use numalab_record::{
    AccessPattern, BandwidthCell, C2cCell, Cell, CellId, CellResult, CoreCell, Document,
    Experiment, Fact, IsaName, LatencyCell, LoadedCell, Metric, Outcome, Pages, Placement,
    ProofMethod, StreamKernel, Team, WorkerPlan,
};
use numalab_topology::{CpuId, CpuSet, EmulatedNodes, EmulationSpec, Machine, NodeId};

use crate::measured::{finished, run_of};

pub const MIB: u64 = 1 << 20;

/// Returns two nodes of two cores, in a package each.
pub fn machine() -> Machine {
    let spec = EmulationSpec::new(EmulatedNodes::Equal(2));
    uniform(Some(&spec), 4, Some(1 << 35)).expect("a machine")
}

pub fn worker(cpu: u32, node: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }
}

/// Returns a random chase over 1 GiB of a node's memory by a cpu.
pub fn chase(cpu: u32, node: u32) -> LatencyCell {
    LatencyCell {
        worker: worker(cpu, node),
        size_bytes: 1 << 30,
        pattern: AccessPattern::Random,
        pages: Pages::BASE_4K,
        team: Team::Serial,
    }
}

/// Returns sequential reads of 64 MiB by each of these workers.
pub fn stream(workers: Vec<WorkerPlan>) -> BandwidthCell {
    BandwidthCell {
        workers,
        kernel: StreamKernel::Read,
        pattern: AccessPattern::Sequential,
        size_bytes: 64 * MIB,
        pages: Pages::BASE_4K,
        isa: IsaName("avx2".to_owned()),
    }
}

pub fn loaded(delay: Option<u32>) -> LoadedCell {
    LoadedCell {
        chaser: worker(0, 0),
        load: vec![worker(1, 0)],
        kernel: StreamKernel::Read,
        delay,
        size_bytes: 256 * MIB,
        pages: Pages::BASE_4K,
    }
}

/// Returns a precise cell with three windows around this value and proven placement.
pub fn cell(experiment: Experiment, metric: Metric, value: f64) -> CellResult {
    let placements = experiment.workers().into_iter().map(placement).collect();
    let near = |index: u32| value * (1.0 + 0.001 * (f64::from(index) - 1.0));
    CellResult { placements, ..finished(Cell::of(experiment), metric, near) }
}

pub fn latency(cell_of: LatencyCell, ns: f64) -> CellResult {
    cell(Experiment::Latency(cell_of), Metric::Latency, ns)
}

pub fn bandwidth(cell_of: BandwidthCell, gb_per_s: f64) -> CellResult {
    cell(Experiment::Bandwidth(cell_of), Metric::Bandwidth, gb_per_s)
}

pub fn c2c(from: u32, to: u32, home: u32, ns: f64) -> CellResult {
    let pair = C2cCell { from: CpuId(from), to: CpuId(to), home: NodeId(home) };
    cell(Experiment::C2c(pair), Metric::RoundTrip, ns)
}

pub fn core(cpu: u32, ghz: f64) -> CellResult {
    cell(Experiment::Core(CoreCell { cpu: CpuId(cpu) }), Metric::CoreClock, ghz)
}

/// Returns a loaded cell with its latency and the bandwidth of its load workers.
pub fn under_load(delay: Option<u32>, ns: f64, gb_per_s: Option<f64>) -> CellResult {
    let experiment = Experiment::Loaded(loaded(delay));
    let mut result = cell(experiment.clone(), Metric::Latency, ns);
    if let Some(gb_per_s) = gb_per_s {
        result.samples.extend(cell(experiment, Metric::Bandwidth, gb_per_s).samples);
    }
    result
}

/// Returns a pinned worker with all of 64 MiB in small pages on the intended node.
pub fn placement(worker: WorkerPlan) -> Placement {
    Placement {
        cpu: worker.cpu,
        cpu_node: Some(NodeId(worker.cpu.0 / 2)),
        affinity: CpuSet::from_iter([worker.cpu]),
        memory_node: worker.node,
        address: 0x1000,
        buffer_bytes: 64 * MIB,
        method: ProofMethod::MovePages,
        pages_checked: 10,
        pages_per_node: BTreeMap::from([(worker.node, 10)]),
        bytes_per_page_size: BTreeMap::from([(4096, 64 * MIB)]),
        isa: None,
    }
}

pub fn document(cells: Vec<CellResult>) -> Document {
    Document { run: run_of(machine()), cells }
}

/// Returns the document with an additional fact about the system.
pub fn with_fact(mut document: Document, name: &str, value: &str) -> Document {
    document.run.environment.facts.insert(name.to_owned(), Fact::read(name, value));
    document
}

pub fn failed(result: CellResult, reason: &str) -> CellResult {
    CellResult { ended: Some(Outcome::Failed { reason: reason.to_owned() }), ..result }
}

pub fn id(result: &CellResult) -> CellId {
    result.cell.id.clone()
}
