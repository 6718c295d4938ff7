//! Compares the final placement of programs' pages in the profile with `move_pages(2)`, which
//! `programs/pages.c` calls before a program has ended.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{list, number, seen};
use crate::programs::known::{REAL, SYNTHETIC};

/// Programs of the host, which the guest lacks.
const OF_HOST: [&str; 7] = [
    "/usr/bin/gcc",
    "/usr/bin/gzip",
    "/usr/bin/python3",
    "/usr/bin/sort",
    "/usr/bin/sqlite3",
    "/usr/bin/xz",
    "/usr/bin/zstd",
];
/// Programs that the guest gets by name.
const BY_NAME: [&str; 5] =
    ["sysbench", "stress-ng", "redis-server", "redis-cli", "redis-benchmark"];
/// Modules that python3 reads before it starts, by its own names.
const MODULES: [&str; 3] = ["encodings", "encodings.aliases", "encodings.utf_8"];

/// A name that is valid for a file, and a shell command.
type Program = (String, String);

/// Returns true with `NUMALAB_LONG=1`.
fn is_long() -> bool {
    std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1")
}

/// Returns the guest's limit, so that two guests fit into the limit of `scripts/runner.py`: it
/// needs about 60 s on a free cpu, and an hour with all programs.
pub(crate) fn limit() -> &'static str {
    if is_long() { "3h" } else { "10m" }
}

/// Returns all programs, or two without `NUMALAB_LONG=1`.
fn programs() -> Vec<Program> {
    let file = |name: &str| name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let synthetic =
        SYNTHETIC.iter().map(|words| (file(words), format!("exec $LAB/answers {words}")));
    let real = REAL.iter().map(|(name, script)| (file(name), (*script).to_owned()));
    let is_meant =
        |(name, _): &Program| is_long() || ["hot-node-8", "sysbench-memory"].contains(&&**name);
    synthetic.chain(real).filter(is_meant).collect()
}

/// Returns the additional contents of the guest: files of this machine, or names.
pub(crate) fn contents(programs: &Path, directory: &Path) -> Vec<String> {
    let pages = directory.join("pages.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/pages.c");
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&pages).arg(source);
    assert!(compiled.status().expect("cc: apt install gcc").success());
    let output = |command: &str, arguments: &[&str]| {
        let output = Command::new(command).args(arguments).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let compiler = output("/usr/bin/gcc", &["-print-prog-name=cc1"]);
    let modules = MODULES.map(|name| {
        let script = format!("import {name} as module; print(module.__file__)");
        output("/usr/bin/python3", &["-c", &script])
    });
    let inputs = ["answers", "stream", "text", "small.c", "rows.sql"]
        .map(|name| programs.join(name).to_string_lossy().into_owned());
    let named = OF_HOST.iter().chain(&BY_NAME).map(|name| (*name).to_owned());
    let found = [pages.to_string_lossy().into_owned(), compiler].into_iter();
    found.chain(modules).chain(inputs).chain(named).collect()
}

/// Runs each of them with the profile.
pub(crate) fn script(built: &Path, directory: &Path) -> String {
    let run = |(name, script): &Program| {
        format!(
            "echo == {name}; numalab profile --source faults -o out/{name}.json -- \
             env LD_PRELOAD={pages} PAGES=out/{name} sh -c \"{script}\" > /dev/null 2> out/{name}.err || \
             {{ code=$?; cat out/{name}.err; exit $code; }}\n",
            pages = directory.join("pages.so").display(),
        )
    };
    let runs: String = programs().iter().map(run).collect();
    format!("export LAB={}\n{runs}", built.display())
}

/// Returns the pages on both nodes.
fn resident(profile: &Value) -> [u64; 2] {
    let regions = list(&profile["program"], "regions").iter();
    regions.flat_map(|region| list(region, "resident")).fold([0; 2], |mut sum, of| {
        sum[usize::from(number(&of["memory_node"]) == 1)] += number(&of["pages"]);
        sum
    })
}

/// Returns the same from the output of `programs/pages.c`.
fn moved(text: &str) -> [u64; 2] {
    text.lines().fold([0; 2], |sum, line| {
        let mut words = line.split(' ').map(|word| word.parse::<u64>().unwrap_or(0));
        sum.map(|sum| sum + words.next().unwrap_or(0))
    })
}

#[test]
fn pages_by_node_are_those_that_each_program_has_as_it_ends() {
    let Some(seen) = seen() else { return };
    for (name, _) in programs() {
        let profile = seen.profile(&format!("{name}.json"));
        let process = number(&profile["program"]["process"]);
        let queried = moved(&seen.text(&format!("{name}.{process}")));
        let resident = resident(&profile);
        println!("{name}: {resident:?} by the profile, {queried:?} by move_pages");
        // The last look is before the end, and the earlier the busier the host is: 4 % of
        // sysbench's pages came after it at a load of 7. Pages on the wrong node would all differ.
        let all: u64 = queried.iter().sum();
        let differ =
            resident.iter().zip(queried).any(|(found, queried)| found.abs_diff(queried) > all / 4);
        assert!(all > 100 && !differ, "{name}: {resident:?}, {queried:?}");
    }
}
