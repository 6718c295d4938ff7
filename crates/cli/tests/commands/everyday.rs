//! Everyday commands from outside, as a newcomer types them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::command::{numalab, prints, refuses, run, stderr, stdout};
use crate::schemas;

const COMMANDS: &[&str] = &[
    "measure",
    "topology",
    "latency",
    "bandwidth",
    "loaded",
    "c2c",
    "bind",
    "scale",
    "compare",
    "study",
    "advise",
    "emulate",
    "explore",
    "fleet",
    "guest",
    "knobs",
    "machine",
    "mark",
    "report",
    "completions",
    "man",
];

/// Measuring commands run one at a time: two would disturb each other.
static MACHINE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

fn result_directory(parent: &Path) -> PathBuf {
    let mut entries = fs::read_dir(parent).expect("results are there");
    entries.next().expect("one run").expect("readable").path()
}

#[test]
fn a_command_that_was_moved_is_refused_with_its_new_place() {
    for (old, new) in
        [("acpi", "machine acpi"), ("health", "fleet health"), ("probe", "study probe")]
    {
        refuses(&[old, "--help"], 2, &[&format!("`numalab {old}` is now `numalab {new}`")]);
    }
    let plan = ["study", "plan", "noise"];
    refuses(&plan, 2, &["`numalab study plan` is now `numalab study run --dry-run`"]);
    refuses(&["study", "report", "results"], 2, &["is now `numalab report`"]);
    let chain = ["latency", "--chain", "fisher-yates"];
    refuses(&chain, 2, &["`--chain` is now `--pattern`"]);
    let pin = ["guest", "pin", "--qmp", "4444", "--node-cpus", "0"];
    refuses(&pin, 2, &["`--node-cpus` is now `--map`"]);
}

#[test]
fn every_command_has_help_with_an_example() {
    let help = prints(&["--help"]);
    for command in COMMANDS {
        assert!(help.contains(command), "--help does not name {command}");
        let help = prints(&[command, "--help"]);
        let teaches =
            help.contains("Example") || ["guest", "knobs", "machine", "study"].contains(command);
        assert!(teaches, "{command} --help has no example");
    }
    for command in ["run", "shell", "list", "image", "pin"] {
        let help = prints(&["guest", command, "--help"]);
        assert!(help.contains("Example"), "guest {command} --help has no example");
    }
    for (group, command) in
        [("knobs", "list"), ("knobs", "restore"), ("knobs", "run"), ("fleet", "health")]
    {
        let help = prints(&[group, command, "--help"]);
        assert!(help.contains("Example"), "{group} {command} --help has no example");
    }
    for command in ["list", "show", "capture", "selftest"] {
        let help = prints(&["machine", command, "--help"]);
        assert!(help.contains("Example"), "machine {command} --help has no example");
    }
    for command in ["list", "new", "show", "run", "resume", "bisect"] {
        let help = prints(&["study", command, "--help"]);
        assert!(help.contains("Example"), "study {command} --help has no example");
    }
    assert!(help.contains("Exit codes"), "--help does not list the exit codes");
}

#[test]
fn a_malformed_command_line_is_exit_2_with_the_expected_form() {
    refuses(&["latency", "--size", "12X"], 2, &["12X", "expected"]);
    refuses(&["latency", "--cpus", "0-"], 2, &["0-", "expected"]);
    refuses(
        &["latency", "--pages", "3m"],
        2,
        &["3m", "expected thp or a size such as 4k, 64k, 2m or 1g"],
    );
    refuses(&["bandwidth", "--kernel", "scale"], 2, &["scale", "triad"]);
    refuses(&["measure", "--precision", "0"], 2, &["precision"]);
    refuses(&["measure", "--budget", "soon"], 2, &["soon", "30s"]);
    refuses(&["topology", "--source", "dmi"], 2, &["dmi", "sysfs:DIR"]);
    refuses(&["topology", "--emulate", "1Q", "--cpus", "2"], 2, &["1Q", "expected"]);
}

#[test]
fn cpus_and_nodes_that_do_not_exist_are_named_with_those_that_do() {
    refuses(&["latency", "--cpus", "65000"], 2, &["65000", "expected one of"]);
    refuses(&["latency", "--nodes", "900"], 2, &["900", "expected one of"]);
}

