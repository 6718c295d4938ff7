use super::*;
use crate::test_records::{CHILD, CODE, HEAP, PAGE, PROCESS, fault, load, machine, map, store};

fn follower(nodes: u32, faults_count: Counted) -> Follower {
    let mut follower = Follower::new(Nodes::of(&machine(nodes)), faults_count);
    follower.page_bytes = PAGE;
    follower
}

/// Returns a program that has begun with code and a heap.
fn begun(nodes: u32) -> Follower {
    let mut follower = follower(nodes, Counted::Access);
    let name = "prog".to_owned();
    follower.take(&[
        PerfRecord::Exec { time_ns: 1, process: PROCESS, name },
        map(PROCESS, CODE, 4, "/bin/prog"),
        map(PROCESS, HEAP, 64, "//anon"),
    ]);
    follower
}

fn names(space: &crate::space::Space) -> Vec<&str> {
    space.regions().iter().map(|region| region.name.as_str()).collect()
}

#[test]
fn faults_and_samples_are_counted_apart_and_go_to_their_program() {
    let mut follower = begun(1);
    follower.take(&[
        fault(PROCESS, PROCESS, 0, 0),
        fault(PROCESS, PROCESS, 0, 1),
        load(PROCESS, 0, 0, 300),
        store(PROCESS, 1, 1),
    ]);
    follower.settle_all();
    assert_eq!((follower.faults.seen, follower.samples), (2, 2));
    let program = &follower.living[&PROCESS];
    assert_eq!((program.accesses(), program.faults_again), ((4, 0), 0));
    assert_eq!(program.touches.values().sum::<u64>(), 2);
    assert_eq!(program.unplaced, 0, "a machine of one node has no other place");
}

#[test]
fn a_fault_next_to_samples_is_a_touch_and_not_an_access() {
    let mut follower = follower(1, Counted::Touch);
    follower.take(&[map(PROCESS, HEAP, 4, "//anon"), fault(PROCESS, 7, 0, 0)]);
    follower.settle_all();
    let program = &follower.living[&PROCESS];
    assert_eq!((program.accesses(), program.touches.len()), ((0, 0), 1));
}

#[test]
fn an_access_is_of_the_node_of_its_cpu() {
    let mut follower = begun(2);
    follower.take(&[fault(PROCESS, 7, 3, 0), fault(PROCESS, 8, 0, 1), fault(PROCESS, 9, 99, 2)]);
    let mut touches: Vec<(u32, u32)> = follower.living[&PROCESS]
        .touches
        .keys()
        .map(|touch| (touch.thread, touch.cpu_node))
        .collect();
    touches.sort_unstable();
    let unknown_cpu = (9, 0);
    assert_eq!(touches, [(7, 1), (8, 0), unknown_cpu]);
}

#[test]
fn pages_of_an_ended_process_have_no_known_node_without_an_error() {
    let mut follower = begun(2);
    follower.take(&[fault(PROCESS, 7, 0, 0)]);
    follower.settle_all();
    assert_eq!(follower.living[&PROCESS].unplaced, 1);
    assert_eq!(follower.cannot_see, []);
}

#[test]
fn a_process_that_calls_exec_starts_afresh() {
    let mut follower = begun(1);
    follower.take(&[fault(PROCESS, PROCESS, 0, 0)]);
    let name = "next".to_owned();
    follower.take(&[
        PerfRecord::Exec { time_ns: 9, process: PROCESS, name },
        map(PROCESS, HEAP, 2, "//anon"),
        fault(PROCESS, PROCESS, 0, 0),
        fault(PROCESS, PROCESS, 0, 1),
    ]);
    follower.settle_all();
    let [before] = &follower.past[..] else { panic!("{:?}", follower.past) };
    assert_eq!((before.name.as_str(), before.became.as_deref()), ("prog", Some("next")));
    assert_eq!(before.accesses(), (1, 0), "what was pending is settled");
    let now = &follower.living[&PROCESS];
    assert_eq!((now.name.as_str(), now.begun_ns, now.accesses()), ("next", 9, (2, 0)));
    assert_eq!(names(&now.space), ["[anonymous]"]);
}

