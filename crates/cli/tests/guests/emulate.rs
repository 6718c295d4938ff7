//! Programs on emulated machines: the placement of their pages, its cost, and that they end as they
//! would natively.
//!
//! They need QEMU's user mode (package qemu-user) and a C compiler. With
//! `NUMALAB_REQUIRE_TOOLS=1` their lack is a failure; otherwise it is printed.

mod numa;
#[path = "../programs/processes.rs"]
mod processes;
mod real;

use std::process::{Command, Output};

use crate::programs::lab::{Lab, lab, line_of};
use serde_json::Value;

use crate::{jq, schemas};

/// Two nodes with small caches and no overlap of misses, so that figures follow from counts.
const MACHINE: [&str; 8] =
    ["--emulate", "2", "--cpus", "4", "--emulate-cache", "32K,256K", "--emulate-stages", "none"];

impl Lab {
    fn run(&self, options: &[&str], command: &[&str]) -> Output {
        let mut run = Command::new(env!("CARGO_BIN_EXE_numalab"));
        run.env("NUMALAB_EMULATOR", &self.plugin).arg("emulate").args(options).arg("--");
        run.args(command).output().expect("it starts")
    }

    /// Returns the report of the program run in one way.
    fn report(&self, how: &str) -> Value {
        self.report_of(&[&self.program("placement"), how])
    }

    fn report_of(&self, command: &[&str]) -> Value {
        self.report_with(&MACHINE, command)
    }

    fn report_with(&self, machine: &[&str], command: &[&str]) -> Value {
        let file = tempfile::NamedTempFile::new_in(&self.directory).expect("a file");
        let place = file.path().to_string_lossy();
        let options: Vec<&str> = machine.iter().copied().chain(["-o", &*place]).collect();
        let output = self.run(&options, command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        schemas::document(&std::fs::read(file.path()).expect("it was written"))
    }
}

/// Returns loads and stores of the block by (node of the cpus, node of the memory).
fn block_accesses(report: &Value) -> Vec<((u64, u64), u64)> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let regions = report["program"]["regions"].as_array().expect("regions");
    let ours = |region: &&Value| number(&region["end"]) - number(&region["start"]) == 4 << 20;
    let block = regions.iter().find(ours).expect("the block is one of them");
    let by = block["accesses"].as_array().expect("accesses").iter();
    by.map(|by| {
        let nodes = (number(&by["cpu_node"]), number(&by["memory_node"]));
        (nodes, number(&by["loads"]) + number(&by["stores"]))
    })
    .collect()
}

fn of_nodes(accesses: &[((u64, u64), u64)], cpu: u64, memory: u64) -> u64 {
    let of = accesses.iter().filter(|(nodes, _)| *nodes == (cpu, memory));
    of.map(|(_, count)| count).sum()
}

/// Reads of a quarter by one thread: three rounds over its lines.
const READS: u64 = 3 * (4 << 20) / 4 / 64;