#[test]
fn a_size_beyond_memory_is_refused_before_it_is_taken() {
    refuses(&["latency", "--size", "64T"], 2, &["67108864 MiB", "choose a smaller size"]);
}

#[test]
fn huge_pages_that_are_not_reserved_are_exit_3_with_the_command_that_reserves_them() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages";
    match fs::read_to_string(pool).as_deref().map(str::trim) {
        Ok("0") => {
            let asked: [&[&str]; 3] = [
                &["latency", "--size", "1M", "--pages", "1g"],
                &["measure", "--pages", "1g"],
                &["measure", "--pages", "1g", "--dry-run"],
            ];
            for words in asked {
                refuses(words, 3, &["hugepages-1048576kB", "nr_hugepages"]);
            }
        }
        other => eprintln!("NOT RUN: pages of 1 GiB are {other:?} here, the test needs none"),
    }
}

#[test]
fn a_dry_run_lists_the_cells_and_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = numalab(&["measure", "--dry-run"])
        .current_dir(directory.path())
        .output()
        .expect("numalab starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains(" cells, about "), "{}", stdout(&output));
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
}

#[test]
fn latency_in_json_fits_the_schema_and_carries_proof_and_raw_samples() {
    let _alone = alone();
    let text = prints(&["latency", "--size", "64K,4M", "--budget", "5s", "--format", "json"]);
    let document = schemas::document(&text);
    assert_eq!(document["schema"], "numalab/run-2");
    let cell = &document["cells"][0];
    assert!(cell["placements"][0]["pages_checked"].as_u64() > Some(0));
    assert!(!cell["samples"].as_array().expect("samples").is_empty());
}

#[test]
fn latency_as_the_table_of_ranks_has_a_column_for_each_size() {
    let _alone = alone();
    let table = prints(&["latency", "--size=1-4", "--budget", "5s", "--table"]);
    for heading in ["1MB", "2MB", "4MB", "Ranks", "NUMA", "0x"] {
        assert!(table.contains(heading), "no {heading} in:\n{table}");
    }
}

#[test]
fn bandwidth_loaded_and_c2c_print_their_figures() {
    let _alone = alone();
    let bandwidth = prints(&["bandwidth", "--kernel", "read", "--size", "8M", "--budget", "5s"]);
    assert!(bandwidth.contains("GB/s"), "{bandwidth}");
    for command in ["loaded", "c2c"] {
        let mut arguments = vec![command, "--budget", "6s"];
        if command == "loaded" {
            arguments.extend(["--size", "8M"]);
        }
        let output = run(&arguments);
        match code(&output) {
            0 => assert!(stdout(&output).contains("ns"), "{}", stdout(&output)),
            3 => eprintln!("NOT RUN: {}", stderr(&output)),
            other => panic!("{command}: exit {other}: {}", stderr(&output)),
        }
    }
}

#[test]
fn a_measuring_run_leaves_a_directory_that_reports_and_compares() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let parent = directory.path().to_str().expect("UTF-8");
    let text = prints(&["measure", "--quick", "--budget", "8s", "-o", parent, "--label", "a b"]);
    assert!(text.contains("report.html"), "{text}");
    let results = result_directory(directory.path());
    assert!(results.to_string_lossy().ends_with("-a_b"), "{}", results.display());
    for file in ["run.json", "samples.csv", "cells.jsonl", "report.md", "report.html"] {
        assert!(results.join(file).exists(), "no {file}");
    }
    let results = results.to_str().expect("UTF-8");
    let first_page = fs::read(Path::new(results).join("report.html")).expect("a page");
    prints(&["report", results]);
    let second_page = fs::read(Path::new(results).join("report.html")).expect("a page");
    assert_eq!(first_page, second_page, "the same samples give the same page");
    let same = run(&["compare", results, results, "--fail-if", "worse"]);
    assert_eq!(same.status.code(), Some(7), "{}", stderr(&same));
    assert!(stderr(&same).contains("runs from four or more occasions"), "{}", stderr(&same));
    schemas::document(&prints(&["report", results, "--format", "json"]));
    let such = format!("holds no result; expected a result directory, such as {results}");
    refuses(&["report", parent], 2, &[such.as_str()]);
}

