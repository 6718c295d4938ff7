//! Figures of a scaling run's steps, and its ranks in groups.

use numalab_record::scaling::{Mode, ScalingMetric, ScalingStep};
use numalab_results::scaling::{Group, GroupKind, ScalingSummary, StepFigures};
use numalab_topology::{CpuId, NodeId};

use crate::scaling_lab::{MIB, machine, placed, scaling, step, sweep};

fn figures(steps: Vec<ScalingStep>) -> Vec<StepFigures> {
    ScalingSummary::of(&scaling(None, steps)).figures
}

#[test]
fn a_steps_figures_are_those_of_its_ranks() {
    let found = figures(vec![step("a", &[2.0, 4.0, 4.0, 10.0])]);
    let [of] = &found[..] else { panic!("{found:?}") };
    assert_eq!((of.mean, of.median, of.min, of.max, of.range), (5.0, 4.0, 2.0, 10.0, 8.0));
    assert!((of.deviation - 12.0_f64.sqrt()).abs() < 1e-12, "of a sample: {of:?}");
    assert!(of.p90 > 4.0 && of.p90 < of.p99 && of.p99 <= 10.0, "{of:?}");
    assert_eq!((of.ranks, of.size_bytes, of.file.as_str()), (4, 512 * MIB, "a"));
    assert_eq!((of.efficiency, of.baseline_ranks), (Some(1.0), Some(4)), "its own baseline");
    let one = &figures(vec![step("a", &[7.0])])[0];
    assert_eq!((one.deviation, one.p99, one.range), (0.0, 7.0, 0.0));
}

#[test]
fn efficiency_is_speed_relative_to_the_fewest_ranks_of_the_series() {
    let latency = figures(vec![step("two", &[100.0, 100.0]), step("one", &[80.0])]);
    let of = |found: &[StepFigures]| -> Vec<(Option<f64>, Option<usize>)> {
        found.iter().map(|of| (of.efficiency, of.baseline_ranks)).collect()
    };
    assert_eq!(of(&latency), [(Some(0.8), Some(1)), (Some(1.0), Some(1))]);
    let bandwidth = |file, values: &[f64]| ScalingStep {
        metric: ScalingMetric::Bandwidth,
        ..step(file, values)
    };
    let bandwidths = figures(vec![bandwidth("one", &[10.0]), bandwidth("two", &[6.0, 4.0])]);
    assert_eq!(of(&bandwidths), [(Some(1.0), Some(1)), (Some(0.5), Some(1))]);
}

#[test]
fn steps_that_differ_in_more_than_ranks_are_separate_series() {
    let other: [fn(ScalingStep) -> ScalingStep; 4] = [
        |step| ScalingStep { mode: Mode::Interleaved, ..step },
        |step| ScalingStep { domains: vec![1], ..step },
        |step| ScalingStep { serial: true, ..step },
        |step| ScalingStep { metric: ScalingMetric::Bandwidth, ..step },
    ];
    for other in other {
        let found = figures(vec![step("one", &[80.0]), other(step("two", &[100.0, 100.0]))]);
        assert_eq!(found[1].baseline_ranks, Some(2), "{found:?}");
    }
}

#[test]
fn a_size_that_the_fewest_ranks_lack_has_the_next_as_its_baseline() {
    let two = ScalingStep {
        sizes_bytes: vec![MIB, 2 * MIB],
        values: vec![vec![4.0, 4.0], vec![6.0, 6.0]],
        ..step("two", &[0.0, 0.0])
    };
    let four = ScalingStep {
        sizes_bytes: vec![2 * MIB],
        values: vec![vec![12.0; 4]],
        ..step("four", &[0.0; 4])
    };
    let one =
        ScalingStep { sizes_bytes: vec![MIB], values: vec![vec![2.0]], ..step("one", &[0.0]) };
    let found = figures(vec![one, two, four]);
    let of: Vec<_> = found.iter().map(|of| (of.ranks, of.baseline_ranks, of.efficiency)).collect();
    let expected = [
        (1, Some(1), Some(1.0)),
        (2, Some(1), Some(0.5)),
        (2, Some(2), Some(1.0)),
        (4, Some(2), Some(0.5)),
    ];
    assert_eq!(of, expected);
}