#[test]
fn memory_first_touched_by_one_thread_is_named_with_its_cost() {
    let Some(lab) = lab() else { return };
    let report = lab.report("first");
    let accesses = block_accesses(&report);
    assert_eq!(of_nodes(&accesses, 1, 0), 2 * READS, "{accesses:?}");
    assert_eq!(of_nodes(&accesses, 0, 1) + of_nodes(&accesses, 1, 1), 0, "{accesses:?}");
    let (results, taken) = (&report["results"], &report["taken"]["command"]);
    assert!(results["remote_percent"].as_f64() > Some(1.0), "{results}");
    let [region] = &results["remote_regions"].as_array().expect("regions")[..] else {
        panic!("{results}")
    };
    assert_eq!((&region["cpu_node"], &region["memory_node"]), (&1.into(), &0.into()));
    assert!(taken.to_string().contains("\"--emulate\",\"2\",") && taken[0] != "", "{taken}");
    let [figures] = &jq::documented("cost.json", &report.to_string())[..] else {
        panic!("expected one line for cost.json")
    };
    assert!(figures.contains("remote_percent") && figures.contains("\"emulate\""), "{figures}");
    let output = lab.run(&MACHINE, &[&lab.program("placement"), "first"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("Remote memory costs"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("it is on node 0, but cpus of node 1 use it"), "{text}");
    assert!(text.starts_with("Memory cost of placement on a machine with 2 nodes"), "{text}");
    assert!(output.stdout.is_empty());
}

/// `profile` uses the same report, and names its source.
#[test]
fn an_emulated_profile_has_the_counts_of_emulate_and_names_its_source() {
    let Some(lab) = lab() else { return };
    let program = lab.program("placement");
    let profile = |options: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_numalab"));
        run.env("NUMALAB_EMULATOR", &lab.plugin).arg("profile").args(options);
        run.args(["-o", "/dev/stdout", "--", &program, "first"]).output().expect("it starts")
    };
    let output = profile(&MACHINE);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = schemas::document(&output.stdout);
    assert_eq!(found["source"]["name"], "emulation");
    assert_eq!(block_accesses(&found), block_accesses(&lab.report("first")));
    assert_eq!(found["latency_ns"].as_array().expect("rows").len(), 2);
    let html = profile(&[&MACHINE[..], &["--format", "html"]].concat());
    let html = String::from_utf8_lossy(&html.stdout).into_owned();
    assert!(html.contains("used from node 1") && html.contains("Remote memory costs"), "{html}");
    // Without a better source emulation is chosen, and the user learns that it takes long.
    let output = profile(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let chosen = schemas::document(&output.stdout);
    if chosen["source"]["name"] == "emulation" {
        assert!(said.contains("10 to 100 times slower; --source faults"), "{said}");
        assert_eq!(chosen["passed_over"][0]["source"], "samples");
    }
}

#[test]
fn the_time_line_has_every_access_and_all_the_time_that_threads_were_busy() {
    let Some(lab) = lab() else { return };
    let program = &lab.report("first")["program"];
    let array = |value: &Value| value.as_array().expect("a list").clone();
    let sum = |all: &[Value], what: [&str; 2]| -> u64 {
        all.iter().flat_map(|of| what.map(|name| of[name].as_u64().unwrap_or(0))).sum()
    };
    let stretches = array(&program["timeline"]);
    let ends: Vec<_> = stretches.iter().map(|of| of["end_ns"].as_u64()).collect();
    assert!(ends.len() > 10 && ends.is_sorted_by(|one, next| one < next), "{ends:?}");
    assert_eq!(ends.last(), Some(&program["elapsed_ns"].as_u64()));
    let busy = |all: &[Value]| sum(all, ["busy_ns", ""]);
    assert_eq!(busy(&stretches), busy(&array(&program["threads"])));
    let by_region = array(&program["regions"]);
    let misses: u64 = by_region.iter().map(|of| sum(&array(&of["accesses"]), ["misses", ""])).sum();
    assert_eq!(sum(&stretches, ["misses", ""]), misses);
    let used: Vec<Value> = stretches.iter().flat_map(|of| array(&of["regions"])).collect();
    for (position, region) in by_region.iter().enumerate() {
        let of_it = used.iter().filter(|of| of["region"].as_u64() == Some(position as u64));
        let of_it: Vec<Value> = of_it.cloned().collect();
        let accesses = sum(&array(&region["accesses"]), ["loads", "stores"]);
        assert_eq!(sum(&of_it, ["local", "remote"]), accesses, "{region:#}");
    }
}

#[test]
fn threads_that_touch_their_own_memory_have_nothing_to_gain() {
    let Some(lab) = lab() else { return };
    let accesses = block_accesses(&lab.report("own"));
    assert!(of_nodes(&accesses, 1, 1) >= 2 * READS, "{accesses:?}");
    assert_eq!(of_nodes(&accesses, 1, 0) + of_nodes(&accesses, 0, 1), 0, "{accesses:?}");
    let output = lab.run(&MACHINE, &[&lab.program("placement"), "own"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("No gain from placement"), "{text}");
}

#[test]
fn memory_is_where_the_program_binds_it_and_moves_on_request() {
    let Some(lab) = lab() else { return };
    let bound = block_accesses(&lab.report("bound"));
    assert_eq!(of_nodes(&bound, 0, 0) + of_nodes(&bound, 1, 0), 0, "{bound:?}");
    let moved = block_accesses(&lab.report("moved"));
    assert_eq!(of_nodes(&moved, 1, 1), 2 * READS, "{moved:?}");
    assert_eq!(of_nodes(&moved, 1, 0), 0, "{moved:?}");
    assert!(of_nodes(&moved, 0, 0) >= 4 << 20, "touched on node 0 before: {moved:?}");
}

#[test]
fn threads_packed_on_one_node_have_all_their_memory_there() {
    let Some(lab) = lab() else { return };
    let pack = ["--threads", "0-1", "-o", "/dev/stdout"];
    let options: Vec<&str> = MACHINE.into_iter().chain(pack).collect();
    let output = lab.run(&options, &[&lab.program("placement"), "first"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let accesses = block_accesses(&report);
    assert!(accesses.iter().all(|(nodes, _)| *nodes == (0, 0)), "{accesses:?}");
}

#[test]
fn threads_take_cpus_in_the_order_in_which_they_are_made() {
    let Some(lab) = lab() else { return };
    let report = lab.report_of(&[&lab.program("births")]);
    let threads = report["program"]["threads"].as_array().expect("threads").iter();
    let busy = threads.map(|thread| thread["busy_ns"].as_u64().expect("a number"));
    let busy: Vec<u64> = busy.skip(1).collect();
    assert_eq!(busy.len(), 24, "{busy:?}");
    assert!(busy.is_sorted(), "each has more to do than the one before: {busy:?}");
}

#[test]
fn a_thread_resumes_when_another_wakes_it_whenever_the_host_runs_it() {
    let Some(lab) = lab() else { return };
    // Two threads take turns, so their times add up.
    let run = || {
        let program = &lab.report_of(&[&lab.program("answers"), "hand-over", "4"])["program"];
        let elapsed_ns = program["elapsed_ns"].as_u64().expect("a time");
        let threads = program["threads"].as_array().expect("threads").iter();
        let busy = threads.map(|thread| thread["busy_ns"].as_u64().expect("a time"));
        (elapsed_ns, busy.skip(1).take(2).sum::<u64>())
    };
    let runs = [run(), run(), run()];
    assert!(runs.iter().all(|(elapsed_ns, busy_ns)| elapsed_ns >= busy_ns), "{runs:?}");
    let longest = runs.iter().map(|(elapsed_ns, _)| elapsed_ns).max().expect("three");
    assert!(runs.iter().all(|(elapsed_ns, _)| elapsed_ns * 100 >= longest * 98), "{runs:?}");
}

#[test]
fn a_thread_that_waits_at_most_so_long_is_woken_before_even_if_the_host_took_longer() {
    let Some(lab) = lab() else { return };
    // Its first thread waits for the other, at most 300 ms at a time of the host's clock, less than
    // the other takes under emulation.
    let words = ["/usr/bin/xz", "-0", "-T2", "-c", &lab.program("text")];
    let program = &lab.report_of(&words)["program"];
    let elapsed_ns = program["elapsed_ns"].as_u64().expect("a time");
    let busy_ns = program["threads"][1]["busy_ns"].as_u64().expect("a second thread");
    assert!((busy_ns..busy_ns * 3 / 2).contains(&elapsed_ns), "{elapsed_ns} {busy_ns}");
}

#[test]
fn a_command_keeps_its_exit_code_and_one_that_cannot_run_exits_as_env_does() {
    let Some(lab) = lab() else { return };
    let code = |command: &[&str]| lab.run(&MACHINE, command).status.code();
    let fails = lab.run(&MACHINE, &[&lab.program("placement"), "own", "fails"]);
    assert_eq!(fails.status.code(), Some(7));
    let text = String::from_utf8_lossy(&fails.stderr).into_owned();
    assert!(text.contains("The command failed: exit code 7."), "{text}");
    assert_eq!(code(&["no-such-program"]), Some(127));
    assert_eq!(code(&["/etc/passwd"]), Some(126), "it is not executable");
    let script = lab.directory.join("script");
    std::fs::write(&script, "#!/bin/sh\nexit 9\n").expect("written");
    assert!(Command::new("chmod").arg("+x").arg(&script).status().expect("chmod").success());
    assert_eq!(code(&[&script.to_string_lossy()]), Some(9));
    let outside = lab.run(&["--emulate", "2", "--threads", "7"], &["true"]);
    assert_eq!(outside.status.code(), Some(125));
    let text = String::from_utf8_lossy(&outside.stderr).into_owned();
    assert!(text.contains("--threads: no cpu 7"), "{text}");
}

#[test]
fn a_program_that_another_becomes_is_emulated_as_well() {
    let Some(lab) = lab() else { return };
    let script = format!("exec {} first", lab.program("placement"));
    let report = lab.report_of(&["sh", "-c", &script]);
    assert_eq!(of_nodes(&block_accesses(&report), 1, 0), 2 * READS);
    let output = lab.run(&MACHINE, &["sh", "-c", "exec /bin/no-such-program"]);
    assert_eq!(output.status.code(), Some(127));
    let output = lab.run(&MACHINE, &["sh", "-c", "A=b exec env"]);
    assert!(String::from_utf8_lossy(&output.stdout).lines().any(|line| line == "A=b"));
}

/// Returns the report of `numalab emulate` on a run of `programs/answers.c`, without line breaks.
fn report_of(lab: &Lab, how: &str) -> String {
    let stages = ["--emulate-stages", "core,owners"];
    let options: Vec<&str> = MACHINE[..6].iter().copied().chain(stages).collect();
    let output = lab.run(&options, &[&lab.program("answers"), how]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_bad_first_touch_is_named_by_file_and_line() {
    let Some(lab) = lab() else { return };
    let text = report_of(lab, "first-touch");
    let expected = format!("It is touched first at {} by thread 0.", line_of("FIRST"));
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn false_sharing_is_named_by_file_and_line() {
    let Some(lab) = lab() else { return };
    let text = report_of(lab, "false-sharing");
    let expected =
        format!("threads store to different bytes of one cache line, at {}", line_of("COUNTS"));
    assert!(text.contains(&expected), "{text}");
    assert!(!report_of(lab, "compute").contains("False sharing:"));
}

#[test]
fn callgrind_annotate_shows_waits_by_the_allocating_line() {
    let Some(lab) = lab() else { return };
    let file = tempfile::NamedTempFile::new_in(&lab.directory).expect("a file");
    let place = file.path().to_string_lossy();
    let options: Vec<&str> =
        MACHINE.into_iter().chain(["--format", "callgrind", "-o", &*place]).collect();
    let output = lab.run(&options, &[&lab.program("answers"), "first-touch"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let annotated = Command::new("callgrind_annotate").arg("--inclusive=yes").arg(&*place).output();
    let annotated = annotated.expect("callgrind_annotate starts: apt install valgrind");
    let errors = String::from_utf8_lossy(&annotated.stderr);
    assert!(annotated.status.success() && errors.is_empty(), "{errors}");
    let text = String::from_utf8_lossy(&annotated.stdout);
    let made = format!("[anonymous] allocated at {}", line_of("MADE"));
    for function in ["answers.c:main", &made] {
        let row =
            text.lines().find(|row| row.contains(function)).unwrap_or_else(|| panic!("{text}"));
        let (_, percent) = row.split_once('(').expect("its part of what is waited for");
        let (percent, _) = percent.split_once('%').expect("a percentage");
        assert!(percent.trim().parse::<f64>().is_ok_and(|percent| percent > 90.0), "{row}");
    }
}

/// Returns the time of `programs/overlap.c` on a core with typical figures, by its arguments.
fn on_a_core<'a>(lab: &'a Lab, program: &'a str) -> impl Fn(&str) -> u64 + 'a {
    const MACHINE: [&str; 8] =
        ["--emulate", "1", "--cpus", "1", "--emulate-cache", "32K", "--emulate-stages", "core"];
    move |how| {
        let report = lab.report_with(&MACHINE, &[&lab.program(program), how]);
        report["program"]["elapsed_ns"].as_u64().expect("a number")
    }
}

/// A core that waits for each of 65,536 lines of 100 ns takes 6.55 ms.
#[test]
fn loads_overlap_where_no_address_comes_from_another_load_on_both_processors() {
    let Some(lab) = lab() else { return };
    for program in ["overlap", "overlap-aarch64"] {
        let elapsed_ns = on_a_core(lab, program);
        let (chase, stream) = (elapsed_ns("chase"), elapsed_ns("stream"));
        assert!((6_500_000..7_500_000).contains(&chase), "{program}: {chase} ns");
        assert!(stream < chase / 8, "{program}: {stream} ns, a chase {chase}");
    }
}

/// Four alternating chases take one load's 100 ns per step, 1.64 ms in all, wherever they keep
/// their pointers.
#[test]
fn values_are_followed_through_memory_on_both_processors() {
    let Some(lab) = lab() else { return };
    for program in ["overlap", "overlap-aarch64"] {
        let elapsed_ns = on_a_core(lab, program);
        let (registers, array) = (elapsed_ns("registers"), elapsed_ns("array"));
        assert!((1_638_400..2_600_000).contains(&registers), "{program}: {registers} ns");
        assert!((registers * 9 / 10..registers * 5 / 4).contains(&array), "{program}: {array} ns");
    }
}

/// Half of 65,536 branches are mispredicted, at 8.5 ns each: 0.28 ms.
#[test]
fn branches_that_chance_decides_are_mispredicted_and_a_pattern_is_not_on_both_processors() {
    let Some(lab) = lab() else { return };
    for program in ["overlap", "overlap-aarch64"] {
        let elapsed_ns = on_a_core(lab, program);
        let (chance, pattern) = (elapsed_ns("chance"), elapsed_ns("pattern"));
        let more_ns = chance.saturating_sub(pattern);
        assert!((200_000..350_000).contains(&more_ns), "{program}: {chance} ns, {pattern} ns");
    }
}