#[test]
fn repeated_runs_are_one_measurement_of_a_baseline_and_shown_without_verdict() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let parent = directory.path().to_str().expect("UTF-8");
    let quick = ["measure", "--quick", "--budget", "2s", "-o", parent];
    let repeated = prints(&[&quick[..], &["--repeat", "2", "--label", "good"]].concat());
    assert!(repeated.contains("2 runs, a part of a baseline: --baseline "), "{repeated}");
    let baseline = result_directory(directory.path());
    let baseline = baseline.to_str().expect("UTF-8");
    let judged = prints(&[&quick[..], &["--baseline", baseline]].concat());
    assert!(judged.contains("1 run against 2 runs of the baseline"), "{judged}");
    let runs = fs::read_dir(baseline).expect("runs").flatten().map(|entry| entry.path());
    let runs: Vec<String> = runs.map(|path| path.display().to_string()).collect();
    refuses(&["compare", &runs[0], "--baseline", baseline], 2, &["hold the same run"]);
    let of_parent = fs::read_dir(directory.path()).expect("runs").flatten();
    let mut paths = of_parent.map(|entry| entry.path().display().to_string());
    let candidate = paths.find(|path| path != baseline).expect("the judged run");
    let json = prints(&["compare", &candidate, "--baseline", baseline, "--format", "json"]);
    let json = schemas::document(&json);
    assert_eq!(
        (json["judged"].as_bool(), json["baseline"].as_array().map(Vec::len)),
        (Some(false), Some(2))
    );
    assert_eq!(json["units"], serde_json::json!([1, 1]));
}

#[test]
fn a_run_that_lacked_time_names_the_command_that_goes_on() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let parent = directory.path().to_str().expect("UTF-8");
    let output = numalab(&["measure", "--quick", "--budget", "1s", "-o", parent]).output();
    let errors = String::from_utf8(output.expect("numalab starts").stderr).expect("UTF-8");
    let result = result_directory(directory.path());
    let said = format!("`numalab measure --resume {}` goes on", result.display());
    assert!(errors.contains("there was no time for ") && errors.contains(&said), "{errors}");
}

#[test]
fn an_interrupted_run_keeps_its_samples_and_resumes() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let parent = directory.path().to_str().expect("UTF-8");
    // Each cell ends soon, and the run is not over before, however busy this machine is.
    let quick = ["measure", "--quick", "--cpus", "0", "--precision", "50%", "--budget", "10m"];
    let mut running = numalab(&[&quick[..], &["-o", parent]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("numalab starts");
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let file = fs::read_dir(directory.path()).expect("readable").next();
        let text = file
            .and_then(Result::ok)
            .and_then(|entry| fs::read_to_string(entry.path().join("cells.jsonl")).ok());
        if text.is_some_and(|text| text.lines().count() >= 2) {
            break;
        }
        assert!(running.try_wait().expect("ours").is_none(), "it ended before two cells had");
    }
    interrupt(running.id());
    let status = running.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
    let results = result_directory(directory.path());
    let before = fs::read_to_string(results.join("samples.csv")).expect("samples");
    // The plan's values count; the command line is only for readers.
    let (run, values) = (results.join("run.json"), |run: &Path| {
        let text = fs::read_to_string(run).expect("run.json");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    });
    let mut changed = values(&run);
    changed["command"] = json!(["numalab", "gone"]);
    fs::write(&run, changed.to_string()).expect("written");
    let results = results.to_str().expect("UTF-8");
    prints(&["measure", "--resume", results]);
    let after = fs::read_to_string(Path::new(results).join("samples.csv")).expect("samples");
    assert!(after.starts_with(&before), "what was measured is still there");
    assert!(after.len() > before.len(), "and the rest behind it");
    // Earlier versions kept only the command line.
    let mut changed = values(&run);
    changed.as_object_mut().expect("an object").remove("survey").expect("what was asked for");
    fs::write(&run, changed.to_string()).expect("written");
    let refused = numalab(&["measure", "--resume", results]).output().expect("numalab starts");
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    assert!(stderr(&refused).contains("was started by `numalab gone`"), "{}", stderr(&refused));
}

fn interrupt(process: u32) {
    let sent = Command::new("kill").args(["-INT", &process.to_string()]).status();
    assert!(sent.expect("kill starts").success());
}

