//! numalab's own kernel from outside: booted, measured under the emulator, studied.
//!
//! The tests need `qemu-system-x86_64` and the Rust target `x86_64-unknown-none`. With
//! `NUMALAB_REQUIRE_TOOLS=1` their lack is a failure; otherwise it is printed.

use std::fs;
use std::process::{Command, Stdio};

use numalab_frames::Dump;
use serde_json::Value;

use crate::kernel_lab::{Lab, text};

use crate::schemas;

const TWO_NODES: [&str; 7] =
    ["--emulate", "2", "--cpus", "2", "--memory", "1G", "--distances=10,20;20,10"];
/// Options for virtual time, in which every run is the same.
const CHARGED: [&str; 2] = ["--emulate-latency", "100"];

/// Returns the output of `guest run --kernel numalab` with these options and words.
fn run(lab: &Lab, options: &[&str], words: &[&str]) -> String {
    let start = ["guest", "run", "--kernel", "numalab", "--accel", "auto", "--quiet"];
    let arguments = [&start[..], options, &["--"], words].concat();
    text(&lab.numalab(&arguments), 0)
}

fn json(lab: &Lab, options: &[&str], words: &[&str]) -> Value {
    let options = [options, &["--format", "json"]].concat();
    schemas::document(&run(lab, &options, words))
}

/// Returns the values of a metric in the cell with this word in its name.
fn values(document: &Value, cell: &str, metric: &str) -> Vec<f64> {
    let cells = document["cells"].as_array().expect("cells");
    let of = |c: &&Value| c["id"].as_str().is_some_and(|id| id.contains(cell));
    let samples = cells.iter().filter(of).flat_map(|cell| cell["samples"].as_array().unwrap());
    let mine = samples.filter(|sample| sample["metric"] == metric);
    mine.map(|sample| sample["value"].as_f64().expect("a number")).collect()
}

#[test]
fn a_chase_takes_the_time_that_the_emulator_charges_in_every_run() {
    let Some(lab) = Lab::open() else { return };
    let distances = [[10, 12, 20, 22], [14, 10, 22, 20], [20, 22, 10, 12], [31, 20, 12, 10]];
    let rows = distances.map(|row| row.map(|d: u32| d.to_string()).join(","));
    let distances_option = format!("--distances={}", rows.join(";"));
    let shape = ["--emulate", "4", "--cpus", "4", "--memory", "1G", &distances_option];
    let options = [&shape[..], &CHARGED].concat();
    let words = ["work=chase,test_numa", "size=128K", "count=2000", "runs=2", "threads=4"];
    let first = json(&lab, &options, &words);
    for (cpu, row) in distances.iter().enumerate() {
        for (node, distance) in row.iter().enumerate() {
            let cell = format!("latency/cpu{cpu}/node{node}/");
            let charged = f64::from(*distance) * 10.0;
            let measured = values(&first, &cell, "latency");
            assert_eq!(measured.len(), 8, "{cell}");
            // Two more instructions surround each load, of a nanosecond each, and a window has some
            // accesses besides the chase.
            for ns in measured {
                assert!((ns - charged - 2.0).abs() < 0.06 * charged, "{cell}: {ns}");
            }
        }
    }
    let again = json(&lab, &options, &words);
    assert_eq!(first["cells"], again["cells"]);
    assert_eq!(first["machine"], again["machine"]);
    let precise =
        first["cells"].as_array().unwrap().iter().filter(|c| c["ended"]["outcome"] == "precise");
    assert!(precise.count() >= 16);
}

/// Returns local and remote accesses of all cpus in the phases of the runs.
fn counted(report: &str) -> (f64, f64) {
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let mut sums = (0.0, 0.0);
    for vcpu in
        report["phases"].as_array().unwrap().iter().flat_map(|p| p["vcpus"].as_array().unwrap())
    {
        for node in vcpu["nodes"].as_array().unwrap() {
            let accesses = node["loads"].as_f64().unwrap() + node["stores"].as_f64().unwrap();
            if node["node"] == vcpu["node"] { sums.0 += accesses } else { sums.1 += accesses }
        }
    }
    sums
}

