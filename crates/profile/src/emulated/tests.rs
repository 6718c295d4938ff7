use std::os::unix::process::ExitStatusExt as _;

use numalab_record::profile::{Ended, Hindrance};
use numalab_record::{FirstTouches, ProgramThread, Region};

use super::*;

fn accesses(thread: u32, cpu_node: u32, memory_node: u32, loads: u64) -> RegionAccesses {
    let [loads, stores] = [loads, 1].map(Some);
    RegionAccesses { thread, cpu_node, memory_node, loads, stores, ..RegionAccesses::default() }
}

/// Returns a program of two regions: 5 of its 13 accesses are remote.
fn program(process: u32, became: Option<&str>) -> ProgramMemory {
    let region = |start, accesses: Vec<RegionAccesses>| Region {
        start,
        end: start + 4096,
        accesses,
        first_touches: vec![FirstTouches { thread: 1, cpu_node: 0, pages: 3, at: Vec::new() }],
        ..Region::default()
    };
    let thread =
        |thread, busy_ns| ProgramThread { thread, cpu_node: 0, busy_ns, elsewhere: Vec::new() };
    ProgramMemory {
        process,
        became: became.map(str::to_owned),
        threads: vec![thread(1, 100), thread(2, 50)],
        regions: vec![
            region(0x1000, vec![accesses(1, 0, 0, 6), accesses(2, 0, 1, 2)]),
            region(0x8000, vec![accesses(2, 1, 0, 1), accesses(1, 0, 0, 0)]),
        ],
        ..ProgramMemory::default()
    }
}

#[test]
fn a_process_is_summed_up_with_its_remote_accesses_and_first_touches() {
    let expected = OtherProcess {
        process: 9,
        name: "prog".to_owned(),
        busy_ns: 150,
        accesses: 13,
        remote: 5,
        touched_pages: 6,
    };
    assert_eq!(process(&program(9, None), "prog"), expected);
}

#[test]
fn a_processs_figures_have_the_name_of_the_program_that_it_executed_then() {
    let of = |path: Option<&str>| ProgramMemory {
        program: path.map(str::to_owned),
        ..program(9, Some("/usr/bin/next"))
    };
    assert_eq!(process(&of(Some("/usr/bin/before")), "prog").name, "before");
    assert_eq!(process(&of(None), "prog").name, "prog");
}

#[test]
fn a_program_is_named_by_its_file() {
    assert_eq!(file_name("/usr/bin/true"), "true");
    assert_eq!(file_name("./true"), "true");
    assert_eq!(file_name("true"), "true");
    assert_eq!(file_name(""), "");
}

#[test]
fn an_emulated_run_is_a_profile_of_its_command_and_not_of_this_machine() {
    let report = |process| {
        let mut report = MemoryReport::read(REPORT).unwrap();
        report.program = Some(program(process, None));
        report
    };
    let passed_over = vec![PassedOver {
        source: numalab_record::profile::SourceName::Samples,
        why: Hindrance::NoPmu,
    }];
    let run = EmulatedRun {
        command: vec!["/bin/prog".to_owned(), "x".to_owned()],
        status: ExitStatus::from_raw(9),
        watched_ns: 77,
        main: report(1),
        processes: vec![program(1, None), program(2, None)],
        nodes: Vec::new(),
        passed_over: passed_over.clone(),
    };
    let profile = Profile::from(run);
    assert_eq!((profile.name.as_str(), profile.watched_ns), ("prog", 77));
    assert_eq!(profile.ended, Ended::Signalled(9));
    assert_eq!(profile.source, ProfileSource::Emulation { one_in: 8 });
    assert_eq!(profile.cannot_see, [CannotSee::ThisMachine]);
    assert_eq!(profile.passed_over, passed_over);
    assert_eq!(profile.program, program(1, None));
    assert_eq!(profile.latency_ns, [[90.0, 150.0], [150.0, 90.0]]);
    let processes: Vec<u32> = profile.processes.iter().map(|of| of.process).collect();
    assert_eq!((processes, profile.others.len()), (vec![1, 2], 0));
    let words = vec!["/bin/prog".to_owned(), "x".to_owned()];
    assert_eq!(profile.target, Target::Command(words));
}

/// A report of the emulator, before a program is put into it.
const REPORT: &str = r#"{
    "schema": "numalab-emulator/1", "mode": "count", "qemu": { "vcpus": 2 }, "sample": 8,
    "self_test": [], "phases": [], "program": null,
    "machine": { "nodes": [], "latency_ns": [[90, 150], [150, 90]], "core": null }
}"#;
