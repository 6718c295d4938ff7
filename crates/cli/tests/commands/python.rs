//! The Python package on documents just written by the command, and its type annotations.
//!
//! They need the distribution's Python with pandas, matplotlib and mypy. With
//! `NUMALAB_REQUIRE_TOOLS=1` their lack is a failure; otherwise it is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use numalab_record::Kind;

use crate::command::{NUMALAB, prints_in, stderr};
use crate::schemas;

/// The distribution's Python, which has these packages.
const PYTHON: &str = "/usr/bin/python3";

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python")
}

/// Returns true if Python has a module; prints a note otherwise.
fn has(module: &str) -> bool {
    let import = Command::new(PYTHON).args(["-c", &format!("import {module}")]).output();
    if import.is_ok_and(|output| output.status.success()) {
        return true;
    }
    let why = format!("{PYTHON} has no {module}: scripts/setup test installs it");
    assert!(std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none(), "{why}");
    println!("{why}");
    false
}

fn finish(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().expect("starts");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

/// Measures, and returns the result directory below `to`.
fn measured(place: &Path, arguments: &[&str], to: &str) -> String {
    prints_in(place, &[arguments, &["--quiet", "-o", to]].concat());
    let made = fs::read_dir(place.join(to)).expect("made").next().expect("a result");
    made.expect("readable").path().to_str().expect("UTF-8").to_owned()
}

/// Writes a document of each of several kinds, by its kind.
fn write_documents(place: &Path) {
    let run = measured(place, &["latency", "--size", "64K", "--budget", "1s"], "runs");
    let study = measured(place, &["study", "run", "noise", "--blocks", "6"], "results");
    let commands: [&[&str]; 7] = [
        &["report", &run],
        &["report", &study],
        &["compare", &run, &run],
        &["topology"],
        &["study", "list"],
        &["knobs", "list"],
        &["explore", "--nodes"],
    ];
    for command in commands {
        let text = prints_in(place, &[command, &["--format", "json"]].concat());
        let schema = schemas::document(&text)["schema"].as_str().expect("text").to_owned();
        let kind = schema.trim_start_matches("numalab/").trim_end_matches("-2");
        fs::write(place.join(kind).with_extension("json"), text).expect("written");
    }
}

#[test]
fn python_reads_tables_frames_and_charts_of_a_fresh_result() {
    if !has("pandas") || !has("matplotlib") {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    write_documents(place.path());
    let mut tests = Command::new(PYTHON);
    tests.args(["-B", "-m", "unittest", "discover", "-s", "tests"]);
    tests.current_dir(package()).env("PYTHONPATH", "src").env("MPLCONFIGDIR", place.path());
    tests.env("NUMALAB", NUMALAB).env("NUMALAB_DOCUMENTS", place.path());
    tests.env("NUMALAB_SCHEMAS", Kind::ALL.map(Kind::schema).join(" "));
    let output = finish(&mut tests);
    let said = stderr(&output);
    assert!(said.contains("\nOK\n"), "{said}");
}

#[test]
fn the_types_of_the_python_package_are_sound() {
    if !has("mypy") {
        return;
    }
    let mut mypy = Command::new(PYTHON);
    mypy.args(["-m", "mypy", "--cache-dir=/dev/null", "--config-file=pyproject.toml", "src"]);
    finish(mypy.current_dir(package()));
}
