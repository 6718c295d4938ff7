//! Inputs as large as the limits allow take time and memory in proportion to their size.
//!
//! The limits are those of a program without optimisation on a busy machine, in time of the cpu;
//! quadratic versions took a hundred times as long.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{NUMALAB, ends};

/// Addresses that the command may use, in KiB: memory, the program itself and stacks of threads.
const MOST_KIB: u32 = 1 << 20;

/// Returns a command with limits of memory and of cpu seconds, beyond which the kernel ends it.
fn limited(cpu_s: u32, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -t $1 && ulimit -v $2 && shift 2 && exec \"$@\"", "sh"]);
    command.args([cpu_s, MOST_KIB].map(|limit| limit.to_string()));
    command.arg(NUMALAB).args(words).stdin(Stdio::null());
    command
}

/// Runs a command within these limits; returns its output.
fn within(cpu_s: u32, words: &[&str]) -> String {
    ends(&mut limited(cpu_s, words), 0).0
}

/// Returns the size of an input: all of it with `NUMALAB_LONG=1`, else a part.
fn whole_or(part: usize, whole: usize) -> usize {
    if std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1") { whole } else { part }
}

#[test]
fn two_files_of_millions_of_numbers_are_compared() {
    let place = tempfile::tempdir().expect("a directory");
    // 9 bytes a number: 63 MB.
    let count = whole_or(500_000, 7_000_000);
    let files = ["a", "b"].map(|name| place.path().join(name));
    for (file, seed) in files.iter().zip([1_u64, 2]) {
        let mut state = seed;
        let mut text = String::new();
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            writeln!(text, "10{}.{:04}", state >> 63, (state >> 40) % 10_000).expect("written");
        }
        fs::write(file, text).expect("written");
    }
    let files = files.map(|file| file.to_str().expect("UTF-8").to_owned());
    let cpu_s = u32::try_from(10 + count / 50_000).expect("small");
    let page = within(cpu_s, &["compare", &files[0], &files[1]]);
    assert!(page.contains("Equivalent within 2 %"), "{page}");
    assert!(page.contains(&count.to_string()), "{page}");
}

#[test]
fn a_machine_of_65536_cpus_is_read_from_a_line_of_its_architecture_file() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("arch");
    let text = "SYSTEM_NAME=\"X\"\nPARTITION=\"P\"\nCCDS_PER_NUMA=1\nNUMA node0 CPU(s): 0-65535\n";
    fs::write(&file, text).expect("written");
    let source = format!("arch:{}", file.display());
    let json = within(20, &["topology", "--source", &source, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["machine"]["nodes"][0]["cpus"], "0-65535");
}

/// Returns the one result directory below a place.
fn result_in(place: &Path) -> PathBuf {
    fs::read_dir(place).expect("results").next().expect("a run").expect("readable").path()
}

/// Returns the path of a file of this length that takes no space on the disk.
fn sparse(place: &Path, name: &str, bytes: u64) -> String {
    let path = place.join(name);
    fs::File::create(&path).and_then(|file| file.set_len(bytes)).expect("made");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn files_far_beyond_their_limit_are_refused_unread() {
    let place = tempfile::tempdir().expect("a directory");
    let study = sparse(place.path(), "study.toml", 45 << 20);
    let numbers = sparse(place.path(), "numbers", 10 << 30);
    for (words, most) in [
        (&["study", "show", &study][..], "has more than 1048576 bytes"),
        (&["study", "run", "--dry-run", &study], "has more than 1048576 bytes"),
        (&["compare", &numbers, &numbers], "has more than 536870912 bytes"),
    ] {
        let said = ends(&mut limited(10, words), 2).1;
        assert!(said.contains(most), "{words:?}: {said}");
    }
}

#[test]
fn a_cell_of_hundreds_of_thousands_of_samples_is_reported() {
    let place = tempfile::tempdir().expect("a directory");
    let parent = place.path().to_str().expect("UTF-8");
    let options = ["latency", "--size", "64K", "--pages", "4k", "--cpus", "0", "--budget", "1s"];
    ends(Command::new(NUMALAB).args(options).args(["-o", parent, "-q"]), 0);
    let run = result_in(place.path());
    let count = whole_or(50_000, 500_000);
    let samples = fs::read_to_string(run.join("samples.csv")).expect("samples");
    let (header, rows) = samples.split_once('\n').expect("a header");
    let first: Vec<&str> = rows.lines().next().expect("a sample").split(',').collect();
    let [cell, metric, _, _, unit, _, duration, work, ..] = first[..] else { panic!("{header}") };
    let mut text = format!("{header}\n");
    for index in 0..count {
        let (value, start) = (5.0 + (index * 7919 % 1000) as f64 / 1e4, 1_000_000 * (index + 1));
        writeln!(text, "{cell},{metric},{index},{value},{unit},{start},{duration},{work},")
            .expect("written");
    }
    fs::write(run.join("samples.csv"), text).expect("written");
    let cells = fs::read_to_string(run.join("cells.jsonl")).expect("a cell");
    let mut finished: serde_json::Value = serde_json::from_str(cells.trim()).expect("one line");
    finished["samples"] = count.into();
    fs::write(run.join("cells.jsonl"), format!("{finished}\n")).expect("written");
    let cpu_s = u32::try_from(10 + count / 10_000).expect("small");
    let page = within(cpu_s, &["report", run.to_str().expect("UTF-8")]);
    let pages = fs::read_to_string(run.join("report.md")).unwrap_or_default() + &page;
    assert!(pages.contains(&count.to_string()), "{page}");
}

/// Returns the memory that this machine has available, in MiB.
fn available_mib() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").expect("Linux");
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:")).expect("a figure");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("kB") >> 10
}

#[test]
fn buffers_that_fit_one_by_one_but_not_together_are_refused_before_any_is_touched() {
    let allowed = numalab_host::current_affinity().expect("an affinity");
    let two: Vec<String> = allowed.iter().take(2).map(|cpu| cpu.0.to_string()).collect();
    if two.len() < 2 {
        eprintln!("NOT RUN: one cpu");
        return;
    }
    let (cpus, each) = (two.join(","), available_mib() / 10 * 6);
    let size = format!("{each}M");
    let sizes = ["--size", &size, "--pages", "4k", "-q"];
    for words in [&["latency", "--cpus", &cpus, "--concurrent"][..], &["latency", "--ranks", "2"]] {
        // Without the sum, the limit of addresses ends it before the machine has no memory left.
        let mut command = limited(30, &[words, &sizes].concat());
        let said = command.output().expect("it runs");
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success(), "{words:?}: {errors}");
        let sum = format!("{} MiB of memory needed, but only", 2 * each);
        assert!(errors.contains(&sum), "{words:?}: {errors}");
    }
}
