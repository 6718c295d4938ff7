//! Reads every sysfs tree of the corpus, compares it with the output of hwloc and lscpu and with
//! the corpus's manifest, and exhausts the frame allocator on each.

mod console;
mod expected;
mod fallback;
mod lscpu;
mod manifest;
mod tree;
mod xml;

use std::fs;
use std::path::Path;
use std::thread;

use expected::Comparison;
use manifest::Entry;
use numalab_host::{MachineReading, Root, read_machine_and_devices};
use numalab_topology::Machine;

/// Outputs that differ for a good reason: file, the part that is not compared, reason.
const INTENDED: [(&str, &str, &str); 10] = [
    (
        "16amd64-8n2c-cpusets.console",
        "the rest of the machine",
        "hwloc shows what the copied process's cpuset allowed; a copied tree is read for its whole machine",
    ),
    ("16amd64-8n2c-cpusets-xml.xml", "the rest of the machine", "as above"),
    ("32amd64-4s2n4c-cgroup2.xml", "the rest of the machine", "as above, by a control group"),
    (
        "8em64t-2s2ca2c-buggynuma.console",
        "nodes",
        "hwloc drops all nodes since each claims every cpu; they are kept as the kernel has them, with findings",
    ),
    ("16em64t-4s2c2t-merge.console", "caches", "hwloc was told to leave them out (--merge)"),
    ("16em64t-4s2c2t-nocaches.console", "caches", "hwloc was told to leave them out (--no-caches)"),
    ("*.xml", "instruction caches", "hwloc was told to leave them out (--no-icaches)"),
    (
        "16ia64-8n2s.console",
        "numbers of packages",
        "two packages each have the same number: they are numbered by their cpus",
    ),
    (
        "lscpu-arm-A510-A710-A715-X3",
        "cores, and sockets but in the physical table",
        "lscpu numbers cores of each type from 0 again, so that they run together",
    ),
    (
        "*",
        "nodes without memory",
        "hwloc shows no node without memory; they are kept, for a cpu's node is one of them",
    ),
];

#[test]
fn every_tree_of_the_corpus_agrees_with_its_expected_output() {
    let Some(corpus) = tree::corpus() else {
        eprintln!("NOT RUN: no corpus (NUMALAB_CORPUS): sysfs trees were not compared");
        return;
    };
    let directory = corpus.join("sysfs");
    let manifest = fs::read_to_string(directory.join("MANIFEST.tsv")).unwrap();
    println!(
        "{:<52} {:>5} {:>5} {:>5} {:>4} {:>6} {:>8} {:>4} {:>4}  compared with",
        "tree", "nodes", "cpus", "cores", "pkgs", "caches", "GiB", "dist", "find"
    );
    let entries = manifest::entries(&manifest);
    let halves = entries.split_at(entries.len() / 2);
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| read_all(&directory, halves.1));
        (read_all(&directory, halves.0), second.join().unwrap())
    });
    let faults = [first.0, second.0].concat();
    let compared = first.1 + second.1;
    println!("\nIntended differences:");
    for (file, what, why) in INTENDED {
        println!("  {file}: {what}: {why}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared >= 30, "only {compared} outputs were compared");
}

/// Reads and compares trees; returns faults and the number of outputs compared.
fn read_all(directory: &Path, entries: &[Entry]) -> (Vec<String>, usize) {
    let mut faults = Vec::new();
    let mut compared = 0;
    for entry in entries {
        let unpacked = tree::unpack(&directory.join("trees").join(&entry.file));
        let root = Root::at(unpacked.path().join(&entry.root));
        let reading = read_machine_and_devices(&root).unwrap();
        faults.extend(entry.compare(&reading.machine));
        faults.extend(fallback::faults(&entry.file, &reading.machine));
        let outputs = compare_outputs(directory, entry, &reading.machine, &mut faults);
        compared += outputs.len();
        print_row(entry, &reading, &outputs);
    }
    (faults, compared)
}

/// Compares with every expected output of the tree; returns their names with counts.
fn compare_outputs(
    directory: &Path,
    entry: &Entry,
    machine: &Machine,
    faults: &mut Vec<String>,
) -> Vec<String> {
    let mut compared = Vec::new();
    for name in &entry.expected {
        let text = fs::read_to_string(directory.join("expected").join(name)).unwrap();
        let comparison = if name.ends_with(".console") {
            console::parse(&text).compare(name, machine)
        } else if name.ends_with(".xml") {
            xml::parse(&text).compare(name, machine)
        } else if name.starts_with("lscpu-") {
            lscpu::compare(name, &text, machine)
        } else {
            continue;
        };
        let Comparison { checks, faults: found } = comparison;
        faults.extend(found);
        compared.push(format!("{name} ({checks} facts)"));
    }
    compared
}

fn print_row(entry: &Entry, reading: &MachineReading, outputs: &[String]) {
    let machine = &reading.machine;
    let outputs = if outputs.is_empty() { "manifest only".to_owned() } else { outputs.join(", ") };
    println!(
        "{:<52} {:>5} {:>5} {:>5} {:>4} {:>6} {:>8.1} {:>4} {:>4}  {outputs}",
        entry.file,
        machine.nodes.len(),
        machine.cpus.len(),
        machine.cores().len(),
        machine.packages().len(),
        machine.caches.len(),
        manifest::gibibytes(machine.memory_bytes()),
        machine.distances.values().len(),
        reading.findings.len(),
    );
}
