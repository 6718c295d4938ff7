//! Threads that share cpus and memory.

use numalab_memory_model::curve::Curve;
use numalab_record::Stretch;

use super::*;

#[test]
fn threads_that_share_a_cpu_now_do_not_begin_to_where_they_are_bound() {
    let small = MachineCosts { cpus: vec![1, 1], ..machine() };
    // Two threads of 1000 ns share the cpu of node 1; one of 600 ns has that of node 0.
    let program = ProgramMemory { elapsed_ns: 2100, ..program(0, Sharing::Private, 0) };
    let bind = Candidate::Bind { node: 1 };
    let found = predict(&bind, &program, &small).unwrap().change_percent;
    assert!((found - 100.0 * 600.0 / 2100.0).abs() < 0.1, "{found}");
}

#[test]
fn threads_that_would_share_one_memory_wait_for_each_other() {
    let curve = Curve { writes_percent: 0.0, points: vec![(0.0, 100.0), (4000.0, 200.0)] };
    let busy = MachineCosts { node_load: vec![vec![curve]; 2], ..machine() };
    let mut program = program(0, Sharing::Private, 0);
    for (by, node) in program.regions[0].accesses.iter_mut().zip([0, 1]) {
        (by.cpu_node, by.memory_node, by.misses) = (node, node, Some(10));
        by.waits = Some(AccessWaits { memory_ns: 1160, queue_ns: 160, ..by.waits() });
    }
    let bind = Candidate::Bind { node: 1 };
    let alone = change(&bind, &program);
    // 640 bytes in 1000 ns on each node: a line takes 16 ns longer. On one node three threads of
    // 2600 ns in total have two cpus and take 1373 ns, so the traffic is 932 MB/s: 23.3 ns longer.
    let found = predict(&bind, &program, &busy).unwrap().change_percent;
    assert!((found - alone - 100.0 * 73.1 / 1100.0).abs() < 0.3, "{found} after {alone}");
    assert_eq!(predict(&Candidate::HugePages, &program, &busy).unwrap().change_percent, 0.0);
    // With all traffic in a quarter of the time after the fork, a line takes 64 ns longer, and 73.2
    // ns on one node.
    let stretch = |(end_ns, misses)| Stretch { end_ns, misses: Some(misses), ..Stretch::default() };
    program.timeline = [(100, 0), (350, 20), (1100, 0)].map(stretch).to_vec();
    for by in &mut program.regions[0].accesses {
        by.waits = Some(AccessWaits { memory_ns: 1640, queue_ns: 640, ..by.waits() });
    }
    let found = predict(&bind, &program, &busy).unwrap().change_percent;
    assert!((found - alone - 100.0 * 92.5 / 1100.0).abs() < 0.3, "{found} after {alone}");
}

/// Returns a program with two threads of node 1 that each read 20 lines from node 0 in 1000 ns, 2560
/// MB/s in all.
fn saturating() -> ProgramMemory {
    let mut program = program(0, Sharing::Written, 1);
    program.threads[2].busy_ns = 100;
    for by in &mut program.regions[0].accesses {
        by.misses = Some(20);
        by.waits = Some(AccessWaits { memory_ns: 950, queue_ns: 850, ..by.waits() });
    }
    program
}

#[test]
fn threads_that_wait_for_all_of_a_memory_halve_their_time_with_two() {
    let curve = Curve { writes_percent: 0.0, points: vec![(0.0, 100.0), (2560.0, 200.0)] };
    let busy = MachineCosts { node_load: vec![vec![curve]; 2], ..machine() };
    let program = saturating();
    let changed = |candidate: &Candidate| predict(candidate, &program, &busy).unwrap();
    let found = changed(&interleave()).change_percent;
    assert!((found - 100.0 * -500.0 / 1100.0).abs() < 1.0, "{found}");
    let same = changed(&Candidate::HugePages).change_percent;
    assert!(same.abs() < 1e-9, "{same}: the memory stays as busy");
    // Without load, prefetching hides all of the latency.
    let mut hidden = program.clone();
    for by in &mut hidden.regions[0].accesses {
        let waits = by.waits();
        by.waits = Some(AccessWaits { queue_ns: waits.memory_ns, ..waits });
    }
    let found = predict(&interleave(), &hidden, &busy).unwrap().change_percent;
    assert!((found - 100.0 * -500.0 / 1100.0).abs() < 1.0, "{found}");
}

#[test]
fn limits_without_curves_save_between_nothing_and_all_of_the_waiting_for_busy_memory() {
    let limited = MachineCosts { bandwidth_mb_s: vec![2560.0; 2], ..machine() };
    let program = saturating();
    let found = predict(&interleave(), &program, &limited).unwrap();
    let (low, high) = found.interval_percent;
    // 25 of 1000 ns are saved by the other latency.
    assert!(
        (found.change_percent + 100.0 * (500.0 + 25.0) / 2.0 / 1100.0).abs() < 1.0,
        "{found:?}"
    );
    assert!(low < -45.0 && high > -2.3, "{found:?}");
}