#[test]
fn ranks_are_grouped_by_core_ccd_and_node_in_the_fullest_step_at_the_largest_size() {
    let few = placed("few", &[1.0], &[(0, 0)]);
    let full = placed("full", &[10.0, 20.0, 30.0], &[(0, 0), (1, 1), (8, 1)]);
    let run = scaling(Some(machine()), vec![few, full]);
    let groups = ScalingSummary::of(&run).groups;
    let of = |kind| -> Vec<(u32, usize, f64, f64, f64)> {
        let of_kind = groups.iter().filter(|group| group.kind == kind);
        of_kind.map(|of| (of.number, of.ranks, of.mean, of.min, of.max)).collect()
    };
    let ranks = [(0, 1, 10.0, 10.0, 10.0), (1, 1, 20.0, 20.0, 20.0), (2, 1, 30.0, 30.0, 30.0)];
    assert_eq!(of(GroupKind::Rank), ranks);
    assert_eq!(of(GroupKind::Ccd), [(0, 2, 15.0, 10.0, 20.0), (2, 1, 30.0, 30.0, 30.0)]);
    assert_eq!(of(GroupKind::CpuNode), [(0, 2, 15.0, 10.0, 20.0), (1, 1, 30.0, 30.0, 30.0)]);
    assert_eq!(of(GroupKind::MemoryNode), [(0, 1, 10.0, 10.0, 10.0), (1, 2, 25.0, 20.0, 30.0)]);
    let all_three = |group: &Group| group.step_ranks == 3 && group.series == "sequential, node 0";
    assert!(groups.iter().all(all_three), "{groups:?}");
    let with_place: Vec<GroupKind> =
        groups.iter().filter(|group| group.place.is_some()).map(|group| group.kind).collect();
    assert_eq!(with_place, [GroupKind::Rank; 3]);
    assert_eq!(
        groups[1].place.map(|place| (place.cpu, place.memory_node)),
        Some((CpuId(1), Some(NodeId(1))))
    );
}

#[test]
fn without_places_there_are_ranks_alone_and_without_a_machine_no_ccds() {
    let kinds = |groups: Vec<Group>| -> Vec<GroupKind> {
        groups.into_iter().map(|group| group.kind).collect()
    };
    let unplaced = scaling(Some(machine()), vec![step("a", &[1.0, 2.0])]);
    assert_eq!(kinds(ScalingSummary::of(&unplaced).groups), [GroupKind::Rank; 2]);
    let unknown = scaling(None, vec![placed("a", &[1.0], &[(0, 0)])]);
    let found = kinds(ScalingSummary::of(&unknown).groups);
    assert_eq!(found, [GroupKind::Rank, GroupKind::MemoryNode]);
    let mut recorded = unknown;
    recorded.steps[0].places[0].as_mut().unwrap().cpu_node = Some(NodeId(5));
    let found = ScalingSummary::of(&recorded).groups;
    let of_node = found.iter().find(|group| group.kind == GroupKind::CpuNode);
    assert_eq!(of_node.map(|group| group.number), Some(5), "as recorded");
}

#[test]
fn series_are_named_by_order_nodes_and_turns() {
    let name = |step: ScalingStep| {
        let run = scaling(None, vec![step]);
        ScalingSummary::of(&run).groups[0].series.clone()
    };
    assert_eq!(name(step("a", &[1.0])), "sequential, node 0");
    let two = ScalingStep { mode: Mode::Interleaved, domains: vec![0, 3], ..step("a", &[1.0]) };
    assert_eq!(name(two.clone()), "interleaved, nodes 0,3");
    assert_eq!(name(ScalingStep { serial: true, ..two }), "interleaved, nodes 0,3, one at a time");
    let unknown = ScalingStep { mode: Mode::Other, domains: Vec::new(), ..step("a", &[1.0]) };
    assert_eq!(name(unknown), "other");
}

#[test]
fn a_step_that_broke_off_before_its_first_size_has_no_figures_and_no_groups() {
    let nothing = ScalingStep { sizes_bytes: Vec::new(), values: Vec::new(), ..step("a", &[]) };
    let run = scaling(Some(machine()), vec![nothing, sweep("b", &[(1.0, 2.0)], Some(0))]);
    let summary = ScalingSummary::of(&run);
    assert_eq!(summary.figures.len(), 1);
    assert_eq!(summary.scaling, &run);
    assert!(summary.groups.iter().all(|group| group.step_ranks == 1), "{:?}", summary.groups);
}
