//! Access attributes between nodes from a run's measurements, in the form that firmware uses.

mod measured;

use measured::{finished, run_of};
use numalab_formats::described::uniform;
use numalab_record::{
    AccessPattern, BandwidthCell, Cell, CellId, CellResult, Document, Experiment, IsaName,
    LatencyCell, Metric, Pages, StreamKernel, Team, WorkerPlan,
};
use numalab_results::run::NodeAccess;
use numalab_topology::{
    AccessAttributes, AccessClass, CpuId, EmulatedNodes, EmulationSpec, Machine, NodeId,
};

/// Returns two nodes of two cpus each.
fn machine() -> Machine {
    let spec = EmulationSpec::new(EmulatedNodes::Equal(2));
    uniform(Some(&spec), 4, Some(4 << 30)).expect("a machine")
}

fn worker(cpu: u32, node: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }
}

fn chase(worker: WorkerPlan, size_bytes: u64, team: Team) -> Experiment {
    let (pattern, pages) = (AccessPattern::PageLocal, Pages::Transparent);
    Experiment::Latency(LatencyCell { worker, size_bytes, pattern, pages, team })
}

fn stream(workers: Vec<WorkerPlan>, kernel: StreamKernel) -> Experiment {
    Experiment::Bandwidth(BandwidthCell {
        workers,
        kernel,
        pattern: AccessPattern::Sequential,
        size_bytes: 64 << 20,
        pages: Pages::Transparent,
        isa: IsaName("avx2".to_owned()),
    })
}

/// Returns a cell in which all windows had this value, on the planned nodes.
fn result((number, (experiment, value)): (usize, (Experiment, f64))) -> CellResult {
    let metric = match experiment {
        Experiment::Latency(_) => Metric::Latency,
        _ => Metric::Bandwidth,
    };
    let cell = Cell { id: CellId(format!("cell{number}")), experiment };
    finished(cell, metric, |_| value)
}

/// Access figures of a run: initiator, target, read latency in ps, read and write bandwidth in
/// MB/s.
type Figures = (u32, u32, Option<u64>, Option<u64>, Option<u64>);

fn found(cells: Vec<(Experiment, f64)>) -> (Vec<Figures>, NodeAccess) {
    let cells = cells.into_iter().enumerate().map(result).collect();
    let found = NodeAccess::of(&Document { run: run_of(machine()), cells });
    let figures = |access: &AccessAttributes| {
        assert_eq!((access.class, access.write_latency_ps), (AccessClass::Cpu, None));
        let (read, write) = (access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s);
        (access.initiator.0, access.target.0, access.read_latency_ps, read, write)
    };
    (found.access.iter().map(figures).collect(), found)
}

const LARGE: u64 = 1 << 30;

#[test]
fn a_pair_of_nodes_has_the_median_of_its_cpus_by_the_chase_that_joins_the_most_nodes() {
    let (access, found) = found(vec![
        (chase(worker(0, 0), LARGE, Team::Serial), 99.0),
        (chase(worker(1, 0), LARGE, Team::Serial), 101.0),
        (chase(worker(0, 1), LARGE, Team::Serial), 180.25),
        (chase(worker(2, 1), LARGE, Team::Serial), 98.0),
        (chase(worker(0, 0), 4 * LARGE, Team::Serial), 120.0),
        (chase(worker(0, 0), LARGE, Team::Concurrent), 300.0),
    ]);
    let expected = [
        (0, 0, Some(100_000), None, None),
        (0, 1, Some(180_250), None, None),
        (1, 1, Some(98_000), None, None),
    ];
    assert_eq!(access, expected);
    let (pattern, pages) = (AccessPattern::PageLocal, Pages::Transparent);
    assert_eq!((found.chase, found.write), (Some((pattern, LARGE, pages)), None));
}

#[test]
fn bandwidth_is_that_of_the_most_cpus_and_writes_bypass_the_caches_if_they_can() {
    let (access, found) = found(vec![
        (stream(vec![worker(0, 0)], StreamKernel::Read), 8.0),
        (stream(vec![worker(0, 0), worker(1, 0)], StreamKernel::Read), 12.5),
        (stream(vec![worker(0, 1), worker(1, 1)], StreamKernel::Read), 6.0),
        (stream(vec![worker(0, 0), worker(2, 1)], StreamKernel::Read), 25.0),
        (stream(vec![worker(0, 0)], StreamKernel::Write), 5.0),
        (stream(vec![worker(0, 0)], StreamKernel::WriteNt), 9.75),
    ]);
    let expected = [(0, 0, None, Some(12_500), Some(9_750)), (0, 1, None, Some(6_000), None)];
    assert_eq!(access, expected, "cpus of two nodes are of no pair");
    assert_eq!((found.chase, found.write), (None, Some(StreamKernel::WriteNt)));
}

#[test]
fn a_run_without_such_cells_says_nothing() {
    assert_eq!(found(Vec::new()).1, NodeAccess::default());
}
