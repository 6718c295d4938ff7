//! The part of `/sys` that a program on an emulated machine sees: the machine's nodes, which
//! libnuma reads, and its cpus. QEMU's user mode looks for files in a given directory first (`-L`).

mod cpus;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use numalab_formats::memory_emulator::EmulatedMachine;
use numalab_topology::{CpuId, Id, IdSet, NodeId};

const NODES: &str = "sys/devices/system/node";
const CPUS: &str = "sys/devices/system/cpu";
/// Directories where everything other than the nodes and cpus is linked to the host's files.
const LINKED: [&str; 4] = ["sys", "sys/devices", "sys/devices/system", CPUS];

/// Returns the path of the tree in the directory of a program's files.
pub(super) fn place(directory: &Path) -> PathBuf {
    directory.join("root")
}

pub(super) fn make(directory: &Path, machine: &EmulatedMachine) -> io::Result<()> {
    let root = place(directory);
    for (path, text) in files(machine) {
        let file = root.join(path);
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(file, text + "\n")?;
    }
    for linked in LINKED {
        for entry in fs::read_dir(Path::new("/").join(linked))? {
            let entry = entry?;
            let link = root.join(linked).join(entry.file_name());
            if link.symlink_metadata().is_err() && !is_cpu(&entry.file_name()) {
                symlink(entry.path(), link)?;
            }
        }
    }
    Ok(())
}

/// Returns true for the directory of a cpu, which may be one that only the host has.
fn is_cpu(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns the files with their content.
fn files(machine: &EmulatedMachine) -> BTreeMap<String, String> {
    let cpus: IdSet<CpuId> = (0..).zip(&machine.cpus).map(|(cpu, _)| CpuId(cpu)).collect();
    let nodes = || machine.nodes.iter().enumerate();
    let all: IdSet<NodeId> = nodes().map(|(_, node)| NodeId(node.id)).collect();
    let of_node = |at: usize| -> IdSet<CpuId> {
        let there = (0..).zip(&machine.cpus).filter(|(_, node)| **node == at);
        there.map(|(cpu, _)| CpuId(cpu)).collect()
    };
    let has_memory = nodes().filter(|(_, node)| !node.ranges.is_empty());
    let has_memory: IdSet<NodeId> = has_memory.map(|(_, node)| NodeId(node.id)).collect();
    let has_cpu = nodes().filter(|(at, _)| machine.cpus.contains(at));
    let has_cpu: IdSet<NodeId> = has_cpu.map(|(_, node)| NodeId(node.id)).collect();
    let mut files = BTreeMap::new();
    for (name, set) in [
        ("online", &all),
        ("possible", &all),
        ("has_cpu", &has_cpu),
        ("has_memory", &has_memory),
        ("has_normal_memory", &has_memory),
    ] {
        files.insert(format!("{NODES}/{name}"), set.to_string());
    }
    for name in ["online", "possible", "present"] {
        files.insert(format!("{CPUS}/{name}"), cpus.to_string());
    }
    cpus::add(&mut files, CPUS, machine);
    for (at, node) in nodes() {
        let mut put =
            |name: &str, text| files.insert(format!("{NODES}/node{}/{name}", node.id), text);
        let there = of_node(at);
        put("cpulist", there.to_string());
        put("cpumap", mask(&there));
        put("distance", distances(&machine.latency_ns[at], machine.latency_ns[at][at]));
        let bytes: u64 = node.ranges.iter().map(|(start, end)| end - start).sum();
        put("meminfo", meminfo(node.id, bytes / 1024));
    }
    files
}

/// Formats a set like the kernel's masks: 32-bit words in hexadecimal, the highest first.
fn mask<I: Id>(set: &IdSet<I>) -> String {
    let words = set.mask_words();
    let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

/// Returns latencies in tenths of the local one, as in a SLIT (ACPI 6.5, 5.2.17).
fn distances(latency_ns: &[f64], own_ns: f64) -> String {
    // 254 is the largest distance: 255 would mean unreachable memory.
    let distance =
        |ns: &f64| (10.0 * ns / own_ns.max(f64::MIN_POSITIVE)).round().clamp(10.0, 254.0);
    let distances: Vec<String> = latency_ns.iter().map(|ns| distance(ns).to_string()).collect();
    distances.join(" ")
}

fn meminfo(node: u32, kib: u64) -> String {
    let mut text = String::new();
    for (name, kib) in [("MemTotal", kib), ("MemFree", kib), ("MemUsed", 0)] {
        let _ = writeln!(text, "Node {node} {name}: {kib:>14} kB");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_formatted_like_the_kernels() {
        let mask = |cpus: &[u32]| mask(&cpus.iter().map(|cpu| CpuId(*cpu)).collect::<IdSet<_>>());
        assert_eq!(mask(&[0, 1, 3]), "0000000b");
        assert_eq!(mask(&[0, 33]), "00000002,00000001");
        assert_eq!(mask(&[]), "00000000");
    }

    #[test]
    fn a_distance_is_a_latency_in_tenths_of_the_local_one() {
        assert_eq!(distances(&[89.2, 142.7], 89.2), "10 16");
        assert_eq!(distances(&[5000.0, 100.0], 100.0), "254 10");
    }
}
