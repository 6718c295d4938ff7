use numalab_host::base_pages;
use numalab_record::{
    CellResult, CoreCell, Effort, Metric, Outcome, Sample as Measured, StreamKernel,
};
use numalab_topology::{Cache, CacheKind, CpuId};

use super::*;
use crate::test_machines::{ids, machine, run, whole};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn plan(machine: &Machine, effort: Effort, pages: Pages) -> MeasurePlan<'_> {
    MeasurePlan::new(machine, whole(machine), effort, pages)
}

fn sizes(cells: &[Cell]) -> Vec<u64> {
    let size = |cell: &Cell| cell.experiment.cell().map(|cell: &LatencyCell| cell.size_bytes);
    cells.iter().filter_map(size).collect()
}

/// Returns the document of a first phase in which each size has this latency.
fn curve(machine: &Machine, latency_ns: impl Fn(u64) -> f64) -> Document {
    let plan = plan(machine, Effort::Normal, base_pages()).first_phase();
    let result = |cell: &Cell| {
        let size = cell.experiment.cell().map_or(0, |cell: &LatencyCell| cell.size_bytes);
        let sample = |index: u32| Measured {
            cell: cell.id.clone(),
            metric: Metric::Latency,
            index,
            value: latency_ns(size),
            start_ns: 0,
            duration_ns: 1,
            work: 1,
            disturbed: None,
        };
        CellResult {
            cell: cell.clone(),
            ended: Some(Outcome::Precise),
            placements: Vec::new(),
            samples: (0..8).map(sample).collect(),
        }
    };
    let cells = plan.iter().map(result).collect();
    Document { run: run(machine.clone(), plan), cells }
}

#[test]
fn a_measuring_run_begins_with_memory_and_leaves_out_no_size() {
    let machine = machine(2, 2);
    for effort in [Effort::Quick, Effort::Normal, Effort::Thorough] {
        let plan = plan(&machine, effort, base_pages());
        let cells = plan.first_phase();
        let mut found = sizes(&cells);
        let memory = found[0];
        assert_eq!(memory, 256 * MIB, "{effort:?}");
        found.sort_unstable();
        assert_eq!(found, plan.survey.curve_sizes());
        let Experiment::Core(CoreCell { cpu }) = cells[cells.len() - 1].experiment else {
            panic!("the core comes last: {:?}", ids(&cells))
        };
        assert_eq!(cpu, CpuId(0));
    }
}

#[test]
fn more_effort_looks_at_more_and_larger_sizes() {
    let machine = machine(2, 2);
    let found = |effort| plan(&machine, effort, base_pages()).survey.curve_sizes();
    let (quick, normal, thorough) =
        (found(Effort::Quick), found(Effort::Normal), found(Effort::Thorough));
    assert_eq!(quick[..4], [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB]);
    assert_eq!(normal[..4], [4 * KIB, 6 * KIB, 8 * KIB, 12 * KIB]);
    assert_eq!((quick.last(), normal.last()), (Some(&(256 * MIB)), Some(&(1024 * MIB))));
    // Half of 32 GiB is for eight workers and one more.
    let most = (16 * 1024 * MIB / 9) & !(2 * MIB - 1);
    assert_eq!(thorough.last(), Some(&most));
}

/// At one size an octave, the page of a run said that an L1 of 32 KiB ends at 45 KiB.
#[test]
fn a_quick_run_looks_closely_at_the_end_of_each_cache() {
    let mut machine = machine(1, 2);
    let cache = |level: u8, size_bytes: u64| Cache {
        level,
        kind: CacheKind::Unified,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: None,
        cpus: machine.online_cpus(),
    };
    machine.caches = vec![cache(1, 32 * KIB), cache(3, 96 * MIB)];
    let quick = plan(&machine, Effort::Quick, base_pages()).survey.curve_sizes();
    assert_eq!(quick[2..7], [16 * KIB, 24 * KIB, 32 * KIB, 42 * KIB, 64 * KIB]);
    assert_eq!(quick[quick.len() - 5..], [64, 72, 96, 128, 256].map(|mib| mib * MIB));
}

#[test]
fn beyond_the_caches_is_four_times_where_the_last_one_ends() {
    let machine = machine(1, 2);
    let three_levels = |size| match size {
        ..=32_768 => 1.0,
        32_769..=1_048_576 => 4.0,
        1_048_577..=33_554_432 => 20.0,
        _ => 100.0,
    };
    let found = beyond_caches(&curve(&machine, three_levels));
    assert!(found.is_power_of_two(), "{found}");
    assert!((128 * MIB..=256 * MIB).contains(&found), "{found}: the last cache ends at 32 MiB");
    let small = |size: u64| if size <= 32_768 { 1.0 } else { 100.0 };
    assert_eq!(beyond_caches(&curve(&machine, small)), 64 * MIB, "a quarter of the guess at least");
    assert_eq!(beyond_caches(&curve(&machine, |_| 5.0)), 256 * MIB, "one level shows no end");
    let mut none = curve(&machine, small);
    none.cells.clear();
    assert_eq!(beyond_caches(&none), 256 * MIB);
}

