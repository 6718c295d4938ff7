use numalab_host::perf::{DataSource, MapRecord};

use super::*;

const PAGE: u64 = 4096;
const START: u64 = 0x7f00_0000_0000;

fn program() -> Program {
    let mut program = Program::new(1, "test".to_owned(), 0, PAGE);
    program.space.take(&MapRecord {
        time_ns: 0,
        process: 1,
        start: START,
        end: START + 64 * PAGE,
        offset: 0,
        name: "//anon".to_owned(),
    });
    program
}

fn fault(thread: u32, page: u64) -> SampleRecord {
    SampleRecord {
        time_ns: 5,
        process: 1,
        thread,
        cpu: 0,
        calls: vec![START + 8],
        address: START + page * PAGE + 24,
        stack_pointer: None,
        access: None,
        latency_cycles: 0,
    }
}

fn load(thread: u32, page: u64, latency_cycles: u64) -> SampleRecord {
    let access = DataSource { operation: Some(Operation::Load), served_by: ServedBy::Memory };
    SampleRecord { access: Some(access), latency_cycles, ..fault(thread, page) }
}

fn on(node: u32) -> impl FnOnce(&[u64]) -> Vec<Option<u32>> {
    move |pages| vec![Some(node); pages.len()]
}

#[test]
fn a_fault_that_moves_its_page_counts_for_the_old_node() {
    let mut program = program();
    program.sample(&fault(7, 0), 0, Counted::Access);
    program.settle(on(0));
    // A thread of node 1 uses the page, and NUMA balancing moves it there.
    program.sample(&fault(8, 0), 1, Counted::Access);
    program.settle(on(1));
    program.sample(&fault(8, 0), 1, Counted::Access);
    program.settle(on(1));
    let mut by: Vec<_> = program
        .tallies
        .iter()
        .map(|(whose, tally)| (whose.cpu_node, whose.memory_node, tally.either))
        .collect();
    by.sort_unstable();
    assert_eq!(by, [(0, Some(0), 1), (1, Some(0), 1), (1, Some(1), 1)]);
    assert_eq!((program.accesses(), program.faults_again), ((3, 1), 2));
    let touch = program.touches.iter().next().unwrap();
    assert_eq!((touch.0.thread, *touch.1, program.touches.len()), (7, 1, 1));
}

#[test]
fn the_earlier_node_of_a_page_that_moved_before_the_query_is_unknown() {
    let mut program = program();
    program.sample(&fault(7, 0), 0, Counted::Access);
    program.sample(&fault(8, 0), 1, Counted::Access);
    program.sample(&fault(8, 1), 1, Counted::Access);
    program.settle(on(1));
    assert_eq!((program.unplaced, program.accesses()), (2, (3, 0)));
}

#[test]
fn a_sample_counts_for_the_node_of_its_page_and_a_fault_next_to_it_as_first_touch() {
    let mut program = program();
    program.sample(&fault(7, 3), 0, Counted::Touch);
    program.sample(&load(8, 3, 300), 1, Counted::Access);
    program.sample(&load(8, 3, 100), 1, Counted::Access);
    program.settle(on(0));
    let [(whose, tally)] = &program.tallies.iter().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((whose.thread, whose.cpu_node, whose.memory_node), (8, 1, Some(0)));
    assert_eq!((tally.loads, tally.misses, tally.latency_cycles), (2, 2, 400));
    assert_eq!(program.touches.values().sum::<u64>(), 1);
    let (_, page) = program.pages.all().next().unwrap();
    assert_eq!((page.accesses, page.remote, page.main_node()), (2, 2, Some(1)));
}

#[test]
fn a_page_that_disappears_before_its_query_is_counted_as_unplaced() {
    let mut program = program();
    program.sample(&fault(7, 0), 0, Counted::Access);
    program.settle(|pages| vec![None; pages.len()]);
    assert_eq!((program.unplaced, program.accesses()), (1, (1, 0)));
    let stretches = program.timeline.finish(10);
    assert_eq!(stretches[0].regions[0].unplaced, 1);
}

