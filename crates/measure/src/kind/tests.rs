use numalab_host::base_pages;
use numalab_record::{
    AccessPattern, C2cCell, CoreCell, LatencyCell, LoadedCell, StreamKernel, Team, WorkerPlan,
};
use numalab_topology::{CpuId, NodeId};

use super::*;

fn worker(cpu: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(0) }
}

fn loaded(delay: Option<u32>, kernel: StreamKernel) -> LoadedCell {
    LoadedCell {
        chaser: worker(0),
        load: vec![worker(1)],
        kernel,
        delay,
        size_bytes: 1 << 30,
        pages: base_pages(),
    }
}

#[test]
fn cells_of_a_kind_are_found_among_others() {
    let core = Cell::of(Experiment::Core(CoreCell { cpu: CpuId(3) }));
    let pair = C2cCell { from: CpuId(0), to: CpuId(1), home: NodeId(0) };
    let cells = [core.clone(), Cell::of(Experiment::C2c(pair)), core];
    let cores: Vec<(&Cell, &CoreCell)> = cells_of(&cells);
    assert_eq!(cores.len(), 2);
    assert!(cores.iter().all(|(cell, core)| cell.id.0 == "core/cpu3" && core.cpu == CpuId(3)));
    assert!(cells_of::<LatencyCell>(&cells).is_empty());
}

#[test]
fn times_are_in_proportion_to_the_memory() {
    assert_eq!(filling(0), Duration::ZERO);
    assert_eq!(filling(1 << 30), TOUCH_PER_GIB);
    assert_eq!(filling(4 << 30), TOUCH_PER_GIB * 4);
    assert_eq!(per_gib(Duration::from_secs(1), 1 << 29), Duration::from_millis(500));
}

#[test]
fn the_cells_of_a_curve_under_load_share_their_buffers_whatever_the_delay() {
    let idle = loaded(None, StreamKernel::Read);
    let shares = |other: LoadedCell| idle.shares_buffers(&Experiment::Loaded(other));
    assert!(shares(loaded(Some(0), StreamKernel::Read)));
    assert!(!shares(loaded(Some(0), StreamKernel::Triad)));
    assert!(!shares(LoadedCell { chaser: worker(2), ..idle.clone() }));
    assert!(!shares(LoadedCell { load: vec![worker(2)], ..idle.clone() }));
    assert!(!shares(LoadedCell { size_bytes: 1, ..idle.clone() }));
    assert_eq!((idle.sampling(), idle.building(&[])), (ROUNDS, filling(1 << 30)));
}

#[test]
fn pairs_and_cores_share_no_buffer() {
    let pair = C2cCell { from: CpuId(0), to: CpuId(1), home: NodeId(0) };
    assert!(!pair.shares_buffers(&Experiment::C2c(pair.clone())));
    assert_eq!((pair.warm_up(), pair.building(&[])), (Duration::ZERO, Duration::ZERO));
    assert_eq!(pair.sampling(), WINDOWS / 4);
}

#[test]
fn an_experiment_is_measured_by_its_own_kind() {
    let cell = LatencyCell {
        worker: worker(0),
        size_bytes: 1 << 30,
        pattern: AccessPattern::Random,
        pages: base_pages(),
        team: Team::Serial,
    };
    let latency = Experiment::Latency(cell);
    assert_eq!(measurement(&latency).sampling(), WINDOWS);
    assert_eq!(
        measurement(&Experiment::Loaded(loaded(None, StreamKernel::Read))).sampling(),
        ROUNDS
    );
}
