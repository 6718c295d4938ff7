//! Findings in scaling runs: caches, CCDs, memory controllers, distance, disturbance.

use numalab_record::scaling::{Mode, ScalingMetric, ScalingStep};
use numalab_results::scaling::{
    CacheFit, Cause, Difference, Plateau, RankSide, ScalingEvidence, ScalingFinding,
    ScalingObservation, ScalingSummary,
};
use numalab_topology::NodeId;

use crate::scaling_lab::{MIB, machine, placed, scaling, step, sweep};

fn found(steps: Vec<ScalingStep>) -> Vec<ScalingFinding> {
    ScalingSummary::of(&scaling(Some(machine()), steps)).findings
}

fn files(finding: &ScalingFinding) -> Vec<&str> {
    let file = |evidence| match evidence {
        &ScalingEvidence::Ranks { ref file, .. }
        | &ScalingEvidence::Disturbed { ref file, .. }
        | &ScalingEvidence::Nodes { ref file, .. } => file.as_str(),
    };
    finding.evidence.iter().map(file).collect()
}

/// Returns the findings of a kind.
fn observed<T>(
    findings: &[ScalingFinding],
    pick: impl Fn(&ScalingObservation) -> Option<T>,
) -> Vec<T> {
    findings.iter().filter_map(|finding| pick(&finding.what)).collect()
}

#[test]
fn sizes_are_named_by_the_smallest_cache_that_holds_them_and_those_just_beyond_are_left_out() {
    let figures = [
        (0.03125, 1.2),
        (0.0625, 2.0),
        (0.5, 4.0),
        (1.0, 4.5),
        (2.0, 9.0),
        (8.0, 12.0),
        (64.0, 60.0),
        (128.0, 95.0),
        (512.0, 99.0),
    ];
    let found = found(vec![sweep("one", &figures, Some(0))]);
    let fits = observed(&found, |what| match what {
        ScalingObservation::Caches { ranks: 1, fits } => Some(fits.clone()),
        _ => None,
    });
    let fit = |level: Option<u8>, capacity_bytes, from: u64, to: u64, least_ns, most_ns| CacheFit {
        level,
        capacity_bytes,
        from_bytes: from,
        to_bytes: to,
        least_ns,
        most_ns,
        as_slow_as_memory: false,
    };
    let kib = 1024;
    let expected = vec![
        fit(Some(1), Some(32 * kib), 32 * kib, 32 * kib, 1.2, 1.2),
        fit(Some(2), Some(MIB), 512 * kib, MIB, 4.0, 4.5),
        fit(Some(3), Some(32 * MIB), 8 * MIB, 8 * MIB, 12.0, 12.0),
        fit(None, None, 128 * MIB, 512 * MIB, 95.0, 99.0),
    ];
    assert_eq!(fits, [expected]);
}

#[test]
fn without_a_machine_only_flat_stretches_are_reported() {
    let figures: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]
        .into_iter()
        .map(|mib| {
            (
                mib,
                if mib <= 8.0 {
                    10.0
                } else if mib >= 64.0 {
                    100.0
                } else {
                    40.0
                },
            )
        })
        .collect();
    let run = scaling(None, vec![sweep("one", &figures, None)]);
    let findings = ScalingSummary::of(&run).findings;
    let stretches = observed(&findings, |what| match what {
        ScalingObservation::Plateaus { plateaus } => Some(plateaus.clone()),
        _ => None,
    });
    let [stretches] = &stretches[..] else { panic!("{findings:?}") };
    let rounded = |of: &Plateau| (of.latency_ns.round(), of.from_bytes / MIB, of.to_bytes / MIB);
    assert_eq!(stretches.first().map(rounded), Some((10.0, 1, 8)));
    assert_eq!(stretches.last().map(rounded), Some((100.0, 64, 256)));
    assert_eq!(findings.last().map(|of| &of.what), Some(&ScalingObservation::PlacementUnknown));
}

#[test]
fn one_size_is_not_a_curve() {
    let findings = found(vec![placed("one", &[90.0], &[(0, 0)])]);
    assert_eq!(findings, [], "a placed rank at one size shows nothing");
}

