use numalab_host::base_pages;
use numalab_record::{BandwidthCell, CellResult, Document, IsaName, LatencyCell};
use numalab_topology::CpuId;

use super::*;
use crate::test_machines::{ids, machine, run, whole, with_memory_alone};

fn worker(cpu: u32, node: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }
}

fn latency(cpu: u32, node: u32, pattern: AccessPattern, size_bytes: u64) -> LatencyCell {
    LatencyCell {
        worker: worker(cpu, node),
        size_bytes,
        pattern,
        pages: base_pages(),
        team: Team::Serial,
    }
}

fn read(workers: &[(u32, u32)], size_bytes: u64) -> BandwidthCell {
    BandwidthCell {
        workers: workers.iter().map(|(cpu, node)| worker(*cpu, *node)).collect(),
        kernel: StreamKernel::Read,
        pattern: AccessPattern::Sequential,
        size_bytes,
        pages: base_pages(),
        isa: IsaName("portable".to_owned()),
    }
}

fn of_latency(cell: LatencyCell) -> Cell {
    Cell::of(Experiment::Latency(cell))
}

fn of_streams(cell: BandwidthCell) -> Cell {
    Cell::of(Experiment::Bandwidth(cell))
}

fn of_core(cpu: u32) -> Cell {
    Cell::of(Experiment::Core(CoreCell { cpu: CpuId(cpu) }))
}

fn chosen_in(machine: &Machine, scope: &Scope, plan: &[&Cell]) -> Vec<String> {
    let plan: Vec<Cell> = plan.iter().map(|cell| (*cell).clone()).collect();
    let result = |cell: &Cell| CellResult {
        cell: cell.clone(),
        ended: None,
        placements: Vec::new(),
        samples: Vec::new(),
    };
    let cells = plan.iter().map(result).collect();
    let baseline = Document { run: run(machine.clone(), plan), cells };
    let chosen = health_cells(&baseline, machine, scope);
    ids(&chosen).into_iter().map(str::to_owned).collect()
}

fn chosen(plan: &[&Cell]) -> Vec<String> {
    let machine = machine(2, 2);
    chosen_in(&machine, &whole(&machine), plan)
}

#[test]
fn the_core_comes_first_then_each_node_with_its_latency_and_its_bandwidth() {
    let cells = [
        of_streams(read(&[(2, 1), (3, 1)], 1 << 20)),
        of_latency(latency(2, 1, AccessPattern::Random, 1 << 20)),
        of_streams(read(&[(0, 0), (1, 0)], 1 << 20)),
        of_latency(latency(0, 0, AccessPattern::Random, 1 << 20)),
        of_core(1),
        of_core(0),
    ];
    let found = chosen(&cells.each_ref());
    let expected =
        [&cells[4], &cells[3], &cells[2], &cells[1], &cells[0]].map(|of| of.id.0.clone());
    assert_eq!(found, expected);
}

#[test]
fn an_order_without_tlb_misses_is_preferred_to_a_larger_buffer() {
    let local = of_latency(latency(0, 0, AccessPattern::PageLocal, 1 << 20));
    let random = of_latency(latency(0, 0, AccessPattern::Random, 4 << 20));
    assert_eq!(chosen(&[&random, &local]), [local.id.0.as_str()]);
    let larger = of_latency(latency(0, 0, AccessPattern::PageLocal, 2 << 20));
    assert_eq!(chosen(&[&larger, &local, &random]), [larger.id.0.as_str()]);
}

#[test]
fn more_cpus_are_preferred_to_a_larger_buffer() {
    let one = of_streams(read(&[(0, 0)], 8 << 20));
    let two = of_streams(read(&[(0, 0), (1, 0)], 1 << 20));
    assert_eq!(chosen(&[&one, &two]), [two.id.0.as_str()]);
}

#[test]
fn the_first_of_equal_figures_is_kept() {
    let first = of_latency(latency(0, 0, AccessPattern::Random, 1 << 20));
    let second = of_latency(latency(1, 0, AccessPattern::Random, 1 << 20));
    assert_eq!(chosen(&[&first, &second]), [first.id.0.as_str()]);
}

#[test]
fn remote_and_concurrent_cells_and_other_kernels_and_orders_are_left_out() {
    let remote = of_latency(latency(0, 1, AccessPattern::Random, 1 << 20));
    let base = latency(0, 0, AccessPattern::Random, 1 << 20);
    let concurrent = of_latency(LatencyCell { team: Team::Concurrent, ..base });
    let walks = of_latency(latency(0, 0, AccessPattern::OneLinePer(4096), 1 << 20));
    let mixed = of_streams(read(&[(0, 0), (2, 0)], 1 << 20));
    let two_nodes = of_streams(read(&[(0, 0), (2, 1)], 1 << 20));
    let streams = read(&[(0, 0)], 1 << 20);
    let triad = of_streams(BandwidthCell { kernel: StreamKernel::Triad, ..streams.clone() });
    let random = of_streams(BandwidthCell { pattern: AccessPattern::Random, ..streams });
    let all = [&remote, &concurrent, &walks, &mixed, &two_nodes, &triad, &random];
    for cell in all {
        assert_eq!(chosen(&[cell]), Vec::<String>::new(), "{}", cell.id);
    }
}

#[test]
fn cells_outside_the_scope_are_left_out() {
    let machine = machine(2, 2);
    let cpus = "1-3".parse().unwrap();
    let nodes = "0".parse().unwrap();
    let scope = Scope::new(&machine, Some(&cpus), Some(&nodes)).unwrap();
    let (core0, core1) = (of_core(0), of_core(1));
    let of_cpu0 = of_latency(latency(0, 0, AccessPattern::Random, 1 << 20));
    let of_cpu1 = of_latency(latency(1, 0, AccessPattern::Random, 1 << 20));
    let of_node1 = of_latency(latency(2, 1, AccessPattern::Random, 1 << 20));
    let found = chosen_in(&machine, &scope, &[&core0, &core1, &of_cpu0, &of_cpu1, &of_node1]);
    assert_eq!(found, [core1.id.0.as_str(), of_cpu1.id.0.as_str()]);
}

#[test]
fn memory_without_cpus_counts_from_any_cpu() {
    let machine = with_memory_alone(machine(2, 1));
    let cell = of_latency(latency(0, 2, AccessPattern::Random, 1 << 20));
    let found = chosen_in(&machine, &whole(&machine), &[&cell]);
    assert_eq!(found, [cell.id.0.as_str()]);
}

#[test]
fn an_empty_baseline_gives_nothing() {
    assert_eq!(chosen(&[]), Vec::<String>::new());
}
