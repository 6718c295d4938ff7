//! Studies of many guests from outside: what is refused, what is planned, and one that
//! runs with guests of QEMU. The domains of Xen have their boots in `xen.rs`; with
//! `NUMALAB_LONG=1` whole studies of them run here too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with the program in it: guests boot it, so its symbols are left out.
struct Lab {
    directory: TempDir,
}

impl Lab {
    fn open() -> Self {
        let lab = Self { directory: tempfile::tempdir().expect("a directory") };
        let built = env!("CARGO_BIN_EXE_numalab");
        let stripped = Command::new("strip").arg("-o").arg(lab.program()).arg(built).status();
        if !stripped.is_ok_and(|status| status.success()) {
            fs::copy(built, lab.program()).expect("copied");
        }
        lab
    }

    fn program(&self) -> PathBuf {
        self.path("numalab")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.program());
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command.output().expect("numalab starts")
    }

    /// The text of the only file of this name in the result directories.
    fn result(&self, name: &str) -> String {
        let results = fs::read_dir(self.path("results")).expect("results");
        let mut directories = results.map(|entry| entry.expect("readable").path());
        let directory = directories.next().expect("one result");
        fs::read_to_string(directory.join(name)).expect("the file")
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_machine_that_is_no_dom0_is_refused_before_anything_is_written() {
    if Path::new("/proc/xen/capabilities").exists() {
        eprintln!("NOT RUN: this machine runs Xen itself");
        return;
    }
    let lab = Lab::open();
    let output = lab.run(&["study", "run", "guest-scaling", "--on-this-dom0"]);
    let errors = text(&output.stderr);
    assert_eq!(code(&output), 3, "{errors}");
    assert!(errors.contains("this machine is no dom0"), "{errors}");
    assert!(!lab.path("results").exists());
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_what_would() {
    let lab = Lab::open();
    let refused = |arguments: &[&str], words: &str| {
        let output = lab.run(arguments);
        let errors = text(&output.stderr);
        assert_eq!(code(&output), 2, "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    refused(&["study", "plan", "noise", "--guests", "4"], "expected a study of guests");
    refused(&["study", "run", "guest-scaling", "--workload", "sdet"], "one of dbench, mix");
    refused(&["study", "run", "guest-scaling", "--guests", "65"], "65 is not in 1..=64");
    let on_qemu = ["study", "run", "guest-scaling", "--hypervisor", "qemu", "--emulate-memory"];
    refused(&on_qemu, "a Xen in QEMU only");
}

#[test]
fn numbers_of_guests_are_levels_and_one_is_none() {
    let lab = Lab::open();
    let plan = |guests: &str| {
        let arguments = ["study", "plan", "guest-scaling", "--guests", guests];
        let output = lab.run(&arguments);
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let several = plan("6,2");
    assert!(several.contains("numa=off guests=2") && several.contains("numa=on guests=6"));
    assert!(!several.contains("guests=4"), "{several}");
    let one = plan("6");
    assert!(one.contains("A  numa=off\n") && !one.contains("guests="), "{one}");
}

const WITH_QEMU: &str = r#"
name = "two-guests"
question = "Do guests of QEMU run together?"
[world.guests]
hypervisor = "qemu"
guests = 2
guest-memory-mib = 192
[rules]
blocks = 1
warm-ups = 0
aa = false
[[factor]]
name = "numa"
levels = ["off", "on"]
[[workload]]
name = "copy"
command = ["sh", "-c", "head -c 20000000 /dev/zero > copy && echo rate: $(wc -c < copy)"]
[[workload.metric]]
name = "copied"
unit = "bytes"
better = "higher"
pattern = "rate: {}"
"#;

#[test]
fn guests_of_qemu_run_together_and_their_memory_is_found() {
    let lab = Lab::open();
    fs::write(lab.path("two.toml"), WITH_QEMU).expect("written");
    let output = lab.run(&["study", "run", "two.toml", "--quiet"]);
    let errors = text(&output.stderr);
    if code(&output) == 3 && std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none() {
        eprintln!("NOT RUN: no guest can be booted here: {errors}");
        return;
    }
    assert_eq!(code(&output), 0, "{errors}");
    let journal = lab.result("journal.jsonl");
    let samples: Vec<&str> =
        journal.lines().filter(|line| line.contains(r#""entry":"sample""#)).collect();
    assert_eq!(samples.len(), 2, "{journal}");
    for sample in samples {
        // Both guests wrote 20 MB, and both have their memory on a node of this machine.
        assert!(sample.contains(r#""value":40000000.0"#), "{sample}");
        assert!(sample.contains("memory of g01") && sample.contains("memory of g02"));
        assert!(sample.contains("node 0: "), "{sample}");
        assert!(!sample.contains("not known"), "{sample}");
    }
}

fn long() -> bool {
    let asked = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    if !asked {
        eprintln!("NOT RUN: a study of Xen's domains, without NUMALAB_LONG=1");
    }
    asked
}

#[test]
fn a_whole_study_of_domains_ends_with_where_each_ones_memory_was() {
    if !long() {
        return;
    }
    let lab = Lab::open();
    let arguments =
        ["study", "run", "guest-scaling", "--guests", "8", "--workload", "dbench", "--blocks", "1"];
    let output = lab.run(&arguments);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let journal = lab.result("journal.jsonl");
    for sample in journal.lines().filter(|line| line.contains(r#""entry":"sample""#)) {
        assert!(sample.contains("memory of g08"), "{sample}");
        assert!(sample.contains("local-memory"), "{sample}");
    }
    assert!(journal.contains("topology exported (xl info -n)"));
}

/// Two guests, each with a node of its own, on machines set up in other ways.
const SETUPS: &str = r#"
name = "setups"
question = "Where do guests lie on machines that are set up in other ways?"
[world.guests]
guests = 2
guests-per-node = 1
[rules]
blocks = 1
warm-ups = 0
aa = false
[[factor]]
name = "setup"
levels = [
    { name = "pools", set = { cpupools = true, pinning = "none" } },
    { name = "two-sockets", set = { machine = "two-sockets" } },
    { name = "fake", set = { numa = "fake=3" } },
]
[[workload]]
name = "copy"
command = ["sh", "-c", "head -c 20000000 /dev/zero > copy && echo rate: $(wc -c < copy)"]
[[workload.metric]]
name = "copied"
unit = "bytes"
better = "higher"
pattern = "rate: {}"
"#;

/// What was found under a treatment, by what was looked at.
fn evidence(journal: &str, treatment: usize) -> BTreeMap<String, String> {
    let entries = journal.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let of_it = entries.filter(|entry: &Value| entry["treatment"] == treatment);
    let all = of_it.flat_map(|entry| entry["evidence"].as_array().cloned().unwrap_or_default());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|one| (text(&one["what"]), text(&one["found"]))).collect()
}

#[test]
fn guests_lie_by_their_cpus_in_pools_and_on_two_sockets_and_faked_nodes_are_seen_through() {
    if !long() {
        return;
    }
    let lab = Lab::open();
    fs::write(lab.path("setups.toml"), SETUPS).expect("written");
    let output = lab.run(&["study", "run", "setups.toml"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let journal = lab.result("journal.jsonl");

    let pools = evidence(&journal, 0);
    let split = &pools["cpupools (xl cpupool-list)"];
    assert_eq!(split, "Pool-node0 has cpus 0,1,2,3, Pool-node1 has cpus 4,5,6,7");
    let sockets = evidence(&journal, 1);
    for (found, per_node) in [(&pools, 4), (&sockets, 8)] {
        for (name, node) in [("g01", 0), ("g02", 1)] {
            assert_eq!(found[&format!("memory of {name}")], format!("node {node}: 49152 frames"));
            let cpus = &found[&format!("cpus of {name}")];
            let on = cpus.strip_prefix("0 on cpu ").and_then(|rest| rest.split_once(','));
            let cpu: u32 = on.expect("a cpu").0.parse().expect("a number");
            assert_eq!(cpu / per_node, node, "{name}: {cpus}");
        }
    }
    assert!(sockets["topology exported (xl info -n)"] == "the same", "{sockets:?}");
    let fake = evidence(&journal, 2);
    assert!(fake["numa"].starts_with("3 nodes; Faking node 0"), "{fake:?}");
    for name in ["g01", "g02"] {
        let memory = &fake[&format!("memory of {name}")];
        // Of the machine's two nodes, not of the three that are made up.
        assert!(memory.starts_with("node 0: ") || memory.starts_with("node 1: "), "{memory}");
    }
}
