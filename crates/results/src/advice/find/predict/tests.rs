mod followed;
mod together;

use numalab_record::study::Quantity;
use numalab_record::{
    AccessWaits, CodePlace, ContendedLine, Elsewhere, LineUser, NodeWaits, PagesAlike, Placed,
    ProgramThread, Region, RegionAccesses, Sharing,
};

use super::*;
use crate::VerdictWord;
use crate::advice::find::demand::Use;
use crate::advice::{Advice, AdvisedOption, KernelNow, Measured, RaceEnd, TrialPlace};

fn machine() -> MachineCosts {
    MachineCosts {
        nodes: vec![0, 1],
        cpus: vec![2, 2],
        has_memory: vec![true, true],
        latency_ns: vec![vec![100.0, 200.0], vec![200.0, 100.0]],
        transfer_ns: Some((20.0, 200.0)),
        shared_cache_ns: Some(10.0),
        ..MachineCosts::default()
    }
}

fn advice(program: &ProgramMemory, machine: MachineCosts) -> Advice {
    Advice::of(&[], program, machine, TrialPlace::Emulation)
}

fn interleave() -> Candidate {
    Candidate::Interleave { nodes: vec![0, 1] }
}

/// Returns a program with a first thread that worked for 100 ns, one on node 0 that worked for 600
/// ns, and two on node 1 that worked for 1000 ns each, `away_ns` of it waiting for pages on node 0.
fn program(away_ns: u64, sharing: Sharing, main_node: u32) -> ProgramMemory {
    let thread = |thread, cpu_node, busy_ns| ProgramThread {
        thread,
        cpu_node,
        busy_ns,
        elsewhere: Vec::new(),
    };
    let accesses = |thread, cpu_node, memory_ns| RegionAccesses {
        thread,
        cpu_node,
        waits: Some(AccessWaits { memory_ns, waited_ns: memory_ns, ..AccessWaits::default() }),
        ..RegionAccesses::default()
    };
    let waits = [(0, away_ns / 2), (1, 2 * away_ns)];
    let waits = waits.map(|(cpu_node, memory_ns)| NodeWaits { cpu_node, memory_ns });
    let waits: Vec<_> = if sharing == Sharing::Read { waits.to_vec() } else { vec![waits[1]] };
    let pages = PagesAlike {
        memory_node: 0,
        main_node,
        bound: false,
        sharing,
        pages: 1,
        accesses: 9,
        waits,
    };
    ProgramMemory {
        elapsed_ns: 1100,
        threads: vec![thread(0, 0, 100), thread(1, 1, 1000), thread(2, 0, 600), thread(3, 1, 1000)],
        regions: vec![Region {
            name: "block".to_owned(),
            pages: vec![pages],
            accesses: vec![accesses(1, 1, away_ns), accesses(3, 1, away_ns)],
            ..Region::default()
        }],
        ..ProgramMemory::default()
    }
}

fn change(candidate: &Candidate, program: &ProgramMemory) -> f64 {
    let found = predict(candidate, program, &machine()).expect("one run tells");
    let (low, high) = found.interval_percent;
    assert!(low <= found.change_percent && found.change_percent <= high, "{found:?}");
    found.change_percent
}

#[test]
fn pages_first_touched_by_their_users_cost_a_local_access() {
    let program = program(1000, Sharing::OneNode, 1);
    let advice = advice(&program, machine());
    let best = advice.best().expect("a gain");
    assert!(matches!(best.candidate, Candidate::FirstTouch { .. }), "{advice:?}");
    assert!(change(&best.candidate, &program) < -20.0, "{best:?}");
}

#[test]
fn pages_used_equally_by_nodes_may_be_on_any_of_them() {
    let mut program = program(1000, Sharing::Read, 1);
    let touched = Candidate::FirstTouch { line: None, region: String::new() };
    // The node is so close that the same misses wait half as long.
    program.regions[0].pages[0].waits[0].memory_ns = 1000;
    let (found, spread) = (change(&touched, &program), change(&interleave(), &program));
    assert!(found < -10.0 && (found - spread).abs() < 0.1, "{found} and {spread}");
    program.regions[0].pages[0].waits[0].memory_ns = 500;
    assert!(change(&touched, &program) < 1.5 * found, "they are those of node 1");
}

#[test]
fn a_likely_gain_is_worth_a_trial_and_equal_nodes_need_only_one() {
    let of_all = program(1000, Sharing::Read, 0);
    let mut advice = advice(&of_all, machine());
    let bind = |option: &&AdvisedOption| matches!(option.candidate, Candidate::Bind { .. });
    let binds = |advice: &Advice| advice.worth_a_trial().filter(bind).count();
    assert_eq!(advice.options.iter().filter(bind).count(), 2, "{advice:?}");
    assert_eq!(binds(&advice), 1, "{advice:?}");
    let second = advice.options.iter_mut().filter(|option| bind(&&**option)).nth(1);
    let second = second.expect("there are two");
    let predicted = second.predicted.as_mut().unwrap();
    predicted.change_percent += 1.0;
    predicted.interval_percent.1 = 9.0;
    assert_eq!(binds(&advice), 2, "{advice:?}");
    assert!(!advice.promising().any(|of| of.predicted.unwrap().interval_percent.1 > 0.0));
}

