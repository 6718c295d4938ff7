//! Advice for programs in other languages than C: four threads use a table that the first thread
//! filled, or two children do so.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::programs::built::or_not_run;
use crate::programs::lab::{Lab, lab};

/// A machine whose memory is waited for at each miss.
const MACHINE: [&str; 9] = [
    "--emulate",
    "2",
    "--cpus",
    "4",
    "--emulate-cache",
    "32K,256K",
    "--emulate-stages",
    "none",
    "--predict-only",
];
/// Candidates that change the program, with the member that names their line.
const CHANGES: [&str; 3] = ["bind-region", "first-touch", "replicate"];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/languages").join(name)
}

/// Runs a compiler in the directory of the programs; prints a note and returns `None` if it is
/// missing.
fn compiled(lab: &Lab, compiler: &str, words: &[&OsStr], package: &str) -> Option<()> {
    let mut run = Command::new(compiler);
    run.args(words).current_dir(&lab.directory);
    // Go needs a cache directory, and there may be no home directory.
    run.env("GOCACHE", lab.directory.join("go")).env("CGO_ENABLED", "0");
    let built = match run.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => panic!("{compiler} ended with {status}"),
        Err(error) => Err(format!("{compiler}: {error}: apt install {package}")),
    };
    or_not_run(built)
}

/// Returns the candidates in the advice for a program.
fn candidates(lab: &Lab, command: &[&str]) -> Vec<Value> {
    let mut run = Command::new(env!("CARGO_BIN_EXE_numalab"));
    run.env("NUMALAB_EMULATOR", &lab.plugin)
        .arg("advise")
        .args(MACHINE)
        .current_dir(&lab.directory);
    let output = run.args(["--format", "json", "--"]).args(command).output().expect("it starts");
    let advice: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let options = advice["options"].as_array().expect("options");
    options.iter().map(|option| option["candidate"].clone()).collect()
}

/// Returns the lines of a program's own source that the candidates name.
fn lines(candidates: &[Value], file: &str) -> Vec<String> {
    let named = CHANGES.iter().flat_map(|change| candidates.iter().map(move |of| &of[change]));
    let named = named.filter_map(|change| change["line"].as_str());
    let own = |line: &str| {
        let (path, number) = line.rsplit_once(':').expect("a line");
        assert!(path.ends_with(file), "{line} is not of {file}: {candidates:?}");
        number.to_owned()
    };
    named.map(own).collect()
}

/// Returns the number of the line that ends in the comment `TABLE`.
fn marked(file: &str) -> String {
    let text = fs::read_to_string(source(file)).expect("the source");
    let at = text.lines().position(|line| line.ends_with("TABLE")).expect("a mark");
    (at + 1).to_string()
}

#[test]
fn optimised_programs_are_named_by_the_user_s_line_and_not_by_the_library_s() {
    let Some(lab) = lab() else { return };
    fs::write(lab.directory.join("mapped"), vec![3; 1 << 19]).expect("written");
    for (compiler, words, file, package) in [
        ("g++", &["-g", "-O1", "-pthread"][..], "table.cpp", "g++"),
        ("rustc", &["-g", "-O", "--edition", "2021"], "table.rs", "rustc"),
        ("gfortran", &["-g", "-O1", "-fopenmp"], "table.f90", "gfortran"),
    ] {
        let (path, program) = (source(file), format!("{file}.out"));
        let all = words.iter().map(|word| OsStr::new(*word));
        let all = all.chain([OsStr::new("-o"), OsStr::new(&program), path.as_os_str()]);
        let all: Vec<&OsStr> = all.collect();
        if compiled(lab, compiler, &all, package).is_none() {
            continue;
        }
        let found = candidates(lab, &[&lab.program(&program), "mapped"]);
        assert!(lines(&found, file).contains(&marked(file)), "{file}: {found:?}");
    }
}

#[test]
fn nothing_is_advised_that_go_java_or_python_cannot_do() {
    let Some(lab) = lab() else { return };
    fs::write(lab.directory.join("mapped"), vec![3; 1 << 19]).expect("written");
    let (go, java) = (source("table.go"), source("Table.java"));
    let words = ["build", "-o", "table.go.out"].map(OsStr::new);
    let go = [&words[..], &[go.as_os_str()]].concat();
    let java = [OsStr::new("-d"), OsStr::new("."), java.as_os_str()];
    let python = source("table.py").to_string_lossy().into_owned();
    let numpy = ["-c", "import numpy"].map(OsStr::new);
    let programs = [
        compiled(lab, "go", &go, "golang").map(|()| vec!["./table.go.out"]),
        compiled(lab, "javac", &java, "default-jdk-headless")
            .map(|()| vec!["java", "-Xint", "-XX:+UseSerialGC", "-cp", ".", "Table"]),
        compiled(lab, "/usr/bin/python3", &numpy, "python3-numpy")
            .map(|()| vec!["/usr/bin/python3", &python, "mapped"]),
    ];
    for command in programs.into_iter().flatten() {
        let found = candidates(lab, &command);
        let changes = CHANGES.iter().any(|change| found.iter().any(|of| of[change].is_object()));
        assert!(!changes, "{command:?}: {found:?}");
        assert!(found.iter().any(|of| of["bind"].is_object()), "{command:?}: {found:?}");
    }
}