#[test]
fn an_l3_that_several_ranks_share_shows_at_the_first_size_that_fits_alone_and_not_together() {
    let sizes = [(4.0, 10.0), (16.0, 12.0), (32.0, 14.0), (128.0, 90.0)];
    let alone = sweep("one", &sizes, Some(0));
    let packed = |ns: f64| ScalingStep {
        sizes_bytes: alone.sizes_bytes.clone(),
        values: vec![vec![10.0; 4], vec![ns; 4], vec![90.0; 4], vec![90.0; 4]],
        ..placed("four", &[1.0; 4], &[(0, 0), (1, 0), (2, 0), (3, 0)])
    };
    let shared = |ns| {
        let findings = found(vec![alone.clone(), packed(ns)]);
        observed(&findings, |what| match what {
            ScalingObservation::SharedL3 { .. } => Some(what.clone()),
            _ => None,
        })
    };
    let expected = |shared_ns, shows| ScalingObservation::SharedL3 {
        size_bytes: 16 * MIB,
        l3_bytes: 32 * MIB,
        ranks: 4,
        alone_ns: 12.0,
        shared_ns,
        shows,
    };
    assert_eq!(shared(19.0), [expected(19.0, true)]);
    assert_eq!(shared(18.0), [expected(18.0, false)], "half as long again is not beyond it");
}

#[test]
fn ranks_with_remote_memory_are_compared_with_local_ones_of_the_same_step() {
    let local = [(0, 0), (1, 0), (2, 0), (3, 0)];
    let remote = [(4, 1), (5, 1), (6, 1), (7, 1)];
    let values = [100.0, 101.0, 99.0, 100.0, 180.0, 181.0, 179.0, 180.0];
    let findings = found(vec![placed("mixed", &values, &[local, remote].concat())]);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    let side = |mean| RankSide { ranks: 4, mean };
    let difference = Difference { metric: ScalingMetric::Latency, ratio: 1.8, real: true };
    let expected = ScalingObservation::LocalAndRemote {
        size_bytes: 512 * MIB,
        local: side(100.0),
        remote: side(180.0),
        difference,
    };
    assert_eq!((&finding.what, finding.threshold), (&expected, Some(0.03)));
    let nodes = |memory, distance, mean| ScalingEvidence::Nodes {
        file: "mixed".to_owned(),
        cpu_node: NodeId(0),
        memory_node: NodeId(memory),
        distance: Some(distance),
        metric: ScalingMetric::Latency,
        ranks: 4,
        mean,
    };
    assert_eq!(finding.evidence, [nodes(0, 10, 100.0), nodes(1, 32, 180.0)]);
    let all_local = found(vec![placed("local", &values[..4], &local)]);
    assert_eq!(all_local, [], "there is nothing to compare with");
}

#[test]
fn differences_of_few_ranks_are_real_where_their_ranges_do_not_meet_and_by_3_percent() {
    let real = |remote: &[f64]| {
        let local = [100.0, 102.0];
        let values = [&local[..], remote].concat();
        let places: Vec<(u32, u32)> =
            (0..).take(values.len()).map(|cpu| (cpu, u32::from(cpu > 1))).collect();
        let findings = found(vec![placed("mixed", &values, &places)]);
        observed(&findings, |what| match what {
            ScalingObservation::LocalAndRemote { difference, .. } => Some(difference.real),
            _ => None,
        })
    };
    assert_eq!(real(&[105.0, 106.0]), [true]);
    assert_eq!(real(&[102.0, 120.0]), [false], "they meet at 102");
    assert_eq!(real(&[103.0, 104.0]), [false], "2.5 % are none");
    assert_eq!(real(&[90.0, 91.0]), [true], "faster is a difference too");
}

/// Compares the same four ranks with memory on node 0, packed and spread over CCDs.
fn packed_and_spread(dense_ns: f64, loose_ns: f64) -> Vec<ScalingFinding> {
    let dense = placed("dense", &[dense_ns; 4], &[(0, 0), (1, 0), (2, 0), (3, 0)]);
    let loose = placed("loose", &[loose_ns; 4], &[(0, 0), (1, 0), (4, 0), (5, 0)]);
    found(vec![dense, ScalingStep { mode: Mode::Interleaved, ..loose }])
}

