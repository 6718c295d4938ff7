use numalab_record::LineUser;

use super::*;

/// "No gain from placement" was said of a program that takes 5 % less time on one node: 1.5 % of
/// its threads' time was a larger share of one thread's, for which the others wait.
#[test]
fn no_gain_is_said_only_if_no_thread_is_slowed() {
    let said = |slowest_ns: f64| {
        let program = ProgramMemory { elapsed_ns: 1_140_000, ..ProgramMemory::default() };
        let cost = RemoteCost {
            time_ns: 2.03e6,
            memory_ns: 1.2e5,
            remote_ns: 3.03e4,
            slowest: Some((2, slowest_ns)),
            regions: Vec::new(),
        };
        lead_of(&program, &cost).pop().map(|lead| lead.sentence).unwrap_or_default()
    };
    let expected = "Remote memory costs 1.49 % of the threads' time, but 2.63 % of the run time in thread 2, \
                    for which other threads may wait: about 0.0300 ms would be saved if \
                    every access were local.";
    assert_eq!(said(3.0e4), expected);
    assert!(said(1.0e4).starts_with("No gain from placement: "), "{}", said(1.0e4));
}

/// "At most 1.44 ms would be saved" was said of a lock whose threads take a third of the time on one
/// node.
#[test]
fn lines_passed_between_nodes_are_said_not_to_be_in_the_cost_of_remote_memory() {
    let said = |nodes: [u32; 2]| {
        let user = |cpu_node| LineUser {
            thread: cpu_node,
            cpu_node,
            loads: 9,
            stores: 9,
            loaded_bytes: 1,
            stored_bytes: 1,
            waited_ns: 400_000,
            at: Vec::new(),
        };
        let line = ContendedLine {
            address: 64,
            region: "lock".to_owned(),
            changes: 9,
            threads: nodes.map(user).to_vec(),
        };
        let program = ProgramMemory { contended_lines: vec![line], ..ProgramMemory::default() };
        let cost = RemoteCost {
            time_ns: 1e6,
            memory_ns: 9e5,
            remote_ns: 1e3,
            slowest: None,
            regions: Vec::new(),
        };
        placement(&program, &cost, None).sentence
    };
    let expected = "Remote memory costs 0.1 % of the time. Not counted: threads on different nodes \
                    pass lines to each other, and wait 80 % of the time for them; threads on one \
                    node would wait less.";
    assert_eq!(said([0, 1]), expected);
    assert!(said([1, 1]).starts_with("No gain from placement: "), "{}", said([1, 1]));
}

#[test]
fn the_time_of_page_faults_is_a_line_if_they_take_any() {
    let line = |faults| {
        let program = ProgramMemory { page_faults: faults, ..ProgramMemory::default() };
        page_faults(&program, 40e6).map(|lead| lead.sentence)
    };
    let expected = "8192 first uses of pages, which the kernel maps, clears or copies, and the freeing \
                    of pages take 50 % of the threads' time, 20.0 ms.";
    let taken = KernelTime { count: 8192, time_ns: 20_000_000 };
    assert_eq!(line(Some(taken)).as_deref(), Some(expected));
    assert_eq!([line(None), line(Some(KernelTime::default()))], [None, None]);
}

#[test]
fn the_time_of_system_calls_is_a_line_if_it_matters() {
    let line = |time_ns| {
        let calls = Some(KernelTime { count: 300, time_ns });
        let program = ProgramMemory { system_calls: calls, ..ProgramMemory::default() };
        system_calls(&program, 40e6).map(|lead| lead.sentence)
    };
    let expected = "300 system calls take 25 % of the threads' time, 10.0 ms.";
    assert_eq!(line(10_000_000).as_deref(), Some(expected));
    assert_eq!([line(0), line(1000)], [None, None]);
}
