//! `numalab profile` from outside: each source with programs of known memory use, the ends of
//! commands and processes, and that nothing is left behind.
//!
//! Every Linux has page faults and referenced bits; where a filter of system calls forbids them, the
//! tests that need them say so. With `NUMALAB_REQUIRE_TOOLS=1` that is a failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::command::{self, stderr, stdout};
use crate::schemas;

/// Pages of the table and of the block in `programs/uses.c`.
const TABLE: u64 = 2048;
const OWN: u64 = 512;

/// Returns the program, compiled once.
fn uses() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/uses.c");
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("uses");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o"]);
        let compiled = compiler.arg(&program).arg(source).status().expect("cc: apt install gcc");
        assert!(compiled.success());
        program.to_string_lossy().into_owned()
    })
}

/// Returns the line of `programs/uses.c` that touches its pages first.
fn fill_line() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/uses.c");
    let text = fs::read_to_string(source).expect("the source");
    let at = text.lines().position(|line| line.ends_with("/* fill */")).expect("it is marked");
    format!("uses.c:{}", at + 1)
}

fn numalab(words: &[&str]) -> Command {
    let mut command = command::numalab(words);
    // Without the plugin, emulation is impossible.
    command.env("NUMALAB_EMULATOR", "/nonexistent");
    command
}

fn run(words: &[&str]) -> Output {
    numalab(words).output().expect("numalab starts")
}

