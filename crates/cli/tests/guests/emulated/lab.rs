//! Programs, guests and their answers.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

/// Guests booted at a time: each uses a core for a minute, and gigabytes of memory; in virtual time
/// they do not disturb each other.
const AT_A_TIME: usize = 2;
static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// Programs for guests and the plugin, built as `scripts/test` builds it: in a debug build too, measuring loops are
/// optimised, as every instruction takes a virtual nanosecond.
struct Programs {
    placed_chase: PathBuf,
    plugin: PathBuf,
}

fn programs() -> &'static Programs {
    static BUILT: OnceLock<Programs> = OnceLock::new();
    BUILT.get_or_init(|| {
        let debug = Path::new(env!("CARGO_BIN_EXE_numalab")).parent().expect("a directory");
        let target = debug.parent().expect("the target directory");
        build(target, &["--release", "-p", "numalab-emulator"]);
        build(target, &["-p", "numalab-measure", "--example", "placed_chase"]);
        Programs {
            placed_chase: debug.join("examples/placed_chase"),
            plugin: target.join("release/libnumalab_emulator.so"),
        }
    })
}

fn build(target: &Path, what: &[&str]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--manifest-path"]);
    cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).args(what);
    let built = cargo.env("CARGO_TARGET_DIR", target).status().expect("cargo starts");
    assert!(built.success(), "cargo build {what:?}: {built}");
}

/// A permit to run one guest; at most `AT_A_TIME` exist.
struct Turn;

impl Turn {
    fn take() -> Self {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ENDED.wait_while(running, |running| *running == AT_A_TIME);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

/// Returns true with `NUMALAB_LONG=1`.
pub fn is_long() -> bool {
    std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1")
}

/// Returns true in a long run; otherwise prints that its additional checks were not run.
pub fn is_long_or_not_run(what: &str) -> bool {
    if !is_long() {
        not_run(&format!("{what}, without NUMALAB_LONG=1"));
    }
    is_long()
}

/// Returns the time limit of a guest.
fn limit() -> &'static str {
    if is_long() { "3h" } else { "15m" }
}

/// A separate directory.
pub struct Lab {
    pub directory: TempDir,
    _turn: Turn,
}

impl Lab {
    pub fn open() -> Self {
        let turn = Turn::take();
        let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
        Self { directory, _turn: turn }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn numalab(&self, arguments: &[&str]) -> Output {
        let programs = programs();
        let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
        command.args(arguments).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("NUMALAB_EMULATOR", &programs.plugin);
        command.output().expect("numalab starts")
    }

    /// Runs a script in a guest with these arguments, and returns its output; prints why and
    /// returns `None` if no such guest can be booted. `CHASE` in the script stands for the program
    /// that chases through memory which the system placed.
    pub fn guest(&self, arguments: &[&str], script: &str) -> Option<Answer> {
        let chase = programs().placed_chase.to_str().expect("UTF-8");
        let script = format!("set -e\n{}", script.replace("CHASE", chase));
        let mut words = vec!["guest", "run", "--with", "numactl", "--with", chase];
        words.extend(["--timeout", limit()]);
        words.extend(arguments);
        words.extend(["--", "sh", "-c", &script]);
        let mut output = self.numalab(&words);
        if String::from_utf8_lossy(&output.stderr).contains("--fetch-qemu") {
            self.numalab(&["guest", "image", "--fetch-qemu"]);
            output = self.numalab(&words);
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(125) {
            let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
            assert!(!required, "no such guest can be booted here: {errors}");
            not_run(&format!("no such guest can be booted here: {errors}"));
            return None;
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}\n{errors}");
        Some(Answer { text })
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }
}

/// Output of a guest's script, in parts that begin with `== NAME`.
pub struct Answer {
    pub text: String,
}

impl Answer {
    /// Returns the lines of a part.
    pub fn part(&self, name: &str) -> Vec<&str> {
        let heading = format!("== {name}");
        let lines = self.text.lines().skip_while(|line| *line != heading).skip(1);
        let part: Vec<&str> = lines.take_while(|line| !line.starts_with("== ")).collect();
        assert!(!part.is_empty(), "nothing under {heading}:\n{}", self.text);
        part
    }

    /// Returns the rows of a part in numalab's CSV, by column name.
    pub fn rows(&self, name: &str) -> Vec<BTreeMap<&str, &str>> {
        let part = self.part(name);
        let mut lines = part.iter().skip_while(|line| !line.starts_with("cell,"));
        let header = fields(lines.next().expect("a header"));
        let whole = lines.map(|line| fields(line)).filter(|row| row.len() == header.len());
        whole.map(|row| header.iter().copied().zip(row).collect()).collect()
    }

    /// Returns the medians of a part in numalab's CSV, by cpu and node.
    pub fn medians(&self, name: &str) -> BTreeMap<(u32, u32), f64> {
        let median = |row: &BTreeMap<&str, &str>| {
            let place = (row["cpu"].parse().ok()?, row["node"].parse().ok()?);
            assert_eq!(row["proven_on_node"], "true", "{row:?} is not where it should be");
            Some((place, row["median"].parse().ok()?))
        };
        self.rows(name).iter().filter_map(median).collect()
    }

    /// Returns the median of the last cell of a part in numalab's CSV.
    pub fn last_median(&self, name: &str) -> f64 {
        let rows = self.rows(name);
        let last = rows.last().expect("a row");
        last["median"].parse().unwrap_or_else(|_| panic!("no median: {last:?}"))
    }
}

/// Splits a line of CSV without quotes into fields.
fn fields(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let comma = move |c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    };
    line.split(comma).map(|field| field.trim_matches('"')).collect()
}

/// Returns the rounds of `placed_chase`: pages by node, and nanoseconds per load.
pub fn rounds(lines: &[&str]) -> Vec<(BTreeMap<u32, u64>, f64)> {
    let round = |line: &&str| {
        let (pages, ns) = line.split_once(": ")?.1.rsplit_once(": ")?;
        let pages = pages.split(", ").map(|item| {
            let (count, node) = item.split_once(" pages on node ").expect("pages on a node");
            (node.parse().expect("a node"), count.parse().expect("a count"))
        });
        Some((pages.collect(), ns.strip_suffix(" ns")?.parse().ok()?))
    };
    lines.iter().filter(|line| line.starts_with("round ")).filter_map(round).collect()
}

/// Prints a note past the test harness, which hides the output of passing tests.
pub fn not_run(why: &str) {
    let _ = writeln!(std::io::stderr(), "NOT RUN: {why}");
}

/// Fails unless `found` is within this share of `expected`.
pub fn assert_near(found: f64, expected: f64, share: f64, what: &str) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= share, "{what}: {found}, expected {expected} within {} %", share * 100.0);
}
