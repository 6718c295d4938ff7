use numalab_host::base_pages;
use numalab_topology::{CpuId, NodeId};

use super::*;
use crate::test_machines::ids;

fn worker(cpu: u32, node: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }
}

fn spec(team: Team) -> LatencySpec {
    LatencySpec { pattern: AccessPattern::Random, pages: base_pages(), team }
}

#[test]
fn sizes_of_a_curve_are_two_per_octave_with_both_ends() {
    let kib = |sizes: Vec<u64>| sizes.into_iter().map(|size| size / 1024).collect::<Vec<_>>();
    assert_eq!(kib(curve_sizes(4 << 10, 32 << 10)), [4, 6, 8, 12, 16, 24, 32]);
    assert_eq!(kib(curve_sizes(5 << 10, 13 << 10)), [5, 6, 8, 12, 13]);
    assert_eq!(kib(curve_sizes(0, 0)), [4], "no chase is shorter");
    assert_eq!(kib(curve_sizes(64 << 10, 8 << 10)), [64], "the end is not before the begin");
    assert!(curve_sizes(4096, u64::MAX).windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn large_pages_are_chased_page_by_page_and_small_ones_at_random() {
    assert_eq!(plain_pattern(base_pages()), AccessPattern::Random);
    for pages in [Pages::Transparent, Pages::HUGE_2M, Pages::HUGE_1G] {
        assert_eq!(plain_pattern(pages), AccessPattern::PageLocal, "{pages:?}");
    }
}

#[test]
fn cells_that_share_a_buffer_are_adjacent() {
    let workers = [worker(0, 0), worker(0, 1), worker(1, 0)];
    let cells = latency_cells(&workers, &[4096, 8192], spec(Team::Serial));
    let nodes: Vec<u32> = cells.iter().map(|cell| cell.experiment.workers()[0].node.0).collect();
    assert_eq!(nodes, [0, 0, 0, 0, 1, 1]);
    let sizes: Vec<u64> = cells
        .iter()
        .filter_map(|cell| cell.experiment.cell().map(|cell: &LatencyCell| cell.size_bytes))
        .collect();
    assert_eq!(sizes, [4096, 4096, 8192, 8192, 4096, 8192], "of a node, sizes in their order");
}

#[test]
fn cells_that_run_at_once_are_adjacent() {
    let workers = [worker(0, 0), worker(1, 1)];
    let cells = latency_cells(&workers, &[4096, 8192], spec(Team::Concurrent));
    let found = ids(&cells);
    assert!(found.iter().all(|id| id.ends_with("/concurrent")), "{found:?}");
    let nodes: Vec<u32> = cells.iter().map(|cell| cell.experiment.workers()[0].node.0).collect();
    assert_eq!(nodes, [0, 1, 0, 1]);
}

#[test]
fn serial_cells_share_a_node_and_concurrent_ones_a_size() {
    let cell = |node, size_bytes, pages, team| LatencyCell {
        worker: worker(node, node),
        size_bytes,
        pattern: AccessPattern::Random,
        pages,
        team,
    };
    let shares =
        |one: &LatencyCell, other: LatencyCell| one.shares_buffers(&Experiment::Latency(other));
    let serial = cell(0, 4096, base_pages(), Team::Serial);
    assert!(shares(&serial, cell(0, 8192, base_pages(), Team::Serial)));
    assert!(!shares(&serial, cell(1, 4096, base_pages(), Team::Serial)));
    assert!(!shares(&serial, cell(0, 4096, Pages::HUGE_2M, Team::Serial)));
    assert!(!shares(&serial, cell(0, 4096, base_pages(), Team::Concurrent)));
    let together = cell(0, 4096, base_pages(), Team::Concurrent);
    assert!(shares(&together, cell(1, 4096, base_pages(), Team::Concurrent)));
    assert!(!shares(&together, cell(1, 8192, base_pages(), Team::Concurrent)));
    let core = numalab_record::CoreCell { cpu: CpuId(0) };
    assert!(!serial.shares_buffers(&Experiment::Core(core)));
}

#[test]
fn building_counts_the_largest_buffer_once_and_each_cycle_once() {
    let mib = 1 << 20;
    let time = |sizes: &[u64], workers: &[WorkerPlan]| {
        let cells = latency_cells(workers, sizes, spec(Team::Serial));
        let Experiment::Latency(first) = &cells[0].experiment else { panic!() };
        first.building(&cells)
    };
    let one = time(&[64 * mib], &[worker(0, 0)]);
    assert!(one > Duration::ZERO);
    assert_eq!(time(&[64 * mib], &[worker(0, 0), worker(1, 0)]), one, "the same cycle");
    let two = time(&[64 * mib, 64 * mib], &[worker(0, 0)]);
    assert_eq!(two, one, "given twice");
    let filled = filling(64 * mib);
    let built = |bytes| per_gib(CYCLE_PER_GIB, bytes);
    assert_eq!(time(&[32 * mib, 64 * mib], &[worker(0, 0)]), filled + built(96 * mib));
}

#[test]
fn a_chase_of_few_lines_is_built_at_once_and_needs_no_warm_up() {
    let cell = |pattern, size_bytes| LatencyCell {
        worker: worker(0, 0),
        size_bytes,
        pattern,
        pages: base_pages(),
        team: Team::Serial,
    };
    let few = cell(AccessPattern::OneLinePer(4096), 1 << 30);
    assert_eq!((few.warm_up(), few.sampling()), (Duration::ZERO, WINDOWS / 2));
    assert_eq!(few.building(&[Cell::of(Experiment::Latency(few.clone()))]), filling(1 << 30));
    let small = cell(AccessPattern::Random, 4096);
    assert_eq!((small.warm_up(), small.sampling()), (Duration::ZERO, WINDOWS / 2));
    let large = cell(AccessPattern::Random, 1 << 30);
    assert_eq!((large.warm_up(), large.sampling()), (WARM_UP, WINDOWS));
}
