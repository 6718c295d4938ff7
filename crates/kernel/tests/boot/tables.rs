//! Damaged, missing or wrong tables: the kernel reports them and continues.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_kernel::results::Results;
use numalab_topology::{Machine, Severity};
use tempfile::TempDir;

use crate::qemu::{DONE, Qemu, machine};

/// QEMU's own exit code when it rejects a table.
const NOT_STARTED: i32 = 1;

fn with_tables(tables: &[&Path], extra: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = ["-smp", "2", "-m", "512M"].map(str::to_owned).to_vec();
    for table in tables {
        words.extend(["-acpitable".to_owned(), format!("file={}", table.display())]);
    }
    words.extend(extra.iter().map(|word| (*word).to_owned()));
    words
}

/// Tables of a machine of two nodes, as files.
struct Written {
    directory: TempDir,
}

impl Written {
    fn of(machine: &Machine) -> Self {
        let directory = tempfile::tempdir().expect("made");
        let tables = machine.to_tables().expect("tables");
        for (name, bytes) in [("SRAT", tables.srat), ("SLIT", tables.slit), ("APIC", tables.madt)] {
            fs::write(directory.path().join(name), bytes).expect("written");
        }
        Self { directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn has(results: &Results, severity: Severity, code: &str) -> bool {
    results.findings.iter().any(|finding| finding.severity == severity && finding.code == code)
}

fn corpus(kind: &str) -> Vec<PathBuf> {
    let root = std::env::var_os("NUMALAB_CORPUS").map(PathBuf::from);
    let root = root
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"));
    let entries = fs::read_dir(root.join("tables")).into_iter().flatten();
    let is_mutant = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("mut-") && name.ends_with(&format!("{kind}.bin"))
    };
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("readable").path()).filter(is_mutant).collect();
    files.sort();
    if files.is_empty() {
        eprintln!("NOT RUN: no damaged tables of kind {kind} below {}", root.display());
    }
    files
}

#[test]
fn damaged_affinities_leave_a_working_machine_and_are_reported() {
    let Some(qemu) = Qemu::open() else { return };
    let (mut reporting, mut flat) = (0, 0);
    for file in corpus("SRAT") {
        let boot = qemu.boot(&with_tables(&[&file], &[]), "work=exhaust,guests size=2M");
        if boot.status == Some(NOT_STARTED) {
            eprintln!("{}: QEMU itself refuses it", file.display());
            continue;
        }
        let results = boot.results(DONE);
        let refill = results.refill.as_ref().expect("it came to the end");
        assert_eq!((refill.refused_at, refill.after), (0, refill.before), "{}", file.display());
        reporting += usize::from(!results.findings.is_empty());
        flat += usize::from(results.machine.nodes.len() == 1);
    }
    if reporting > 0 {
        assert!(flat >= 3, "{flat} of {reporting} were flat");
    }
}

#[test]
fn damaged_distances_are_replaced_and_reported() {
    let Some(qemu) = Qemu::open() else { return };
    let written = Written::of(&machine("8", 8, 512 << 20, None));
    for file in corpus("SLIT") {
        let boot = qemu.boot(&with_tables(&[&written.file("SRAT"), &file], &[]), "work=exhaust");
        if boot.status == Some(NOT_STARTED) {
            eprintln!("{}: QEMU itself refuses it", file.display());
            continue;
        }
        let results = boot.results(DONE);
        assert_eq!(results.machine.nodes.len(), 8, "{}", file.display());
        let distance = |from, to| results.machine.distances.get(from, to).expect("known");
        assert!((0..8).all(|node| distance(node, node) == 10), "{}", file.display());
        let is_refused = results.findings.iter().any(|f| f.severity == Severity::Error);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if ["n0", "n2to32", "n-plus1", "diag11"]
            .iter()
            .any(|bad| name.contains(&format!("-{bad}.")))
        {
            assert!(is_refused && distance(0, 7) == 20, "{name}: {:?}", results.findings);
        }
    }
}

#[test]
fn without_tables_the_machine_is_one_node_with_one_cpu() {
    let Some(qemu) = Qemu::open() else { return };
    let words = with_tables(&[], &["-machine", "microvm,acpi=off"]);
    let results = qemu.boot(&words, "work=exhaust,chase size=1M").results(DONE);
    assert!(has(&results, Severity::Warning, "no-tables"), "{:?}", results.findings);
    let boot = results.boot.expect("it booted");
    assert_eq!((boot.nodes, boot.cpus, boot.started), (1, 1, 1));
}

#[test]
fn without_affinities_the_machine_is_one_node_with_all_cpus() {
    let Some(qemu) = Qemu::open() else { return };
    // SeaBIOS then makes a MADT itself, but no SRAT.
    let words = with_tables(&[], &["-machine", "acpi=off"]);
    let results = qemu.boot(&words, "work=exhaust,chase size=1M").results(DONE);
    assert!(has(&results, Severity::Warning, "flat"), "{:?}", results.findings);
    let boot = results.boot.expect("it booted");
    assert_eq!((boot.nodes, boot.cpus, boot.started), (1, 2, 2));
}

#[test]
fn a_cpu_that_does_not_start_is_reported_and_skipped() {
    let Some(qemu) = Qemu::open() else { return };
    // Tables of three cpus for a machine of two.
    let three = machine("256M:2,256M:1", 3, 512 << 20, None);
    let written = Written::of(&three);
    let tables = [written.file("SRAT"), written.file("SLIT"), written.file("APIC")];
    let words = with_tables(&tables.each_ref().map(PathBuf::as_path), &[]);
    let words_of_work = "work=storm,test_numa,exhaust size=2M count=1000 runs=1";
    let results = qemu.boot(&words, words_of_work).results(DONE);
    let dead: Vec<u32> =
        results.machine.cpus.iter().filter(|cpu| !cpu.online).map(|cpu| cpu.id.0).collect();
    assert_eq!(dead, [2]);
    assert!(has(&results, Severity::Warning, "cpu-dead"), "{:?}", results.findings);
    assert_eq!(results.storms[0].cpus, [0, 1]);
    assert_eq!(results.machine.nodes.len(), 2);
}
