//! Checks the design's promises on the sources of every crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/packages.rs"]
mod packages;
#[path = "tidy/words.rs"]
mod words;

/// Maximum number of production lines in a file; the aim is 150.
const MOST_LINES: usize = 400;
/// Crates that may have unsafe code, each block with its reasons.
const UNSAFE: [&str; 6] = ["marks", "membench", "host", "frames", "emulator", "kernel"];
/// Crates without std, which a kernel can use.
const NO_STD: [&str; 6] = ["acpi", "topology", "frames", "marks", "membench", "memory-model"];
/// Crates without files, processes and clocks.
const PURE: [&str; 9] = [
    "acpi",
    "topology",
    "memory-model",
    "formats",
    "record",
    "stats",
    "page",
    "results",
    "workload",
];
/// Names that a pure crate never uses.
const IMPURE: [&str; 6] =
    ["std::fs", "std::net", "std::process", "std::env", "Instant::now", "SystemTime::now"];
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

/// Returns every Rust file below a directory.
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

/// Returns each production file of a crate, without its unit tests.
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
fn a_module_with_files_is_named_by_its_root_file() {
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

/// Words and pages depend on the rules; nothing else may link them.
#[test]
fn rules_of_results_use_neither_words_nor_pages() {
    let is_rule = |path: &Path| {
        path.components()
            .any(|part| Path::new(part.as_os_str()).file_stem().is_some_and(|stem| stem == "find"))
    };
    let rules: Vec<_> =
        production("results").into_iter().filter(|(path, _)| is_rule(path)).collect();
    assert!(rules.len() > 50, "only {} files hold rules", rules.len());
    for (path, code) in rules {
        for words in ["numalab_page", "crate::label", "::page::", "::document::"] {
            assert!(!code.contains(words), "{} uses {words}", path.display());
        }
    }
}

#[test]
fn records_take_nothing_of_statistics_but_which_way_is_better_and_medians() {
    for (path, text) in production("record") {
        for line in text.lines().filter(|line| line.contains("numalab_stats")) {
            let taken = line.trim_start_matches("use numalab_stats::");
            assert!(["Direction;", "median;"].contains(&taken), "{}: {line}", path.display());
        }
    }
}

/// Returns the cells of the table's rows below a heading of ARCHITECTURE.md.
fn documented(heading: &str) -> Vec<Vec<String>> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let below = text.split_once(&format!("\n## {heading}\n")).expect("the heading is there").1;
    let lines = below.lines().take_while(|line| !line.starts_with("## "));
    let rows = lines.filter(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| row.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// Returns the names in backquotes in a cell of the table.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the crates of ours that each crate depends on, except in tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new("cargo").args(arguments).current_dir(root()).output();
    let output = output.expect("cargo can be run");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let ours = |name: &str| name.strip_prefix("numalab-").unwrap_or("cli").to_owned();
    let list = |value: &serde_json::Value| value.as_array().cloned().expect("a list");
    let crates = list(&metadata["packages"]).into_iter().map(|package| {
        let needed = list(&package["dependencies"]).into_iter();
        let needed = needed.filter(|needed| needed["kind"] != "dev");
        let needed = needed.map(|needed| text(&needed["name"]));
        let needed = needed.filter(|name| name.starts_with("numalab")).map(|name| ours(&name));
        (ours(&text(&package["name"])), needed.collect())
    });
    crates.collect()
}

#[test]
fn crates_use_only_the_crates_that_architecture_lists() {
    let dependencies = dependencies();
    let all: BTreeSet<String> = dependencies.keys().cloned().collect();
    let said: BTreeMap<String, BTreeSet<String>> = documented("Crates")
        .into_iter()
        .map(|row| {
            let (name, uses) = (names(&row[0]).pop_first().expect("a name"), names(&row[2]));
            let but = |uses: &BTreeSet<String>| {
                all.iter()
                    .filter(|other| **other != name && !uses.contains(*other))
                    .cloned()
                    .collect()
            };
            let uses = if row[2].starts_with("all but") { but(&uses) } else { uses };
            (name, uses)
        })
        .collect();
    assert_eq!(said.keys().collect::<Vec<_>>(), dependencies.keys().collect::<Vec<_>>());
    for (name, uses) in dependencies {
        assert_eq!(said[&name], uses, "{name}: left ARCHITECTURE.md, right its Cargo.toml");
    }
}

#[test]
fn circles_between_files_are_those_that_architecture_explains() {
    let explained: BTreeSet<(String, BTreeSet<String>)> = documented("Cycles between files")
        .iter()
        .map(|row| (names(&row[0]).pop_first().expect("a crate"), names(&row[1])))
        .collect();
    let mut found = BTreeSet::new();
    for name in crates() {
        let source = root().join("crates").join(&name).join("src");
        let mut sources: BTreeMap<circles::Module, String> = BTreeMap::new();
        for (path, text) in production(&name) {
            let path = path.strip_prefix(&source).expect("below src").with_extension("");
            let module = path.iter().map(|part| part.to_string_lossy().into_owned());
            let mut module: circles::Module = module.collect();
            match module[0].as_str() {
                "bin" => continue,
                "lib" | "main" => module.clear(),
                _ => {}
            }
            sources.entry(module).or_default().push_str(&text);
        }
        let circles = circles::circles(&sources).into_iter();
        found.extend(circles.map(|circle| (name.clone(), circle.into_iter().collect())));
    }
    assert_eq!(explained, found, "left: ARCHITECTURE.md, right: the sources");
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for name in crates() {
        let manifest = read(&root().join("crates").join(&name).join("Cargo.toml"));
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} has separate lints");
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

/// `numalab_host` decides for root which directories of `PATH` are searched.
#[test]
fn programs_are_found_by_one_rule() {
    // The emulator starts itself, the agent runs in a guest, and the lab is of tests.
    const OTHERS: [&str; 5] = [
        "host/src/command.rs",
        "host/src/command/start.rs",
        "emulator/src/entry.rs",
        "guest-agent/src/",
        "study/src/bisect/git_lab.rs",
    ];
    for name in crates() {
        for (path, text) in production(&name) {
            let is_other = OTHERS.iter().any(|other| path.to_string_lossy().contains(other));
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let starts = code.contains("Command::new(");
            assert!(is_other || !starts, "{}: `host::tool` or `users_program`", path.display());
        }
    }
}

/// `eprintln!` and `println!` panic if the reader closed the pipe (`2>&1 | head`).
#[test]
fn nothing_prints_by_macros_that_panic_when_the_reader_is_gone() {
    // Users run neither of these programs.
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