#[test]
fn the_nodes_of_frames_are_confirmed_by_the_emulators_counts() {
    let Some(lab) = Lab::open() else { return };
    let report = lab.path("report.json");
    let options = [&TWO_NODES[..], &CHARGED, &["--emulate-report", &report]].concat();
    let words = |alloc| [alloc, "work=test_numa", "size=2M", "count=20000", "runs=2"];
    let numa = json(&lab, &options, &words("alloc=numa"));
    let (_, remote) = counted(&report);
    assert_eq!(values(&numa, "test_numa", "local-share"), [1.0, 1.0]);
    let blind = json(&lab, &options, &words("alloc=blind"));
    let (_, blind_remote) = counted(&report);
    assert_eq!(values(&blind, "test_numa", "local-share"), [0.5, 0.5]);
    // One of two threads: 2 runs of 20,000 reads and 32,768 first touches.
    let arena = 2.0 * (20_000.0 + 32_768.0);
    let more = blind_remote - remote;
    assert!((more - arena).abs() < 0.02 * arena, "{more} more remote accesses, {arena} expected");
    // Each of them costs 100 ns more, in the slower of the threads.
    let [slow, fast] = [&blind, &numa].map(|d| values(d, "test_numa", "elapsed")[0]);
    let predicted = arena / 2.0 * 100e-9;
    assert!((slow - fast - predicted).abs() < 0.1 * predicted, "{slow} {fast} {predicted}");
}

/// Runs what `make run` does, with less work.
#[test]
fn a_run_of_both_allocators_ends_with_what_the_second_gains() {
    let Some(lab) = Lab::open() else { return };
    let words = ["work=test_numa", "size=2M", "count=20000", "runs=1"];
    let both = [&["blind", "numa", "--"][..], &TWO_NODES[..], &CHARGED, &["--"], &words].concat();
    let out = text(&lab.script("run", &both), 0);
    let last = out.lines().last().unwrap_or_default();
    assert!(last.starts_with("Answer: alloc=numa takes 0.0"), "{out}");
    assert!(
        last.contains("knowing the nodes makes test_numa ") && last.ends_with("% faster"),
        "{out}"
    );
    let alone = [&["blind", "--"][..], &TWO_NODES, &["--", "work=none", "runs=1"]].concat();
    assert!(!text(&lab.script("run", &alone), 0).contains("Answer"), "nothing to compare");
}

#[test]
fn the_seeds_lines_and_a_result_directory_with_the_heap_come_of_a_run() {
    let Some(lab) = Lab::open() else { return };
    let results = lab.path("results");
    let start = ["guest", "run", "--kernel", "numalab", "--accel", "tcg", "-o", &results];
    let words =
        ["--", "work=test_numa,exhaust", "runs=2", "size=2M", "count=100", "dump=heap,topology"];
    let output = lab.numalab(&[&start[..], &TWO_NODES, &words].concat());
    let out = text(&output, 0);
    let lines: Vec<&str> = out.lines().collect();
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).expect(start);
    assert!(lines[at("Run #1:") + 1].starts_with("Time elapsed: "), "{out}");
    assert!(at("Run #2:") < at("Average Time elapsed over 2 runs: "), "{out}");
    assert!(out.contains("Frames: 100.0 % local (2048 of 2048)"), "{out}");
    assert!(out.contains("exhausted: 0 frames free when refused"), "{out}");
    assert!(out.contains("Plain TCG: memory costs the same on every node"), "{out}");
    assert!(out.contains("heap: 2 nodes, 2 cpus; a character is 2 MiB"), "{out}");
    assert!(out.contains("2 nodes, 2 cpus, "), "{out}");
    let run = fs::read_dir(&results).expect("made").next().expect("a run").expect("readable");
    let heap = fs::read(run.path().join("heap.bin")).expect("kept");
    assert_eq!(Dump::parse(&heap).expect("a dump").nodes(), 2);
    let directory = run.path().to_str().expect("UTF-8").to_owned();
    let again = text(&lab.numalab(&["report", &directory, "--format", "json"]), 0);
    let document = schemas::document(&again);
    assert_eq!(values(&document, "test_numa", "local-share"), [1.0, 1.0]);
}

/// Returns the answer of a study with the fewest blocks that can give one: this machine's timers
/// sometimes end turns of the vCPUs, which shifts times by some nanoseconds. Other load does not
/// change virtual time, so nothing is repeated for it or run to see its size.
fn study(lab: &Lab, name: &str, workloads: &str) -> Value {
    let (file, out) = (lab.path("s.toml"), lab.path("studies"));
    let mut shown = text(&lab.numalab(&["study", "show", name]), 0);
    for (rule, shorter) in [
        ("warm-ups = 1", "warm-ups = 0"),
        ("aa = true", "aa = false"),
        ("repeats = 2", "repeats = 0"),
    ] {
        assert!(shown.contains(rule), "{shown}");
        shown = shown.replace(rule, shorter);
    }
    fs::write(&file, shown).expect("written");
    let set = format!("workloads={workloads}");
    let arguments = [
        "study", "run", &file, "--set", &set, "--blocks", "9", "--seed", "1", "-q", "--format",
        "json", "-o", &out,
    ];
    schemas::document(&text(&lab.numalab(&arguments), 0))
}