#[test]
fn samples_without_an_access_are_left_out() {
    let mut program = program();
    let access = DataSource { operation: None, served_by: ServedBy::Unknown };
    program.sample(&SampleRecord { access: Some(access), ..fault(7, 0) }, 0, Counted::Access);
    program.sample(&SampleRecord { address: 0, ..load(7, 0, 1) }, 0, Counted::Access);
    program.settle(on(0));
    assert_eq!(program.accesses(), (0, 0));
}

#[test]
fn used_ranges_add_up_over_polls() {
    let mut program = program();
    let range = (START, START + 8 * PAGE);
    program.used(range, RangeUse { used: 3, written: Some(1) }, (0, 5));
    program.used(range, RangeUse { used: 8, written: Some(0) }, (5, 6));
    let sum = program.ranges.values().next().unwrap();
    assert_eq!(*sum, RangeUse { used: 11, written: Some(1) });
    assert_eq!(program.accesses(), (11, 0));
    assert!(!program.is_divided);
}

#[test]
fn use_of_a_mapping_with_several_regions_is_shared_by_resident_memory() {
    let mut program = program();
    let below = (START - 64 * PAGE, START);
    let name = "//anon".to_owned();
    let (start, end) = below;
    program.space.take(&MapRecord { time_ns: 1, process: 1, start, end, offset: 0, name });
    program.resident.insert(0, BTreeMap::from([(0, 48)]));
    program.resident.insert(1, BTreeMap::from([(1, 16)]));
    program.used((start, START + 64 * PAGE), RangeUse { used: 32, written: None }, (0, 5));
    let mut used: Vec<_> =
        program.ranges.iter().map(|((region, ..), of)| (*region, of.used)).collect();
    used.sort_unstable();
    assert_eq!(used, [(0, 24), (1, 8)]);
    assert!(program.is_divided, "which region was used is not known");
}

#[test]
fn the_resident_share_of_a_part_follows_from_its_region() {
    let mut program = program();
    let parts = |program: &Program| program.resident_parts(START, START + 128 * PAGE);
    assert_eq!(parts(&program), [(START, START + 64 * PAGE, 0.0)], "nothing was looked at yet");
    program.resident.insert(0, BTreeMap::from([(0, 8), (1, 8)]));
    assert_eq!(parts(&program), [(START, START + 64 * PAGE, 0.25)]);
    program.resident.insert(0, BTreeMap::from([(0, 999)]));
    assert_eq!(parts(&program), [(START, START + 64 * PAGE, 1.0)], "at most all of it");
    let part = program.resident_parts(START + 8 * PAGE, START + 9 * PAGE);
    assert_eq!(part, [(START + 8 * PAGE, START + 9 * PAGE, 1.0)]);
}

#[test]
fn a_store_served_by_a_cache_is_not_a_miss_and_has_no_latency() {
    let mut program = program();
    let access = DataSource { operation: Some(Operation::Store), served_by: ServedBy::Unknown };
    let store = SampleRecord { access: Some(access), latency_cycles: 70, ..fault(7, 0) };
    program.sample(&store, 1, Counted::Access);
    program.settle(on(0));
    let tally = program.tallies.values().next().unwrap();
    assert_eq!((tally.stores, tally.loads, tally.misses, tally.latency_cycles), (1, 0, 0, 0));
    assert_eq!((program.accesses(), program.faults_again), ((1, 1), 0));
}

#[test]
fn accesses_are_counted_by_the_code_that_makes_them() {
    let mut program = program();
    for (page, code) in [(0, 8), (1, 8), (2, 64)] {
        let sample = SampleRecord { calls: vec![START + code], ..load(7, page, 1) };
        program.sample(&sample, 1, Counted::Access);
    }
    program.settle(on(0));
    let mut counts: Vec<(u64, u64)> = program.accessed_at.values().copied().collect();
    counts.sort_unstable();
    assert_eq!(counts, [(1, 1), (2, 2)], "all of them remote");
}