#[test]
fn equal_ranks_packed_more_densely_show_the_cost_of_a_ccd() {
    let of_ccd = |findings: &[ScalingFinding]| {
        observed(findings, |what| match what {
            ScalingObservation::Ccd { .. } => Some(what.clone()),
            _ => None,
        })
    };
    let findings = packed_and_spread(120.0, 100.0);
    let expected = |ratio, real| ScalingObservation::Ccd {
        ranks: 4,
        on_node: 4,
        size_bytes: 512 * MIB,
        packed: 4,
        spread: 2,
        difference: Difference { metric: ScalingMetric::Latency, ratio, real },
    };
    assert_eq!(of_ccd(&findings), [expected(1.2, true)]);
    let finding = findings.iter().find(|of| matches!(of.what, ScalingObservation::Ccd { .. }));
    assert_eq!(files(finding.unwrap()), ["loose", "dense"]);
    assert_eq!(of_ccd(&packed_and_spread(100.0, 100.0)), [expected(1.0, false)]);
    let other = placed("other", &[100.0; 4], &[(0, 0), (1, 0), (8, 0), (9, 0)]);
    let other = ScalingStep { domains: vec![0, 1], mode: Mode::Interleaved, ..other };
    let dense = placed("dense", &[120.0; 4], &[(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert_eq!(of_ccd(&found(vec![dense, other])), [], "of other domains");
}

fn contention(findings: &[ScalingFinding]) -> Vec<(usize, usize, bool, Option<Cause>)> {
    observed(findings, |what| match what {
        ScalingObservation::Contention { few, many, difference, cause, .. } => {
            Some((*few, *many, difference.real, *cause))
        }
        _ => None,
    })
}

#[test]
fn a_slowdown_is_attributed_to_the_only_busier_resource() {
    let one = placed("one", &[100.0], &[(0, 0)]);
    let of = |values: &[f64], places: &[(u32, u32)]| {
        contention(&found(vec![one.clone(), placed("many", values, places)]))
    };
    let ccd = of(&[150.0, 151.0], &[(0, 0), (1, 1)]);
    assert_eq!(ccd, [(1, 2, true, Some(Cause::Ccd))], "each node's memory carries one");
    let between = of(&[150.0, 151.0], &[(0, 0), (8, 1)]);
    assert_eq!(between, [(1, 2, true, Some(Cause::BetweenNodes))]);
    let both = of(&[150.0, 151.0], &[(0, 0), (1, 0)]);
    assert_eq!(both, [(1, 2, true, Some(Cause::CcdOrMemory))]);
    let none = of(&[100.0, 101.0], &[(0, 0), (1, 0)]);
    assert_eq!(none, [(1, 2, false, None)], "there is nothing to lay to anything");
    let unplaced = contention(&found(vec![one, step("many", &[150.0, 151.0])]));
    assert_eq!(unplaced, [(1, 2, true, Some(Cause::Unknown))]);
}

#[test]
fn a_slowdown_of_a_nodes_memory_alone_is_reported_once_as_its_controllers() {
    let one = placed("one", &[100.0], &[(0, 0)]);
    let two = placed("two", &[150.0, 151.0], &[(0, 0), (4, 0)]);
    let findings = found(vec![one.clone(), two]);
    let controllers = observed(&findings, |what| match what {
        ScalingObservation::MemoryControllers { few, many, in_ccd, difference, series, .. } => {
            Some((*few, *many, *in_ccd, difference.real, series.clone()))
        }
        _ => None,
    });
    assert_eq!(controllers, [(1, 2, 1, true, "sequential, node 0".to_owned())]);
    assert_eq!(contention(&findings), [], "another finding reports it");
    let fast = placed("two", &[100.0, 101.0], &[(0, 0), (4, 0)]);
    assert_eq!(contention(&found(vec![one, fast])), [(1, 2, false, None)]);
}

#[test]
fn concurrent_ranks_are_compared_with_the_same_ranks_in_turn() {
    let serial = ScalingStep { serial: true, ..step("turns", &[100.0, 101.0]) };
    let at_once = step("at once", &[140.0, 141.0]);
    let findings = found(vec![serial.clone(), at_once]);
    let concurrent = observed(&findings, |what| match what {
        ScalingObservation::Concurrent { ranks, difference, .. } => Some((*ranks, difference.real)),
        _ => None,
    });
    assert_eq!(concurrent, [(2, true)]);
    let more = found(vec![serial, step("at once", &[140.0, 141.0, 142.0])]);
    let none = observed(&more, |what| match what {
        ScalingObservation::Concurrent { .. } => Some(()),
        _ => None,
    });
    assert_eq!(none, [], "other ranks");
}

#[test]
fn steps_disturbed_for_more_than_a_twentieth_come_last() {
    let with = |file, disturbed| ScalingStep { disturbed, ..placed(file, &[100.0], &[(0, 0)]) };
    let steps = vec![with("calm", Some(0.05)), with("busy", Some(0.06)), with("unknown", None)];
    let findings = found(steps);
    let last = findings.last().expect("a finding");
    assert_eq!(last.what, ScalingObservation::Disturbance { steps: 3 });
    let share = 0.06;
    let evidence = ScalingEvidence::Disturbed { file: "busy".to_owned(), share };
    assert_eq!((last.threshold, &last.evidence[..]), (Some(0.05), &[evidence][..]));
    let calm = found(vec![with("calm", Some(0.05))]);
    assert_eq!(calm, []);
}