/// Profiles a command with a source; `None`, after printing why, if the kernel forbids it.
fn profile(source: &str, command: &[&str]) -> Option<Value> {
    let words = [&["profile", "--source", source, "--format", "json", "--"], command].concat();
    let output = run(&words);
    let said = stderr(&output);
    if said.contains("perf_event_open(2)") {
        assert!(std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none(), "{said}");
        eprintln!("NOT RUN: {said}");
        return None;
    }
    let json = said.find('{').unwrap_or_else(|| panic!("no report: {said}"));
    Some(schemas::document(&said[json..]))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Returns the region at the address that the program prints for its table or block.
fn region(profile: &Value, pages: u64) -> &Value {
    let regions = profile["program"]["regions"].as_array().expect("regions");
    let is_it = |region: &&Value| {
        let touched = region["first_touches"].as_array().expect("touches");
        touched.iter().any(|of| number(&of["pages"]) == pages)
    };
    regions.iter().find(is_it).unwrap_or_else(|| panic!("no region of {pages} pages: {regions:#?}"))
}

#[test]
fn faults_show_which_thread_first_touches_a_page_and_in_which_line() {
    let Some(profile) = profile("faults", &[uses(), "1500", "0", "1"]) else { return };
    assert_eq!(profile["source"]["name"], "faults");
    assert_eq!(profile["ended"], serde_json::json!({ "exited": 0 }));
    let (table, own) = (region(&profile, TABLE), region(&profile, OWN));
    let touch = |region: &Value| region["first_touches"][0].clone();
    for region in [table, own] {
        assert_eq!(touch(region)["at"][0]["function"], "fill");
        assert!(touch(region)["at"][0]["line"].as_str().expect("a line").ends_with(&fill_line()));
    }
    assert_ne!(touch(table)["thread"], touch(own)["thread"]);
    // A leaf function has no frame, so its direct caller is missing; further callers are seen.
    let regions = profile["program"]["regions"].as_array().expect("regions");
    let touches = regions.iter().flat_map(|of| of["first_touches"].as_array().expect("touches"));
    let calls = |of: &Value| [of["at"][0]["function"].clone(), of["at"][1]["function"].clone()];
    assert!(touches.map(calls).any(|calls| calls == ["tell", "main"]));
    let resident = |region: &Value| -> u64 {
        region["resident"].as_array().expect("pages").iter().map(|of| number(&of["pages"])).sum()
    };
    assert_eq!((resident(table), resident(own)), (TABLE, OWN));
    assert!(number(&profile["faults"]["seen"]) >= TABLE + OWN);
    assert_eq!(profile["faults"]["lost"], 0);
    let parts = table["parts"].as_array().expect("parts").iter();
    assert_eq!(parts.map(|part| number(&part["accesses"])).sum::<u64>(), TABLE);
    let unseen = profile["cannot_see"].as_array().expect("a list");
    assert!(unseen.iter().any(|of| of["kind"] == "later-accesses" || of["kind"] == "how-often"));
}

#[test]
fn referenced_bits_show_which_memory_stays_in_use() {
    let Some(profile) = profile("referenced", &[uses(), "3000", "0", "1"]) else { return };
    assert_eq!(profile["source"]["name"], "referenced");
    let rounds = number(&profile["source"]["rounds"]);
    assert!(rounds >= 2, "{}", profile["source"]);
    let regions = profile["program"]["regions"].as_array().expect("regions");
    let used: u64 = regions
        .iter()
        .flat_map(|region| region["parts"].as_array().cloned().unwrap_or_default())
        .map(|part| number(&part["accesses"]))
        .sum();
    assert!(used >= TABLE + OWN, "{used}: {profile}");
    let timeline = profile["program"]["timeline"].as_array().expect("a time line");
    let busy: u64 = timeline.iter().map(|of| number(&of["busy_ns"])).sum();
    assert!(busy > 200_000_000, "{busy}");
}

#[test]
fn a_running_process_is_observed_for_a_time_and_continues() {
    let mut program = Command::new(uses())
        .args(["60000", "0", "1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = program.id().to_string();
    wait_for_memory(&pid);
    let words = ["profile", "--pid", &pid, "--for", "1500ms", "--source", "referenced"];
    let begun = Instant::now();
    let output = run(&[&words[..], &["--format", "json"]].concat());
    assert!(begun.elapsed() >= Duration::from_millis(1500));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let profile = schemas::document(&output.stdout);
    assert_eq!(profile["ended"], "time-over");
    let unseen = profile["cannot_see"].as_array().expect("a list");
    assert!(unseen.iter().any(|of| of["kind"] == "before"));
    let resident = profile["program"]["regions"].as_array().expect("regions").iter();
    let resident = resident.flat_map(|of| of["resident"].as_array().cloned().unwrap_or_default());
    let pages: u64 = resident.map(|of| number(&of["pages"])).sum();
    assert!(pages >= TABLE + OWN, "{pages}");
    assert!(program.try_wait().expect("it can be asked").is_none(), "it goes on");
    program.kill().expect("it ends");
    program.wait().expect("it ended");
}

#[test]
fn a_commands_exit_code_is_its_own_and_so_is_its_output() {
    let output = run(&["profile", "--source", "referenced", "--", uses(), "50", "0", "1", "fails"]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(printed.starts_with("table 0x") && printed.lines().count() == 2, "{printed}");
    assert!(stderr(&output).contains("The command failed: exit code 7"), "{}", stderr(&output));
    let code = |words: &[&str]| run(&[&["profile", "--"], words].concat()).status.code();
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["no-such-program"]), Some(127));
    assert_eq!(code(&["/etc/passwd"]), Some(126));
}

#[test]
fn a_command_that_ends_at_once_is_reported() {
    let output = run(&["profile", "--source", "referenced", "--", "true"]);
    assert_eq!(output.status.code(), Some(0));
    // On a busy machine it takes longer, with as little done.
    assert!(stderr(&output).contains("Little was seen"), "{}", stderr(&output));
}

#[test]
fn a_child_and_the_program_that_a_shell_became_are_in_the_report() {
    let Some(profile) = profile("faults", &[uses(), "100", "0", "1", "fork"]) else { return };
    assert!(number(&region(&profile, TABLE)["first_touches"][0]["pages"]) == TABLE);
    let processes = profile["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 2, "{processes:#?}");
    assert_ne!(processes[0]["process"], processes[1]["process"]);
    let script = format!("exec {} 100 0 1", uses());
    let profile = self::profile("faults", &["sh", "-c", &script]).expect("as before");
    assert_eq!(profile["name"], "uses");
    let processes = profile["processes"].as_array().expect("processes");
    assert!(processes.iter().any(|of| of["name"] == "sh"), "{processes:#?}");
}

#[test]
fn a_daemon_is_named_and_ended() {
    let output = run(&["profile", "--source", "faults", "--", uses(), "60000", "0", "1", "daemon"]);
    let said = stderr(&output);
    if said.contains("perf_event_open(2)") {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the command left uses ("), "{said}");
    let number = said.split_once("left uses (").and_then(|(_, rest)| rest.split_once(')'));
    assert_gone(number.expect("its number").0);
}

fn assert_gone(process: &str) {
    let pid = Pid::from_raw(process.parse().expect("a number")).expect("a process");
    assert!(test_kill_process(pid).is_err(), "{process} is still there");
}

/// Returns what is found in a file, once it is there.
fn once_in<T>(file: &str, found: impl Fn(&str) -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found(&fs::read_to_string(file).unwrap_or_default()) {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "not in {file}");
        sleep(Duration::from_millis(10));
    }
}

/// Returns the process that numalab profiles.
fn child_of(numalab: &Child) -> String {
    let children = format!("/proc/{0}/task/{0}/children", numalab.id());
    once_in(&children, |text| text.split_whitespace().next().map(str::to_owned))
}

/// Waits until `uses` has touched all its pages.
fn wait_for_memory(process: &str) {
    once_in(&format!("/proc/{process}/statm"), |text| {
        let resident: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
        (resident >= TABLE + OWN).then_some(())
    });
}

#[test]
fn an_interrupt_ends_the_command_and_the_report_covers_the_time_before() {
    // Long enough for one look, also on a busy machine.
    let mut waits = [500, 5000, 20_000].map(Duration::from_millis).into_iter();
    assert!(waits.any(interrupted_profile_has_regions), "nothing was seen");
}

/// Interrupts a profile this long after its command has touched its memory; returns true if it saw
/// some of it.
fn interrupted_profile_has_regions(after: Duration) -> bool {
    let words = ["profile", "--source", "referenced", "--format", "json", "--"];
    let mut command = numalab(&[&words[..], &[uses(), "60000", "0", "1"]].concat());
    let running = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let child = child_of(&running);
    wait_for_memory(&child);
    sleep(after);
    let pid = Pid::from_child(&running);
    kill_process(pid, Signal::INT).expect("it is there");
    let output = running.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(said.contains("interrupted; the report covers the time until then"), "{said}");
    let profile = schemas::document(&said[said.find('{').expect("a report")..]);
    assert_eq!(profile["ended"], "interrupted");
    assert_gone(&child);
    !profile["program"]["regions"].as_array().expect("regions").is_empty()
}

#[test]
fn a_time_for_a_command_is_its_end() {
    let words = ["profile", "--source", "referenced", "--for", "700ms", "--"];
    // The program alone would run for ten minutes.
    let output = run(&[&words[..], &[uses(), "600000", "0", "1"]].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("the time limit was reached, and the command was terminated"));
}

#[test]
fn subjects_that_cannot_be_explored_are_refused_with_their_exit_code() {
    let refused = |words: &[&str], code: i32, message: &str| {
        let output = run(words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    };
    refused(&["profile", "--pid", "4194304"], 2, "--pid: process 4194304 does not exist");
    refused(&["profile"], 2, "--pid");
    refused(&["profile", "--pid", "1", "--", "true"], 125, "cannot be used with");
    let own = std::process::id().to_string();
    let emulated = ["profile", "--pid", &own, "--source", "emulation"];
    refused(&emulated, 3, "a running process cannot be emulated");
    refused(&["profile", "--source", "emulation", "--", "true"], 125, "/nonexistent");
    let has_to_end = ["profile", "--source", "emulation", "--for", "1s", "--", "true"];
    refused(&has_to_end, 125, "not after --for");
    refused(&["profile", "--source", "guesses", "--", "true"], 125, "possible values: auto");
}

#[test]
fn a_dry_run_names_the_source_and_why_no_better_one() {
    let output = run(&["profile", "--dry-run", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("not emulation: "), "{said}");
    let source = said.lines().last().expect("a line").strip_prefix("source: ").expect("a source");
    let passed: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("not ")).collect();
    assert!(passed.iter().all(|line| !line.starts_with(source)), "{said}");
}

#[test]
fn a_kept_profile_is_shown_in_every_format() {
    let place = tempfile::tempdir().expect("made");
    let file = place.path().join("profile.json");
    let file = file.to_str().expect("UTF-8");
    let words = ["profile", "--source", "faults", "-o", file, "--", uses(), "100", "0", "1"];
    let output = run(&words);
    if stderr(&output).contains("perf_event_open(2)") {
        return;
    }
    let shown = |format: &str| {
        let output = run(&["report", file, "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{format}: {}", stderr(&output));
        stdout(&output)
    };
    let kept: Value = serde_json::from_str(&fs::read_to_string(file).expect("kept")).expect("JSON");
    assert_eq!(schemas::document(&shown("json")), kept);
    let text = shown("text");
    assert!(text.contains("Memory use of uses") && text.contains("Over time"), "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{text}");
    let html = shown("html");
    assert!(html.contains("class=\"heat map\"") && html.contains("first address to last"));
    assert!(html.contains("threads running"), "a time line");
    let rows = shown("csv");
    assert!(rows.starts_with("region,start,thread,cpu_node,memory_node,source,loads"), "{rows}");
    let table: u64 = rows
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').nth(8)?.parse::<u64>().ok())
        .max()
        .expect("rows");
    assert_eq!(table, TABLE);
    let callgrind = shown("callgrind");
    assert!(callgrind.contains("fn=fill") && callgrind.contains("uses.c"), "{callgrind}");
}

#[test]
fn another_users_process_is_refused_with_the_remedy() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can be another user");
        return;
    }
    // Every user may read this place.
    let place = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
    let program = place.path().join("numalab");
    fs::copy(env!("CARGO_BIN_EXE_numalab"), &program).expect("copied");
    let everybody = |path: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path, mode).expect("its own");
    };
    everybody(place.path());
    everybody(&program);
    let own = std::process::id().to_string();
    for source in ["faults", "referenced"] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        let output = command
            .args(["profile", "--source", source, "--pid", &own, "--for", "1s"])
            .output()
            .expect("setpriv: apt install util-linux");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{source}: {said}");
        assert!(said.contains("run numalab as one of them"), "{source}: {said}");
    }
}