#[test]
fn a_difference_that_is_not_printed_puts_no_option_before_another() {
    let option = |change_percent| {
        let predicted = Prediction { change_percent, interval_percent: (-30.0, -9.0) };
        AdvisedOption::new(Candidate::Pack, Some(predicted))
    };
    let [one, other] = [option(-20.04), option(-20.01)].map(|of| of.expected_tenths());
    assert_eq!(one, other);
    assert!(option(-20.1).expected_tenths() < one);
}

#[test]
fn memory_read_by_all_gains_from_copies_and_written_memory_does_not() {
    let copies = Candidate::Replicate { line: None, region: String::new() };
    let read = program(1000, Sharing::Read, 0);
    assert!(predict(&copies, &read, &machine()).unwrap().interval_percent.0 < -10.0);
    assert_eq!(change(&copies, &program(1000, Sharing::Written, 0)), 0.0);
}

#[test]
fn the_best_level_of_a_metric_is_by_its_direction() {
    let mut advice = advice(&program(1000, Sharing::Read, 0), machine());
    for (option, change_percent) in advice.options.iter_mut().zip([5.0, 9.0]) {
        let interval_percent = Some((change_percent, change_percent));
        let verdict = VerdictWord::Better;
        option.measured = Some(Measured { change_percent, interval_percent, verdict, out: None });
    }
    let rate = Quantity::higher("value", "x/s");
    for (metric, best) in [(rate, 9.0), (Quantity::lower("value", "s"), 5.0)] {
        advice.metric = Some(metric);
        let found = advice.best().and_then(|option| option.measured.as_ref());
        assert_eq!(found.map(|of| of.change_percent), Some(best));
    }
}

#[test]
fn threads_that_have_no_cpu_wait_for_one() {
    let bind = Candidate::Bind { node: 0 };
    // 2.6 threads at a time on two cpus.
    assert!(change(&bind, &program(0, Sharing::Private, 0)) > 25.0);
}

#[test]
fn a_first_thread_that_works_with_the_others_is_not_a_setup_thread() {
    let mut program = program(0, Sharing::Read, 0);
    program.elapsed_ns = 1000;
    program.threads.iter_mut().for_each(|thread| thread.busy_ns = 1000);
    assert_eq!(program.threads.len(), 4);
    let machine = MachineCosts { cpus: vec![4, 4], ..machine() };
    let bound = predict(&Candidate::Bind { node: 0 }, &program, &machine).unwrap();
    assert!(bound.change_percent.abs() < 1.0, "{bound:?}");
    assert!((change(&Candidate::Bind { node: 0 }, &program) - 100.0).abs() < 1.0, "two cpus");
}

#[test]
fn bound_threads_share_one_cache_and_lose_lines_beyond_its_size() {
    let bind = Candidate::Bind { node: 1 };
    let plain = program(400, Sharing::Read, 0);
    let of = |set: fn(&mut AccessWaits)| {
        let mut program = plain.clone();
        for by in &mut program.regions[0].accesses {
            by.misses = Some(2);
            by.waits.iter_mut().for_each(set);
        }
        change(&bind, &program)
    };
    let before = change(&bind, &plain);
    assert!(of(|by| by.cached_ns = 300) < before - 5.0);
    assert!(of(|by| by.uncached = 2) > before + 5.0);
    assert!(of(|by| by.far_ns = 300) < before - 5.0);
    assert_eq!(of(|by| by.near_ns = 300), before);
}

#[test]
fn no_program_is_faster_than_the_bandwidth_that_is_left_to_it() {
    let bind = Candidate::Bind { node: 1 };
    let mut program = program(400, Sharing::Private, 1);
    program.regions[0].accesses.iter_mut().for_each(|by| by.misses = Some(100));
    // 200 lines of 64 bytes at 6.4 bytes per ns.
    let narrow = MachineCosts { bandwidth_mb_s: vec![6400.0; 2], ..machine() };
    let found = predict(&bind, &program, &narrow).unwrap().change_percent;
    assert!((found - 100.0 * (2000.0 / 1100.0 - 1.0)).abs() < 0.1, "{found}");
    assert!(predict(&interleave(), &program, &narrow).unwrap().change_percent < 10.0);
}

