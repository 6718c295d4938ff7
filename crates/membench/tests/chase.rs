//! A walk makes exactly the requested loads, along the pointers in memory.

use numalab_membench::{Adds, Chase, Clock, Cycle, Line, LineSize, Pattern, dependent_adds};
use std::time::Instant;

/// Returns the line number reached by following the pointers in `lines` as plain data.
fn model(lines: &[Line], loads: u64) -> usize {
    let start = lines.as_ptr().addr() as u64;
    (0..loads).fold(0, |at, _| usize::try_from((lines[at].words()[0] - start) / 64).unwrap())
}

#[test]
fn n_loads_lead_exactly_n_nodes_on() {
    let mut lines = vec![Line::ZERO; 1000];
    let cycle = Cycle::new(Pattern::Random, 64_000, LineSize::Bytes64, 3).unwrap();
    for loads in (0..200).chain([991, 1000, 1024, 20_000, 20_001]) {
        let chase = Chase::build(cycle, &mut lines).unwrap();
        let mut walk = chase.walk();
        walk.loads(loads);
        let reached = walk.offset_bytes() / 64;
        assert_eq!(reached, model(&lines, loads), "{loads} loads");
    }
}

#[test]
fn a_window_continues_where_the_last_one_ended() {
    let mut lines = vec![Line::ZERO; 1000];
    let cycle = Cycle::new(Pattern::Random, 64_000, LineSize::Bytes64, 3).unwrap();
    let chase = Chase::build(cycle, &mut lines).unwrap();
    let mut walk = chase.walk();
    let first = walk.window(333).unwrap();
    let second = walk.window(334).unwrap();
    assert_eq!((first.loads, second.loads), (333, 334));
    assert!(second.start >= first.start);
    assert!(first.ticks.0 > 0 || second.ticks.0 > 0);
    assert_eq!(first.end_offset_bytes / 64, model(&lines, 333));
    assert_eq!(second.end_offset_bytes / 64, model(&lines, 667));
}

#[test]
fn walks_on_one_chase_are_independent() {
    let mut lines = vec![Line::ZERO; 100];
    let cycle = Cycle::new(Pattern::Random, 6400, LineSize::Bytes64, 3).unwrap();
    let chase = Chase::build(cycle, &mut lines).unwrap();
    std::thread::scope(|scope| {
        for loads in [17, 100_017] {
            let mut walk = chase.walk();
            scope.spawn(move || walk.loads(loads)).join().unwrap();
        }
    });
    let mut walk = chase.walk();
    walk.loads(17);
    let after_17 = walk.offset_bytes();
    assert_eq!(after_17 / 64, model(&lines, 17));
}

#[test]
fn a_window_and_a_chain_of_additions_take_time_on_a_calibrated_clock() {
    let epoch = Instant::now();
    let now_ns = || u64::try_from(epoch.elapsed().as_nanos()).unwrap();
    // Under emulation or on a loaded machine a single calibration may legitimately fail.
    let clock = (0..10).find_map(|_| Clock::calibrate(now_ns, 20_000_000).ok()).unwrap();
    let adds = Adds::window(1_000_003).unwrap();
    assert_eq!(adds.adds, 1_000_003);
    assert!(clock.ns(adds.ticks) > 0.0);
    assert!(adds.core_cycles_per_ns(&clock) > 0.0);
    dependent_adds(0);
    let mut lines = vec![Line::ZERO; 16];
    let cycle = Cycle::new(Pattern::Sequential, 1024, LineSize::Bytes64, 0).unwrap();
    let chase = Chase::build(cycle, &mut lines).unwrap();
    let window = chase.walk().window(1_000_000).unwrap();
    let expected = clock.ns(window.ticks) / 1e6;
    assert!((window.ns_per_load(&clock) - expected).abs() < 1e-9);
}
