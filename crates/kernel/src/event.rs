//! The kinds of results: the kernel sends them and the host reads them.

use alloc::string::String;
use alloc::vec::Vec;

use numalab_topology::{Cpu, Finding, MemoryRange, Node};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    Boot(Boot),
    Node(NodeRow),
    /// A cpu, online if it has started.
    Cpu(Cpu),
    /// Free memory of a node.
    Range(MemoryRange),
    /// An unusual or wrong fact.
    Finding(Finding),
    Window(Window),
    /// A run of `test_numa`.
    Run(Run),
    Storm(Storm),
    Stream(Stream),
    Guest(Guest),
    /// Consecutive pieces from one node while memory was exhausted.
    Fill(Fill),
    /// The free frames when memory was exhausted, and after all were freed.
    Refill(Refill),
    /// A piece of the heap dump.
    Heap(Heap),
    Failure {
        work: String,
        message: String,
    },
}

/// The state of the kernel after booting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    pub version: String,
    /// The loader: `pvh` or `multiboot2`.
    pub loader: String,
    pub command: String,
    /// Ticks of the time stamp counter per millisecond.
    pub tsc_khz: u64,
    /// The source of that rate: `cpuid`, `hypervisor`, `pit` or `assumed`.
    pub clock: String,
    /// Ticks from the kernel's first instruction to its first result.
    pub boot_ticks: u64,
    /// `xapic` or `x2apic`.
    pub apic: String,
    /// Size of the largest pages that map memory, in bytes.
    pub page_bytes: u64,
    /// Number of bytes in use in its arena.
    pub arena_bytes: u64,
    /// Number of cpus in the tables.
    pub cpus: u32,
    pub started: u32,
    pub nodes: u32,
    pub seed: u64,
    pub memory_bytes: u64,
    /// True if the emulator is counting.
    pub emulated: bool,
}

/// A node with its rows of the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    /// The node, with its free memory.
    pub node: Node,
    pub distances: Vec<u8>,
    /// The indices of the nodes in its fallback order, starting with itself.
    pub order: Vec<u32>,
}

/// A window of a chase: `loads` loads of one cpu on one node's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    pub cpu: u32,
    pub node: u32,
    /// The size of the chase in bytes.
    pub bytes: u64,
    /// Index in time order.
    pub index: u32,
    /// True unless it is the first window, which warms up.
    pub warm: bool,
    pub loads: u64,
    pub ticks: u64,
    /// Nanoseconds by the cpu's own clock in the emulator; 0 without one.
    pub own_ns: u64,
    /// Accesses to the cpu's own node and to others, by the emulator.
    pub accesses: [u64; 2],
}

/// A run of `test_numa`. Lists have one entry for each thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Index of the run, from 0.
    pub index: u32,
    /// Bytes of each thread's arena.
    pub bytes: u64,
    /// Number of reads of each thread.
    pub reads: u64,
    /// Ticks from the first start to the last end.
    pub ticks: u64,
    /// Frames on their thread's node.
    pub local: u64,
    /// Frames on other nodes.
    pub remote: u64,
    pub cpus: Vec<u32>,
    pub touch_ticks: Vec<u64>,
    pub read_ticks: Vec<u64>,
    /// Frames of each node.
    pub held: Vec<Vec<u64>>,
    /// The time of filling by the cpu's own clock in the emulator; empty without an emulator.
    pub touch_own_ns: Vec<u64>,
    /// The time of reading by the cpu's own clock in the emulator; empty without an emulator.
    pub read_own_ns: Vec<u64>,
    /// Accesses to the own node and to others while filling, counted by the emulator; empty without
    /// one.
    pub touch_accesses: Vec<[u64; 2]>,
    /// Accesses to the own node and to others while reading, counted by the emulator; empty without
    /// one.
    pub read_accesses: Vec<[u64; 2]>,
}

