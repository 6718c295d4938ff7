//! What the design promises of every crate, checked on the sources themselves.

use std::fs;
use std::path::{Path, PathBuf};

/// Production lines of a file at most; the aim is 150.
const MOST_LINES: usize = 400;
/// Crates that may hold unsafe code, each block with its reasons.
const UNSAFE: [&str; 5] = ["membench", "host", "frames", "emulator", "kernel"];
/// Crates that a kernel can use.
const NO_STD: [&str; 5] = ["acpi", "topology", "frames", "membench", "memory-model"];
/// Crates that read no file, start nothing and look at no clock.
const PURE: [&str; 9] = [
    "acpi",
    "topology",
    "memory-model",
    "formats",
    "record",
    "stats",
    "analysis",
    "report",
    "workload",
];
/// What a pure crate never names.
const IMPURE: [&str; 6] =
    ["std::fs", "std::net", "std::process", "std::env", "Instant::now", "SystemTime::now"];
/// A crate, and those of ours that it never depends on.
const NEVER: &[(&str, &[&str])] = &[
    ("acpi", &["topology", "formats", "host"]),
    ("topology", &["formats", "host", "record"]),
    ("frames", &["topology", "acpi", "host"]),
    ("membench", &["topology", "host", "record", "measure"]),
    ("record", &["analysis", "report", "measure", "host"]),
    ("stats", &["record", "analysis", "report", "measure", "host"]),
    ("analysis", &["report", "measure", "host", "membench", "formats"]),
    ("measure", &["analysis", "report", "formats"]),
    ("study", &["analysis", "report", "measure"]),
    ("launch", &["analysis", "report", "guest", "frames", "acpi"]),
    ("report", &["measure", "host", "membench", "formats"]),
    ("memory-model", &["host", "guest", "formats", "topology", "measure"]),
    ("emulator", &["host", "guest", "formats", "topology", "measure"]),
    ("guest-agent", &["image", "guest", "xen", "formats", "study"]),
    ("image", &["guest", "xen", "formats"]),
    ("guest", &["xen", "measure", "stats", "study"]),
    ("xen", &["measure", "stats", "study"]),
    ("explore", &["measure", "membench", "stats"]),
    ("fleet", &["report", "measure", "membench"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates are there");
    let names = entries.map(|entry| entry.expect("readable").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every Rust file below a directory.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("readable").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Each production file of a crate with its text up to its unit tests.
fn production(name: &str) -> Vec<(PathBuf, String)> {
    let is_test = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "tests");
    let files = sources(&root().join("crates").join(name).join("src"));
    let without_tests = |path: PathBuf| {
        let text = read(&path);
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        (path, text[..end].to_owned())
    };
    files.into_iter().filter(|path| !is_test(path)).map(without_tests).collect()
}

#[test]
fn no_file_is_longer_than_its_limit() {
    for name in crates() {
        for (path, text) in production(&name) {
            let lines = text.lines().count();
            assert!(lines <= MOST_LINES, "{}: {lines} lines, split it by idea", path.display());
        }
    }
}

#[test]
fn a_module_with_files_of_its_own_is_named_by_its_file() {
    for name in crates() {
        for path in sources(&root().join("crates").join(name).join("src")) {
            assert!(!path.ends_with("mod.rs"), "{}: call it by its module's name", path.display());
        }
    }
}

#[test]
fn functions_longer_than_sixty_lines_are_refused_by_the_lints() {
    assert!(read(&root().join("clippy.toml")).contains("too-many-lines-threshold = 60"));
    assert!(read(&root().join("Cargo.toml")).contains("too_many_lines = \"warn\""));
}

#[test]
fn crates_forbid_unsafe_code_unless_they_are_named_here() {
    for name in crates().iter().filter(|name| !UNSAFE.contains(&name.as_str())) {
        let source = root().join("crates").join(name).join("src");
        let entry = ["lib.rs", "main.rs"].map(|file| source.join(file));
        let entry = entry.iter().find(|path| path.exists()).expect("a lib.rs or main.rs");
        let forbids = read(entry).contains("#![forbid(unsafe_code)]");
        assert!(forbids, "{} does not forbid unsafe code", entry.display());
    }
}

#[test]
fn crates_for_kernels_do_without_std() {
    for name in NO_STD {
        let library = root().join("crates").join(name).join("src/lib.rs");
        let text = read(&library);
        assert!(text.contains("#![no_std]") || text.contains("no_std)]"), "{name} needs std");
    }
}

#[test]
fn pure_crates_touch_nothing_outside_themselves() {
    for name in PURE {
        for (path, text) in production(name) {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                let found = IMPURE.iter().find(|impure| line.contains(**impure));
                assert!(found.is_none(), "{}: {line}", path.display());
            }
        }
    }
}

/// Both name it, and neither knows the other otherwise.
#[test]
fn records_take_nothing_of_statistics_but_which_way_is_better() {
    for (path, text) in production("record") {
        for line in text.lines().filter(|line| line.contains("numalab_stats")) {
            assert_eq!(line, "use numalab_stats::Direction;", "{}", path.display());
        }
    }
}

#[test]
fn crates_depend_on_none_of_those_that_they_must_not() {
    for (name, never) in NEVER {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        let end = manifest.find("[dev-dependencies]").unwrap_or(manifest.len());
        let dependencies = &manifest[..end];
        for other in *never {
            let lines = ['.', ' '].map(|end| format!("\nnumalab-{other}{end}"));
            let depends = lines.iter().any(|line| dependencies.contains(line));
            assert!(!depends, "{name} depends on {other}");
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for name in crates() {
        let manifest = read(&root().join("crates").join(&name).join("Cargo.toml"));
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} has lints of its own");
    }
}

#[test]
fn the_version_has_its_place_in_the_changelog() {
    let changelog = read(&root().join("CHANGELOG.md"));
    let heading = format!("## {}", env!("CARGO_PKG_VERSION"));
    assert!(changelog.contains(&heading), "CHANGELOG.md has no `{heading}`");
}

#[test]
fn no_source_names_the_place_of_this_checkout() {
    let here = root().canonicalize().expect("the checkout is there");
    let here = here.to_str().expect("UTF-8");
    for name in crates() {
        for path in sources(&root().join("crates").join(&name)) {
            assert!(!read(&path).contains(here), "{} names {here}", path.display());
        }
    }
}

/// `eprintln!` and `println!` panic where nobody reads any more (`2>&1 | head`).
#[test]
fn nothing_prints_by_macros_that_panic_when_the_reader_is_gone() {
    // Neither is a program that a user runs.
    const EXEMPT: [&str; 2] = ["kernel/src/main.rs", "numalab-guest-init.rs"];
    for name in crates() {
        for (path, text) in production(&name) {
            if EXEMPT.iter().any(|exempt| path.ends_with(exempt)) {
                continue;
            }
            let end = text.find("#[cfg(test)]").unwrap_or(text.len());
            for found in ["println!", "eprintln!", " print!", " eprint!"] {
                let mut code =
                    text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
                assert!(!code.any(|line| line.contains(found)), "{}: {found}", path.display());
            }
        }
    }
}