#[test]
fn memory_that_the_program_binds_stays_where_it_is() {
    let mut program = program(400, Sharing::Read, 0);
    assert!(change(&interleave(), &program) < -5.0);
    let near = change(&Candidate::Bind { node: 0 }, &program);
    let moved = change(&Candidate::Bind { node: 1 }, &program);
    program.regions[0].pages[0].bound = true;
    assert_eq!(change(&interleave(), &program), 0.0);
    assert_eq!(change(&Candidate::Bind { node: 0 }, &program), near);
    assert!(change(&Candidate::Bind { node: 1 }, &program) > moved + 5.0);
    let candidates = super::super::candidates(&program, &machine());
    let touched = candidates.iter().any(|of| matches!(of, Candidate::FirstTouch { .. }));
    assert!(!touched, "{candidates:?}");
}

#[test]
fn pages_go_by_bandwidth_where_nodes_differ_in_it() {
    let mut program = program(400, Sharing::Private, 0);
    program.regions[0].accesses.iter_mut().for_each(|by| by.misses = Some(100));
    let uneven = MachineCosts { bandwidth_mb_s: vec![20_000.0, 10_000.0], ..machine() };
    let advice = advice(&program, uneven);
    let weighted = Candidate::WeightedInterleave { weights: vec![2, 1] };
    let found = advice.options.iter().find(|option| option.candidate == weighted);
    let found = found.expect("it is an option").predicted.unwrap().change_percent;
    let evenly = change(&interleave(), &program);
    assert!(found < 0.0 && evenly < found, "{found}, {evenly}: those on node 1 wait longer");
    let even = Advice::of(&[], &program, machine(), TrialPlace::Emulation);
    assert!(even.options.iter().all(|option| option.candidate != weighted));
}

#[test]
fn who_hardly_waits_has_nothing_to_gain() {
    let advice = advice(&program(10, Sharing::OneNode, 1), machine());
    assert!(advice.best().is_none(), "{advice:?}");
    assert!(advice.hardly_waits());
}

/// Returns a line that `threads` threads store to, each to different bytes.
fn contended(threads: u32) -> ContendedLine {
    let user = |thread| LineUser {
        thread,
        cpu_node: thread % 2,
        loads: 1,
        stores: 1,
        loaded_bytes: 0xff << (8 * thread),
        stored_bytes: 0xff << (8 * thread),
        waited_ns: 800,
        at: Vec::new(),
    };
    let threads = (1..=threads).map(user).collect();
    ContendedLine { address: 0, region: String::new(), changes: 9, threads }
}

#[test]
fn one_run_does_not_predict_contention_for_a_line_elsewhere() {
    let mut shared = program(400, Sharing::Written, 0);
    let predicted = |program: &ProgramMemory| {
        let of = |candidate: &Candidate| predict(candidate, program, &machine()).is_some();
        [Candidate::Bind { node: 1 }, Candidate::Pack, interleave()].map(|candidate| of(&candidate))
    };
    shared.contended_lines = vec![contended(2)];
    assert_eq!(predicted(&shared), [true; 3]);
    shared.contended_lines = vec![contended(3)];
    assert_eq!(predicted(&shared), [false, false, true]);
    let advice = advice(&shared, machine());
    let is_bind = |option: &&AdvisedOption| matches!(option.candidate, Candidate::Bind { .. });
    let binds = |advice: &Advice| advice.worth_a_trial().filter(is_bind).count();
    assert_eq!(binds(&advice), 1, "trials decide, on one of two nodes that are alike: {advice:?}");
    let mut uneven = advice;
    uneven.machine.cpus[1] = 1;
    assert_eq!(binds(&uneven), 2);
    shared.contended_lines[0].threads.iter_mut().for_each(|user| user.waited_ns = 100);
    assert_eq!(predicted(&shared), [true; 3], "they hardly wait for it");
    let mut near = shared;
    near.contended_lines = vec![contended(3)];
    near.threads.iter_mut().for_each(|thread| thread.cpu_node = 1);
    assert_eq!(predicted(&near), [true, false, true], "they stay where they are");
}

#[test]
fn lines_that_are_shared_for_nothing_cost_nothing_apart() {
    let mut shared = program(0, Sharing::Private, 0);
    shared.contended_lines = vec![contended(3)];
    let advice = advice(&shared, machine());
    let apart = Candidate::SeparateLines { lines: Vec::new() };
    assert_eq!(advice.best().map(|option| &option.candidate), Some(&apart));
    let mut failed = advice.clone();
    let bind = failed.options.iter_mut().find(|option| option.candidate.is_by_command());
    let measured = Measured {
        change_percent: -1.0,
        interval_percent: Some((-9.0, 7.0)),
        verdict: VerdictWord::Inconclusive,
        out: None,
    };
    bind.expect("it can be bound").measured = Some(measured);
    assert_eq!(failed.best().map(|option| &option.candidate), Some(&apart));
    let found = change(&apart, &shared);
    assert!((-80.0..-60.0).contains(&found), "{found}");
}

