//! Programs of several processes, followed as one.

use serde_json::Value;

use super::{Lab, MACHINE, block_accesses, lab, of_nodes};

/// Reads by one worker: three rounds over all lines of the buffer.
const READS: u64 = 3 * (4 << 20) / 64;
const WORKERS: u64 = 4;

/// Returns the program in the report, its threads' nodes, and its run time in ns.
fn threads(report: &Value) -> (Vec<u64>, u64) {
    let program = &report["program"];
    let threads = program["threads"].as_array().expect("threads").iter();
    let nodes = threads.map(|thread| thread["cpu_node"].as_u64().expect("a node")).collect();
    (nodes, program["elapsed_ns"].as_u64().expect("a time"))
}

fn workers(lab: &Lab, how: &[&str]) -> Value {
    let program = lab.program("workers");
    let command: Vec<&str> = std::iter::once(program.as_str()).chain(how.iter().copied()).collect();
    lab.report_of(&command)
}

fn reads_by_all(report: &Value) -> u64 {
    let block = block_accesses(report);
    of_nodes(&block, 0, 0) + of_nodes(&block, 1, 0)
}

#[test]
fn forked_workers_are_threads_of_one_program_on_separate_cpus() {
    let Some(lab) = lab() else { return };
    let report = workers(lab, &["shared"]);
    let (nodes, elapsed_ns) = threads(&report);
    assert_eq!(nodes.len(), 5, "{nodes:?}");
    assert!(nodes.contains(&0) && nodes.contains(&1), "{nodes:?}");
    let block = block_accesses(&report);
    let remote = of_nodes(&block, 1, 0);
    assert!(remote >= READS && remote.is_multiple_of(READS), "{block:?}");
    assert!(reads_by_all(&report) >= WORKERS * READS, "{block:?}");
    let busy = |thread: &Value| thread["busy_ns"].as_u64().expect("a time");
    let threads = report["program"]["threads"].as_array().expect("threads");
    let (all, most) = (threads.iter().map(busy).sum::<u64>(), threads.iter().map(busy).max());
    assert!(elapsed_ns > most.expect("one"), "the parent waits for its workers: {elapsed_ns}");
    assert!(elapsed_ns < all, "workers run at the same time: {elapsed_ns} of {all}");
    let regions = report["program"]["regions"].as_array().expect("regions");
    let buffer = regions.iter().find(|region| region["shared"] == true).expect("it is shared");
    let sharing = buffer["pages"].as_array().expect("pages").iter().map(|of| &of["sharing"]);
    assert!(sharing.clone().all(|of| of == "read"), "{:?}", sharing.collect::<Vec<_>>());
}

#[test]
fn workers_that_are_killed_while_they_wait_are_followed_too() {
    let Some(lab) = lab() else { return };
    let report = workers(lab, &["killed"]);
    assert!(reads_by_all(&report) >= WORKERS * READS, "{:?}", block_accesses(&report));
}

#[test]
fn programs_that_children_become_are_part_of_the_program() {
    let Some(lab) = lab() else { return };
    let placement = lab.program("placement");
    let (alone, _) = threads(&lab.report_of(&[&placement, "first"]));
    let report = workers(lab, &["exec", &placement, "first"]);
    let (nodes, _) = threads(&report);
    assert!(nodes.len() >= 4 * alone.len(), "{nodes:?}");
}

#[test]
fn all_programs_of_a_pipeline_are_followed_and_counted() {
    let Some(lab) = lab() else { return };
    let program = lab.program("workers");
    let output = lab.run(&MACHINE, &["sh", "-c", &format!("{program} | {program} | cat")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let note = text.lines().find(|line| line.contains("processes are followed as one program"));
    let note = note.unwrap_or_else(|| panic!("{text}"));
    let count = note.split_whitespace().find_map(|word| word.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count >= 11), "{note}");
}