#[test]
fn a_child_begins_with_the_name_and_the_memory_of_its_parent_and_its_own_counts() {
    let mut follower = begun(1);
    follower.take(&[
        fault(PROCESS, PROCESS, 0, 0),
        PerfRecord::Forked { time_ns: 5, parent: PROCESS, process: CHILD, thread: CHILD },
        fault(CHILD, CHILD, 1, 3),
        map(CHILD, HEAP + 64 * PAGE, 1, "/lib/own"),
    ]);
    follower.settle_all();
    let child = &follower.living[&CHILD];
    assert_eq!((child.name.as_str(), child.begun_ns, child.accesses()), ("prog", 5, (1, 0)));
    assert_eq!(names(&child.space), ["/bin/prog", "[anonymous]", "/lib/own"]);
    let parent = &follower.living[&PROCESS];
    assert_eq!(parent.accesses(), (1, 0));
    assert_eq!(names(&parent.space), ["/bin/prog", "[anonymous]"]);
}

#[test]
fn a_new_thread_is_not_a_child() {
    let mut follower = begun(1);
    follower.take(&[PerfRecord::Forked {
        time_ns: 5,
        parent: PROCESS,
        process: PROCESS,
        thread: 77,
    }]);
    assert_eq!(follower.living.keys().collect::<Vec<_>>(), [&PROCESS]);
    assert_eq!(names(&follower.living[&PROCESS].space), ["/bin/prog", "[anonymous]"]);
}

#[test]
fn a_child_of_a_process_that_was_not_seen_has_nothing_yet() {
    let mut follower = follower(1, Counted::Access);
    let (parent, process) = (PROCESS, CHILD);
    follower.take(&[PerfRecord::Forked { time_ns: 5, parent, process, thread: process }]);
    let child = &follower.living[&CHILD];
    assert_eq!((child.name.as_str(), child.space.regions().len()), ("", 0));
}

#[test]
fn a_program_ends_with_its_process_and_not_with_one_of_its_threads() {
    let mut follower = begun(1);
    follower.take(&[
        fault(PROCESS, 77, 0, 0),
        PerfRecord::Ended { time_ns: 8, process: PROCESS, thread: 77 },
    ]);
    assert!(follower.living.contains_key(&PROCESS) && follower.past.is_empty());
    follower.take(&[PerfRecord::Ended { time_ns: 9, process: PROCESS, thread: PROCESS }]);
    assert!(follower.living.is_empty());
    assert_eq!(follower.past[0].accesses(), (1, 0), "what was pending is settled");
    follower.take(&[PerfRecord::Ended { time_ns: 9, process: CHILD, thread: CHILD }]);
    assert_eq!(follower.past.len(), 1, "one that was never seen is none");
}

#[test]
fn pages_of_an_ended_process_are_not_queried() {
    let mut follower = begun(2);
    follower.take(&[
        fault(PROCESS, 77, 0, 0),
        PerfRecord::Ended { time_ns: 9, process: PROCESS, thread: PROCESS },
    ]);
    assert_eq!(follower.past[0].unplaced, 1);
}

#[test]
fn threads_have_the_names_that_they_were_given() {
    let mut follower = begun(1);
    let named = |thread, name: &str| PerfRecord::Named {
        time_ns: 3,
        process: PROCESS,
        thread,
        name: name.to_owned(),
    };
    follower.take(&[named(PROCESS, "main"), named(77, "io"), named(77, "worker")]);
    let names: Vec<_> =
        follower.living[&PROCESS].threads.all().map(|(of, seen)| (of, seen.name.clone())).collect();
    let expected = [(77, Some("worker".to_owned())), (PROCESS, Some("main".to_owned()))];
    assert_eq!(names, expected);
}

#[test]
fn lost_records_change_nothing_that_is_known() {
    let mut follower = begun(1);
    follower.take(&[PerfRecord::Lost { records: 9 }]);
    assert_eq!((follower.faults.seen, follower.samples), (0, 0));
    assert_eq!(follower.living.len(), 1);
}

#[test]
fn an_invisible_fact_is_reported_once() {
    let mut follower = follower(1, Counted::Access);
    follower.cannot(CannotSee::Before);
    follower.cannot(CannotSee::FaultsInKernel);
    follower.cannot(CannotSee::Before);
    assert_eq!(follower.cannot_see, [CannotSee::Before, CannotSee::FaultsInKernel]);
}

#[test]
fn events_of_a_process_that_was_not_seen_make_a_program_of_it() {
    let mut follower = follower(1, Counted::Access);
    follower.take(&[fault(CHILD, CHILD, 0, 5)]);
    follower.settle_all();
    let program = &follower.living[&CHILD];
    assert_eq!((program.begun_ns, program.accesses()), (2_000, (1, 0)));
    let region = &program.space.regions()[0];
    assert_eq!((region.start, region.end), (HEAP + 5 * PAGE, HEAP + 6 * PAGE));
}