#[test]
fn a_full_disk_is_exit_1_with_what_to_do() {
    let script = "mount -t tmpfs -o size=48k tmpfs /mnt && \
                  exec \"$0\" measure --quick --budget 8s -o /mnt";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_numalab")])
        .output();
    let output = output.expect("unshare is part of util-linux");
    let message = stderr(&output);
    if message.contains("unshare") {
        eprintln!("NOT RUN: no mount namespace of one's own here: {message}");
        return;
    }
    assert_eq!(code(&output), 1, "{message}");
    assert!(message.contains("free some space"), "{message}");
}

#[test]
fn a_reader_that_leaves_early_is_not_an_error() {
    let script = "\"$0\" topology --format json | head -c 10";
    let command = Command::new("bash")
        .args(["-o", "pipefail", "-c", script, env!("CARGO_BIN_EXE_numalab")])
        .output()
        .expect("bash starts");
    assert_eq!(code(&command), 0, "{}", stderr(&command));
    assert!(command.stderr.is_empty(), "{}", stderr(&command));
}

#[test]
fn a_topology_goes_through_every_format_and_comes_back_from_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("machine.toml");
    let emulated = ["topology", "--emulate", "1G,1G,2G,0", "--cpus", "8", "--format"];
    for format in ["text", "qemu", "libvirt", "slurm", "numactl", "hwloc-xml", "svg"] {
        let text = prints(&[&emulated[..], &[format]].concat());
        assert!(text.ends_with('\n'), "{format} has no line end");
    }
    fs::write(&file, prints(&[&emulated[..], &["toml"]].concat())).expect("written");
    let file = file.to_str().expect("UTF-8");
    let read_back = ["topology", "--topology", file, "--format"];
    let [asked, found] = [&emulated[..], &read_back].map(|words| {
        let document = schemas::document(&prints(&[words, &["json"]].concat()));
        assert_eq!(document["schema"], "numalab/topology-2");
        [document["machine"].clone(), document["findings"].clone()]
    });
    assert_eq!(found, asked);
}

#[test]
fn tables_built_from_a_machine_are_read_back_as_it_and_have_no_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = directory.path().join("tables");
    let tables = tables.to_str().expect("UTF-8");
    let machine = [
        "--emulate",
        "4",
        "--cpus",
        "8",
        "--distances",
        "10,12,20,22;12,10,22,20;20,22,10,12;22,20,12,10",
    ];
    prints(&[&["machine", "acpi", "build"], &machine[..], &["-o", tables]].concat());
    let files = ["SRAT", "SLIT", "APIC"].map(|name| format!("{tables}/{name}.bin"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    prints(&[&["machine", "acpi", "check"], &files[..]].concat());
    // Cpus of the MADT that the SRAT does not place are no more than a warning.
    let fewer = directory.path().join("fewer");
    let fewer = fewer.to_str().expect("UTF-8");
    prints(&["machine", "acpi", "build", "--emulate", "4", "--cpus", "4", "-o", fewer]);
    let mixed = [format!("{fewer}/SRAT.bin"), format!("{tables}/APIC.bin")];
    let check = ["machine", "acpi", "check", &mixed[0], &mixed[1]];
    assert!(prints(&check).contains("warning"));
    let strict = run(&[&check[..], &["--strict"]].concat());
    assert_eq!(code(&strict), 5, "{}", stderr(&strict));
    assert!(stderr(&strict).contains("the tables have errors"), "{}", stderr(&strict));
    let shown = prints(&[&["machine", "acpi", "show"], &files[..]].concat());
    assert!(shown.contains("SRAT revision") && shown.contains("SLIT revision"), "{shown}");
    let source = format!("acpi:{tables}");
    let numactl = prints(&["topology", "--source", &source, "--format", "numactl"]);
    assert!(numactl.contains("available: 4 nodes (0-3)"), "{numactl}");
    assert!(numactl.contains("10  12  20  22"), "{numactl}");
}

#[test]
fn a_damaged_table_is_exit_5_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("SRAT.bin");
    fs::write(&file, b"SRAT\x30\x00\x00\x00").expect("written");
    let file = file.to_str().expect("UTF-8");
    refuses(&["machine", "acpi", "show", file], 5, &["SRAT.bin", "SRAT at"]);
    let output = run(&["machine", "acpi", "check", file]);
    assert_eq!(code(&output), 5, "{}", stderr(&output));
}

