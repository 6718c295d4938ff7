use numalab_host::base_pages;
use numalab_record::{
    AccessPattern, CoreCell, Experiment, FramesCell, LatencyCell, Team, WorkerPlan,
};
use numalab_topology::{CpuId, NodeId};

use super::*;
use crate::kind::latency::{LatencySpec, latency_cells};

fn latency(cpu: u32, node: u32, size_bytes: u64) -> Cell {
    let worker = WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) };
    let (pattern, pages, team) = (AccessPattern::Random, base_pages(), Team::Serial);
    latency_cells(&[worker], &[size_bytes], LatencySpec { pattern, pages, team }).remove(0)
}

fn core(cpu: u32) -> Cell {
    Cell::of(Experiment::Core(CoreCell { cpu: CpuId(cpu) }))
}

fn lengths(plan: &[Cell]) -> Vec<usize> {
    shared_runs(plan).map(<[Cell]>::len).collect()
}

#[test]
fn neighbours_that_share_buffers_are_run_together() {
    assert_eq!(lengths(&[]), [0; 0]);
    assert_eq!(lengths(&[core(0), core(1)]), [1, 1]);
    let plan = [
        latency(0, 0, 4096),
        latency(1, 0, 8192),
        latency(0, 1, 4096),
        core(0),
        latency(2, 1, 4096),
        latency(3, 1, 4096),
        latency(4, 1, 4096),
    ];
    assert_eq!(lengths(&plan), [2, 1, 1, 3]);
    let all: Vec<Cell> = shared_runs(&plan).flatten().cloned().collect();
    assert_eq!(all, plan, "in their order, and each once");
}

#[test]
fn shared_buffers_are_counted_once_and_sampling_for_each_cell() {
    let (one, two) = (latency(0, 0, 1 << 30), latency(1, 0, 1 << 30));
    let single = estimate_plan(std::slice::from_ref(&one));
    let both = estimate_plan(&[one.clone(), two]);
    let sampled = measurement(&one.experiment).sampling();
    let warmed = measurement(&one.experiment).warm_up();
    assert_eq!(both, single + sampled + warmed, "one more warm-up and its windows");
    let apart = estimate_plan(&[one.clone(), latency(0, 1, 1 << 30)]);
    assert_eq!(apart, single * 2);
    assert_eq!(estimate_plan(&[]), Duration::ZERO);
    assert_eq!(estimate_unsampled(&[one]), single - sampled);
}

#[test]
fn an_estimate_grows_with_the_sizes() {
    let time = |size| estimate_plan(&[latency(0, 0, size)]);
    assert!(time(4 << 10) < time(1 << 20));
    assert!(time(1 << 20) < time(1 << 30));
}

#[test]
fn an_empty_plan_can_be_run_and_one_without_a_possible_cell_gives_the_first_reason() {
    check_plan(&[]).unwrap();
    let stride = |bytes| {
        let cell = LatencyCell {
            worker: WorkerPlan { cpu: CpuId(0), node: NodeId(0) },
            size_bytes: 4096,
            pattern: AccessPattern::Stride(bytes),
            pages: base_pages(),
            team: Team::Serial,
        };
        Cell::of(Experiment::Latency(cell))
    };
    let error = check_plan(&[stride(100)]).unwrap_err();
    assert!(matches!(error, MeasureError::Cycle(_)), "{error}");
    assert!(error.to_string().starts_with("the chase cannot be built: "), "{error}");
    check_plan(&[stride(100), core(0)]).unwrap();
    assert!(impossible_cells(&[core(0), stride(64)]).is_none());
    let (cells, error) = impossible_cells(&[core(0), stride(100), stride(100)]).unwrap();
    assert_eq!((cells, matches!(error, MeasureError::Cycle(_))), (2, true), "{error}");
}

#[test]
fn frames_are_planned_here_and_measured_by_the_kernel() {
    let cell = FramesCell { work: "storm".to_owned(), cpus: vec![CpuId(0)], size_bytes: 4096 };
    let cells = [Cell::of(Experiment::Frames(cell))];
    assert_eq!(lengths(&cells), [1]);
    check_plan(&cells).unwrap();
}