#[test]
fn a_worker_never_gets_more_than_its_share_of_the_memory() {
    let mut machine = machine(1, 2);
    machine.nodes[0].memory_bytes = 1024 * MIB;
    let plan = plan(&machine, Effort::Normal, base_pages());
    // A half for four workers and one more, in whole large pages.
    assert_eq!(plan.beyond_bytes(None), 102 * MIB);
    machine.nodes[0].memory_bytes = MIB;
    let plan = MeasurePlan::new(&machine, whole(&machine), Effort::Normal, base_pages());
    assert_eq!(plan.beyond_bytes(None), 4 * MIB, "the least");
}

#[test]
fn a_run_that_is_compared_takes_the_sizes_of_the_other() {
    let machine = machine(1, 2);
    let of = plan(&machine, Effort::Quick, base_pages());
    assert_eq!(of.beyond_bytes(None), 256 * MIB);
    let mut other = curve(&machine, |_| 5.0);
    let BandwidthCell { size_bytes, .. } = {
        let cells = of.phase_beyond(96 * MIB);
        let found = cells.iter().find_map(|cell| cell.experiment.cell::<BandwidthCell>().cloned());
        other.run.plan = cells;
        found.unwrap()
    };
    assert_eq!(size_bytes, 96 * MIB);
    let like = of.clone().like(Some(&other));
    assert_eq!(like.beyond_bytes(None), 96 * MIB);
    assert_eq!(like.second_phase(&curve(&machine, |_| 5.0)), of.phase_beyond(96 * MIB));
    assert_eq!(of.clone().like(None).beyond_bytes(None), 256 * MIB);
}

#[test]
fn the_foreseen_plan_is_both_phases_without_duplicates() {
    let machine = machine(2, 2);
    for effort in [Effort::Quick, Effort::Normal, Effort::Thorough] {
        let plan = plan(&machine, effort, base_pages());
        let cells = plan.foreseen();
        let first = plan.first_phase();
        assert_eq!(cells[..first.len()], first[..]);
        let mut seen = std::collections::BTreeSet::new();
        let second = &cells[first.len()..];
        assert!(second.iter().all(|cell| seen.insert(&cell.id)), "{:?}", ids(second));
        let kinds = |name: &str| second.iter().filter(|cell| cell.id.0.starts_with(name)).count();
        assert!(kinds("latency/") > 0 && kinds("bandwidth/") > 0 && kinds("c2c/") > 0);
        assert_eq!(kinds("loaded/") > 0, effort != Effort::Quick);
    }
}

#[test]
fn a_quick_run_has_one_cpu_of_each_node_in_its_matrix_and_three_kernels() {
    let machine = machine(2, 2);
    let plan = plan(&machine, Effort::Quick, base_pages());
    let cells = plan.phase_beyond(64 * MIB);
    let matrix = cells.iter().filter(|cell| {
        let latency: Option<&LatencyCell> = cell.experiment.cell();
        latency.is_some_and(|of| of.pattern == numalab_record::AccessPattern::Random)
    });
    let pairs: Vec<(u32, u32)> = matrix
        .map(|cell| cell.experiment.workers()[0])
        .map(|worker| (worker.cpu.0, worker.node.0))
        .collect();
    assert_eq!(pairs, [(0, 0), (2, 0), (0, 1), (2, 1)]);
    let mut kernels: Vec<StreamKernel> = cells
        .iter()
        .filter_map(|cell| cell.experiment.cell::<BandwidthCell>().map(|cell| cell.kernel))
        .collect();
    kernels.sort_by_key(|kernel| kernel.name());
    kernels.dedup();
    assert_eq!(kernels.len(), 3);
}

#[test]
fn a_plan_is_rebuilt_from_its_request() {
    let machine = machine(2, 2);
    let scope = Scope::new(&machine, Some(&"1".parse().unwrap()), None).unwrap();
    let asked = MeasurePlan::new(&machine, scope, Effort::Quick, Pages::BASE_4K);
    let mut other = curve(&machine, |_| 5.0);
    let sized = plan(&machine, Effort::Quick, Pages::BASE_4K).phase_beyond(64 * MIB);
    other.run.plan.extend(sized);
    let asked = asked.like(Some(&other));
    let again = MeasurePlan::again(&machine, &asked.choice()).unwrap().like(None);
    assert_eq!(again.foreseen(), asked.foreseen());
    assert_eq!(again.beyond_bytes(None), 64 * MIB);
    assert_ne!(again.foreseen(), plan(&machine, Effort::Quick, Pages::BASE_4K).foreseen());
}