#[test]
fn completions_and_manual_pages_are_made_for_every_command() {
    assert!(prints(&["completions", "bash"]).contains("numalab"));
    let directory = tempfile::tempdir().expect("a directory");
    prints(&["man", directory.path().to_str().expect("UTF-8")]);
    for command in COMMANDS {
        assert!(directory.path().join(format!("numalab-{command}.1")).exists(), "{command}");
    }
    let hidden = directory.path().join("numalab-study-agent.1");
    assert!(!hidden.exists(), "a command that the help hides has no page");
    refuses(&["man", "/proc/nonexistent"], 1, &["/nonexistent"]);
}

#[test]
fn manual_pages_keep_the_lines_of_examples_and_pass_mandocs_lint() {
    let directory = tempfile::tempdir().expect("a directory");
    prints(&["man", directory.path().to_str().expect("UTF-8")]);
    let page = fs::read_to_string(directory.path().join("numalab-study-run.1")).expect("a page");
    assert!(page.contains(".TH NUMALAB-STUDY-RUN 1 "), "{page}");
    assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{page}");
    assert!(page.contains(".SH \"EXIT STATUS\""), "{page}");
    let page = fs::read_to_string(directory.path().join("numalab-advise.1")).expect("a page");
    let synopsis = page.replace('\n', " ");
    assert!(synopsis.contains(" \\-\\- \\fICOMMAND\\fR... "), "{page}");
    let pages = fs::read_dir(&directory).expect("pages").map(|entry| entry.expect("a page").path());
    let lint = Command::new("mandoc").arg("-Tlint").args(pages).output();
    let lint = lint.expect("mandoc starts (apt-get install mandoc)");
    assert!(lint.stdout.is_empty(), "{}", stdout(&lint));
}

#[test]
fn commands_that_run_another_end_as_it_does_and_with_the_codes_of_env_for_their_own_failures() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("not-a-program");
    fs::write(&file, "text").expect("a file");
    let file = file.to_str().expect("UTF-8");
    let wrappers: [&[&str]; 2] = [&["bind", "-q", "--numa=0", "--"], &["mark", "--"]];
    for wrapper in wrappers {
        let ends = |command: &[&str]| code(&run(&[wrapper, command].concat()));
        assert_eq!(ends(&["sh", "-c", "exit 3"]), 3, "{wrapper:?}");
        assert_eq!(ends(&[file]), 126, "{wrapper:?}");
        assert_eq!(ends(&["/nonexistent"]), 127, "{wrapper:?}");
    }
    refuses(&["bind", "--numa=0", "--nosuch"], 125, &["--nosuch"]);
    refuses(&["bind", "--numa=4095", "--", "true"], 125, &["4095"]);
    let spread = ["bind", "--cpus", "node", "--numa=0", "--policy", "interleave", "--", "true"];
    refuses(&spread, 125, &["--cpus node: expected --policy bind or preferred"]);
    refuses(&["knobs", "run", "nosuch=1", "--", "true"], 125, &["nosuch"]);
    refuses(&["guest", "run", "--emulate", "nosuch", "--", "true"], 125, &["nosuch"]);
    refuses(&["guest", "list", "--nosuch"], 2, &["--nosuch"]);
}

#[test]
fn a_marked_command_begins_on_the_signal_to_start() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    let at = now() + 300_000_000;
    let mut command = numalab(&["mark", "--", "true"]);
    let status = command.env("NUMALAB_MARK_AT_NS", at.to_string()).status().expect("it starts");
    assert!(status.success() && now() >= at);
}

#[test]
fn a_marked_command_keeps_its_output_and_its_exit_code() {
    let output = run(&["mark", "--phase", "2", "--", "sh", "-c", "echo done; exit 7"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(7), &b"done\n"[..]));
    let absent = run(&["mark", "--", "/no/such/program"]);
    let errors = stderr(&absent);
    assert_eq!(absent.status.code(), Some(127), "{errors}");
    assert!(errors.contains("/no/such/program"), "{errors}");
    let beyond = run(&["mark", "--phase", "240", "--", "true"]);
    assert_eq!(beyond.status.code(), Some(125));
}