/// A storm: every cpu allocates, touches and frees `rounds` frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Storm {
    /// `storm` or `scaling`.
    pub work: String,
    /// Number of frames of each cpu.
    pub rounds: u64,
    /// Frames on their cpu's node.
    pub local: u64,
    /// Frames on other nodes.
    pub remote: u64,
    pub cpus: Vec<u32>,
    pub ticks: Vec<u64>,
    /// Nanoseconds of each cpu by its own clock in the emulator; empty without an emulator.
    pub own_ns: Vec<u64>,
}

/// Streams of cpus at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// `read`, `write-nt` or `copy`.
    pub kernel: String,
    pub isa: String,
    /// Bytes of each cpu's memory.
    pub size_bytes: u64,
    pub cpus: Vec<u32>,
    /// The node of each cpu's memory.
    pub nodes: Vec<u32>,
    /// Bytes that each cpu requested to move.
    pub bytes: Vec<u64>,
    pub ticks: Vec<u64>,
    /// Nanoseconds of each cpu by its own clock in the emulator; empty without an emulator.
    pub own_ns: Vec<u64>,
}

/// A guest that was built, with its memory by location.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    pub guest: u32,
    pub node: u32,
    /// Frames on the home node.
    pub local: u64,
    /// Frames on other nodes.
    pub remote: u64,
    /// Frames on each node.
    pub held: Vec<u64>,
}

/// Pieces that came consecutively from one node while memory was exhausted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    pub cpu: u32,
    /// Base-2 logarithm of a piece's number of frames.
    pub order: u8,
    pub node: u32,
    pub pieces: u64,
    /// Number of pieces that were still free on nearer nodes.
    pub left_nearer: u64,
}

/// The exhaustion's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refill {
    /// Free frames before.
    pub before: u64,
    /// Free frames when an allocation was refused.
    pub refused_at: u64,
    /// Free frames after all were freed.
    pub after: u64,
}

/// A piece of the heap dump.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heap {
    /// The offset of its bytes in the dump.
    pub offset: u64,
    /// The bytes as hexadecimal digits.
    pub hex: String,
}

impl Boot {
    #[expect(clippy::cast_precision_loss, reason = "2^53 ticks are weeks")]
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * 1e6 / self.tsc_khz.max(1) as f64
    }
}

impl Storm {
    /// Returns the time of each cpu, in nanoseconds.
    pub fn times_ns(&self, boot: &Boot) -> Vec<f64> {
        times_ns(boot, &self.ticks, &self.own_ns)
    }
}

impl Stream {
    /// Returns the time of each cpu, in nanoseconds.
    pub fn times_ns(&self, boot: &Boot) -> Vec<f64> {
        times_ns(boot, &self.ticks, &self.own_ns)
    }
}

/// Returns times by each cpu's own clock in the emulator, otherwise by the time stamp counter.
#[expect(clippy::cast_precision_loss, reason = "2^53 nanoseconds are months")]
fn times_ns(boot: &Boot, ticks: &[u64], own_ns: &[u64]) -> Vec<f64> {
    match own_ns.iter().any(|&ns| ns > 0) {
        true => own_ns.iter().map(|&ns| ns as f64).collect(),
        false => ticks.iter().map(|&ticks| boot.ns(ticks)).collect(),
    }
}

impl Run {
    /// Returns the time from start to end in seconds: by the slowest thread's own clock in the
    /// emulator, in which the threads run in parallel, otherwise by the time stamp counter.
    #[expect(clippy::cast_precision_loss, reason = "2^53 nanoseconds are months")]
    pub fn elapsed_s(&self, boot: &Boot) -> f64 {
        let own = self.touch_own_ns.iter().zip(&self.read_own_ns).map(|(touch, read)| touch + read);
        match own.max() {
            Some(ns) if ns > 0 => ns as f64 / 1e9,
            _ => boot.ns(self.ticks) / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_the_heap_has_the_form_that_explore_reads() {
        let piece = Event::Heap(Heap { offset: 4096, hex: "4e4c".into() });
        let json = serde_json::to_string(&piece).unwrap();
        assert_eq!(json, r#"{"heap":{"offset":4096,"hex":"4e4c"}}"#);
    }
}
