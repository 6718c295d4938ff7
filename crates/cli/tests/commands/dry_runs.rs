//! Dry runs write nothing, and refuse what the run would refuse.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use numalab_host::{MemoryLimit, Root};

use crate::command::{numalab_in, prints_in, refused};

/// Returns every file below a directory with its contents.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("readable").path()) {
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.display().to_string(), fs::read(&path).expect("a file"))),
        }
    }
    found.sort();
    found
}

#[test]
fn a_dry_run_has_the_refusals_of_the_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let wrong: [(&[&str], i32, &str); 9] = [
        (&["latency", "--size", "100T"], 2, "104857600 MiB of memory needed"),
        (&["latency", "--size", "64T", "--concurrent"], 2, "of memory needed"),
        (&["latency", "--size", "4K", "--pattern", "stride:100"], 2, "stride"),
        (&["bandwidth", "--isa", "mmx"], 3, "`mmx` is not available here"),
        (&["bandwidth", "--size", "100T"], 2, "of memory needed"),
        (&["loaded", "--size", "100T", "--cpus", "0,1"], 2, "of memory needed"),
        (&["guest", "run", "--with", "nosuch"], 125, "`nosuch`: no package is known"),
        (&["guest", "run", "--memory", "4M"], 125, "needs at least 128M"),
        (&["guest", "run", "--memory", "900T"], 125, "use a smaller guest"),
    ];
    for (words, code, message) in wrong {
        let refuses = |dry: &[&str]| {
            let command: &[&str] = if words[0] == "guest" { &["--", "true"] } else { &[] };
            let words = [words, dry, command].concat();
            refused(&mut numalab_in(directory.path(), &words), code, &[message]);
        };
        refuses(&["--dry-run"]);
        // A guest is refused only after its image is built, so this is tried once.
        if words[0] != "guest" || words.contains(&"--with") {
            refuses(&[]);
        }
    }
    assert!(files(directory.path()).is_empty());
}

#[test]
fn a_guest_with_more_memory_than_is_available_here_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let limit = MemoryLimit::read(&Root::live()).expect("a figure");
    let said = |bytes: u64| {
        let memory = format!("{}M", bytes >> 20);
        let run = ["guest", "run", "--dry-run", "--memory", &memory, "--", "true"];
        let output = numalab_in(directory.path(), &run).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (code, larger) = said(limit.available_bytes.saturating_mul(4));
    assert_eq!(code, Some(0), "{larger}");
    assert!(larger.contains("are available here ("), "{larger}");
    let (_, smaller) = said(256 << 20);
    assert!(!smaller.contains("are available here"), "{smaller}");
}

#[test]
fn a_guest_does_not_get_input_from_here_and_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = ["guest", "run", "--with", "nosuch", "--", "cat"];
    let said = |input: Stdio| {
        let output = numalab_in(directory.path(), &run).stdin(input).output().expect("it runs");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    fs::write(directory.path().join("data"), "hello").expect("writable");
    let file = fs::File::open(directory.path().join("data")).expect("a file");
    let [piped, redirected, none] = [Stdio::piped(), file.into(), Stdio::null()].map(said);
    assert!(
        piped.contains("standard input is a pipe, which is not passed to the guest"),
        "{piped}"
    );
    assert!(redirected.contains("/data, which is not passed to the guest"), "{redirected}");
    assert!(!none.contains("standard input"), "{none}");
}

#[test]
fn dry_runs_of_resumed_results_leave_them_unchanged() {
    let directory = tempfile::tempdir().expect("a directory");
    let done = |words: &[&str]| prints_in(directory.path(), words);
    done(&["study", "new", "mine"]);
    done(&["study", "run", "mine.toml", "--blocks", "2", "-q", "-o", "studies"]);
    done(&["latency", "--size", "4K", "--budget", "100ms", "-q", "-o", "fleet/hosts/one"]);
    let study = fs::read_dir(directory.path().join("studies")).expect("studies").next();
    let study = study.expect("a study").expect("readable").path();
    let study = study.to_str().expect("UTF-8");
    let before = files(directory.path());
    let text = done(&["study", "resume", study, "--blocks", "3", "--dry-run"]);
    assert!(text.contains("in 4 blocks") && text.contains("have been taken already"), "{text}");
    let fewer = ["study", "resume", study, "--blocks", "1", "--dry-run"];
    refused(&mut numalab_in(directory.path(), &fewer), 2, &["blocks: 1: the study has 2 already"]);
    let text = done(&["fleet", "collect", "fleet", "--dry-run"]);
    assert!(text.contains("1 run to read, 0 unchanged"), "{text}");
    done(&["mark", "--phase", "one", "--dry-run", "--", "touch", "marked"]);
    let text = done(&["study", "probe", "balancing", "--from", "1", "--to", "0", "--dry-run"]);
    assert!(text.contains("placed by cpu 1, read from cpu 0 for"), "{text}");
    assert_eq!(files(directory.path()), before);
}