#[test]
fn one_region_that_all_nodes_wait_for_goes_on_all_of_them_and_the_line_is_named() {
    let mut shared = program(400, Sharing::Written, 0);
    let made = CodePlace {
        object: "solver".to_owned(),
        offset: 1,
        function: None,
        line: Some("solver.c:7".to_owned()),
    };
    shared.regions[0].made_at = vec![made];
    shared.regions[0].start = 0x1000;
    let other = Region { name: "other".to_owned(), ..shared.regions[0].clone() };
    shared.regions.push(Region { start: 0x9000, made_at: Vec::new(), ..other });
    let found = advice(&shared, machine());
    let regions = |of: &&AdvisedOption| matches!(of.candidate, Candidate::BindRegion { .. });
    let bound: Vec<&AdvisedOption> = found.options.iter().filter(regions).collect();
    let [AdvisedOption { candidate: Candidate::BindRegion { line, nodes, .. }, .. }] = bound[..]
    else {
        panic!("the best way alone: {bound:?}");
    };
    // The waiting threads are on node 1, away from the region.
    assert_eq!((line.as_str(), nodes.as_slice()), ("solver.c:7", &[1][..]));
    let part = bound[0].predicted.unwrap().change_percent;
    let mut both = shared.clone();
    both.regions[1].start = 0x1000;
    let of_both = change(&bound[0].candidate, &both);
    assert!(part < -5.0 && of_both < 1.9 * part, "{part}, {of_both}");
    // A policy of the program's own is a call to change, and was not mentioned.
    shared.regions[0].pages[0].bound = true;
    assert_eq!(change(&bound[0].candidate, &shared), part);
    assert!(advice(&shared, machine()).options.iter().any(|of| regions(&of)));
}

#[test]
fn pages_of_a_file_are_read_to_the_node_that_waits_for_them_and_not_bound() {
    let mut mapped = program(1000, Sharing::Read, 1);
    let made = CodePlace {
        object: "solver".to_owned(),
        offset: 1,
        function: None,
        line: Some("solver.c:7".to_owned()),
    };
    (mapped.regions[0].made_at, mapped.regions[0].start) = (vec![made], 0x1000);
    let file = |name: &str| {
        let mut program = mapped.clone();
        program.regions[0].name = name.to_owned();
        advice(&program, machine()).options
    };
    let on_disk = file("/data/model.bin");
    let placed = on_disk.iter().find_map(|option| match &option.candidate {
        Candidate::PlaceFile { path, nodes, .. } => Some((path.as_str(), nodes.as_slice())),
        _ => None,
    });
    assert_eq!(placed, Some(("/data/model.bin", &[1][..])), "{on_disk:?}");
    let is_of_memory = |option: &AdvisedOption| {
        matches!(option.candidate, Candidate::BindRegion { .. } | Candidate::FirstTouch { .. })
    };
    assert!(!on_disk.iter().any(is_of_memory), "{on_disk:?}");
    let segment = file("/dev/shm/ring");
    assert!(segment.iter().any(is_of_memory), "{segment:?}");
    let is_file = |option: &AdvisedOption| matches!(option.candidate, Candidate::PlaceFile { .. });
    assert!(!segment.iter().any(is_file), "{segment:?}");
}

#[test]
fn questions_that_one_run_cannot_answer_are_left_to_trials_if_a_gain_is_possible() {
    let kernel = KernelNow { balancing: Some(1), ..KernelNow::default() };
    let balanced = MachineCosts { kernel, ..machine() };
    let off = Candidate::Balancing { mode: 0 };
    let tried = |away_ns| {
        let found = advice(&program(away_ns, Sharing::OneNode, 1), balanced.clone());
        let option = found.options.last().expect("options").clone();
        let is_tried = found.worth_a_trial().any(|of| of.candidate == off);
        assert_eq!((&option.candidate, option.predicted), (&off, None));
        is_tried
    };
    assert!(tried(1000) && !tried(10));
    let on = Candidate::Balancing { mode: 1 };
    assert_eq!(change(&on, &program(1000, Sharing::OneNode, 1)), 0.0, "it ends too early");
}

#[test]
fn a_candidate_that_was_out_is_not_the_best() {
    let mut found = advice(&program(1000, Sharing::Read, 0), machine());
    let measured = |change_percent, out| Measured {
        change_percent,
        interval_percent: None,
        verdict: VerdictWord::Better,
        out,
    };
    found.options[0].measured = Some(measured(-9.0, Some(RaceEnd { blocks: 3, behind: None })));
    found.options[1].measured = Some(measured(-5.0, None));
    assert_eq!(found.best().map(|of| &of.candidate), Some(&found.options[1].candidate));
}