/// Returns the verdict and the effect in percent on a metric of `test_numa`.
fn answer(study: &Value, metric: &str) -> (String, f64) {
    let effects = study["effects"].as_array().expect("effects");
    let effect = effects.iter().find(|effect| effect["metric"] == metric).expect("the metric");
    let found = &effect["found"];
    let percent = found["change_percent"].as_f64().expect("a number");
    (found["verdict"].as_str().expect("a verdict").to_owned(), percent)
}

/// Returns the ratio of a fact with the node-aware allocator to that with the blind one, for the
/// two closest samples. Facts are not tested.
fn least_ratio(study: &Value, metric: &str) -> f64 {
    let journal = study["journal"].as_array().expect("a journal");
    let values = |treatment: usize| {
        let samples = journal.iter().filter(move |entry| entry["treatment"] == treatment);
        let readings = samples.filter_map(|sample| sample["readings"].as_array()).flatten();
        let of = readings.filter(|reading| reading["metric"] == metric);
        of.map(|reading| reading["value"].as_f64().expect("a number"))
    };
    values(1).fold(f64::MAX, f64::min) / values(0).fold(0.0, f64::max)
}

#[test]
fn a_study_finds_the_allocator_better() {
    let Some(lab) = Lab::open() else { return };
    let found = study(&lab, "frame-allocator", "test_numa,allocator");
    let (verdict, percent) = answer(&found, "time");
    assert_eq!(verdict, "better");
    // The slower thread has 50,000 reads and 32,768 first touches of 200 ns instead of 100, on top
    // of work common to both: half of the time, less that work.
    assert!((-52.0..-42.0).contains(&percent), "{percent} %");
    let ratio = least_ratio(&found, "local");
    assert!((ratio - 2.0).abs() < 0.001, "{ratio} times as much memory is local");
    for metric in ["storm-local", "guests-local"] {
        let ratio = least_ratio(&found, metric);
        assert!(ratio > 1.0 && ratio < 4.0, "{metric}: {ratio}");
    }
    // A chase is on the requested memory.
    for metric in ["chase-local", "chase-remote"] {
        assert_eq!(answer(&found, metric).0, "equivalent", "{metric}");
    }
}

#[test]
fn a_study_finds_nothing_where_all_memory_costs_the_same() {
    let Some(lab) = Lab::open() else { return };
    let flat = study(&lab, "frame-allocator-flat", "test_numa");
    assert_eq!(answer(&flat, "time").0, "equivalent");
    assert!((least_ratio(&flat, "local") - 2.0).abs() < 0.001);
}

#[test]
fn options_that_the_kernel_lacks_are_refused_before_it_boots() {
    let bad = |arguments: &[&str], code: i32, words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
        command.args(["guest"]).args(arguments).env("NUMALAB_KERNEL", "/no/such/kernel");
        let output = command.stdin(Stdio::null()).output().expect("numalab starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    let kernel = ["run", "--kernel", "numalab"];
    let with = |more: &[&'static str]| [&kernel[..], more].concat();
    bad(&with(&["--", "alloc=both"]), 2, "`alloc=both`: expected numa or blind");
    bad(&with(&["--", "uname"]), 2, "`uname`: expected one of alloc=, numa=");
    bad(&with(&["--collect", "/x", "-o", "/tmp"]), 2, "numalab's kernel has no files");
    bad(&with(&[]), 3, "NUMALAB_KERNEL=/no/such/kernel: no such file");
    bad(&with(&[]), 3, "rustup target add x86_64-unknown-none");
    bad(&["run", "--format", "json", "--", "true"], 125, "only with --kernel numalab");
    bad(&["run"], 125, "no command: expected one after --");
    bad(&["shell", "--kernel", "numalab"], 2, "expected `numalab guest run`");
}

#[test]
fn a_dry_run_shows_qemus_command_line() {
    let Some(lab) = Lab::open() else { return };
    let start = ["guest", "run", "--kernel", "numalab", "--dry-run"];
    let output = lab.numalab(&[&start[..], &TWO_NODES, &["--", "work=none"]].concat());
    let shown = text(&output, 0);
    assert!(shown.contains("isa-debug-exit"), "{shown}");
    assert!(shown.contains("-append work=none"), "{shown}");
    assert!(!shown.contains("virtio"), "{shown}");
}
