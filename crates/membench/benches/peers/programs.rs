//! The bandwidth kernels beside other programs, in turn with runs of them.
//!
//! They use 4 KiB pages and get new ones for every run, so here ours do too: where the pages
//! happen to lie makes more of a difference than the loops do.

use crate::machine::{self, Memory, Pages};
use crate::sample::Paired;
use crate::streaming::{self, ARRAY_BYTES};
use numalab_membench::{Access, Clock, Isa, Kernel};
use std::process::Command;

const PAIRS: usize = 7;
/// Passes of a run, theirs and ours.
const PASSES: usize = 20;
const MEBIBYTE: f64 = 1_048_576.0;

/// A program's run, and which kernel of ours does the same.
struct Peer {
    program: &'static str,
    /// What tells this run from others of the program.
    variant: String,
    arguments: String,
    kernel: Kernel,
    /// What comes before the rate in its output.
    label: &'static str,
    /// Bytes counted as STREAM does, for each unit of the rate printed.
    unit_bytes: f64,
}

/// likwid-bench's loops for the widest instruction set that it and this machine have.
pub fn compare_with_likwid() {
    let suffix = match Isa::detect() {
        Isa::Avx512 => "_avx512",
        Isa::Avx2 => "_avx",
        Isa::Sse2 => "_sse",
        Isa::Neon | Isa::Sve => "",
    };
    let loops = [
        ("load", Kernel::Read),
        ("store", Kernel::Write),
        ("store_mem", Kernel::NtWrite),
        ("copy", Kernel::Copy),
        ("copy_mem", Kernel::NtCopy),
        ("stream", Kernel::Triad),
    ];
    compare(&loops.map(|(name, kernel)| {
        let variant = format!("{name}{suffix}");
        let bytes = ARRAY_BYTES * kernel.arrays();
        Peer {
            program: "likwid-bench",
            arguments: format!("-t {variant} -w S0:{bytes}B:1 -i {PASSES}"),
            variant,
            kernel,
            label: "MByte/s:",
            unit_bytes: 1e6,
        }
    }));
}

/// sysbench's memory test, on one block of an array's size.
pub fn compare_with_sysbench() {
    let operations = [("read", Kernel::Read), ("write", Kernel::Write)];
    compare(&operations.map(|(operation, kernel)| Peer {
        program: "sysbench",
        variant: operation.to_owned(),
        arguments: format!(
            "memory --threads=1 --memory-block-size={ARRAY_BYTES} --memory-total-size={} \
             --memory-oper={operation} run",
            ARRAY_BYTES * PASSES
        ),
        kernel,
        label: "transferred (",
        unit_bytes: MEBIBYTE,
    }));
}

/// mbw's two copies: a loop of its own, and glibc's memcpy. It counts a copied byte once.
pub fn compare_with_mbw() {
    let copies =
        [("-t1", "AVG Method: DUMB", Kernel::Copy), ("-t0", "AVG Method: MEMCPY", Kernel::NtCopy)];
    compare(&copies.map(|(test, label, kernel)| Peer {
        program: "mbw",
        variant: label.rsplit(' ').next().unwrap_or_default().to_owned(),
        arguments: format!("-q {test} -n {PASSES} {}", ARRAY_BYTES >> 20),
        kernel,
        label,
        unit_bytes: 2.0 * MEBIBYTE,
    }));
}

fn compare(peers: &[Peer]) {
    let clock = machine::clock();
    let program = peers[0].program;
    println!("## Bandwidth beside {program}, one thread, 4 KiB pages: GB/s as STREAM counts\n");
    println!("| kernel | theirs is | ours | theirs | ratio |");
    println!("|---|---|---|---|---|");
    for Peer { kernel, variant, .. } in peers.iter().filter(|peer| peer.is_missing()) {
        println!("| {kernel} | {variant} | not compared: {program} is missing or failed | | |");
    }
    for peer in peers.iter().filter(|peer| !peer.is_missing()) {
        let Peer { kernel, variant, .. } = peer;
        let paired =
            Paired::take(PAIRS, || ours(*kernel, &clock), || peer.run().unwrap_or(f64::NAN));
        let (ours, theirs, ratio) = (paired.ours(2), paired.theirs(2), paired.ratio());
        println!("| {kernel} | {variant} | {ours} | {theirs} | {ratio} |");
    }
    println!();
}

/// A run like theirs.
fn ours(kernel: Kernel, clock: &Clock) -> f64 {
    let mut memory = Memory::new(kernel.arrays() * ARRAY_BYTES, Pages::Small);
    let mut stream = streaming::stream(kernel, Access::Sequential, Isa::detect(), memory.lines());
    streaming::rate(clock, || (0..PASSES).map(|_| stream.pass()).sum())
}

impl Peer {
    fn is_missing(&self) -> bool {
        self.run().is_none()
    }

    /// Runs it once and reads the rate, in GB/s; `None` if it does not run or print one.
    fn run(&self) -> Option<f64> {
        let words = self.arguments.split_whitespace();
        let output = Command::new(self.program).args(words).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find_map(|line| self.rate_in(line)).map(|rate| rate * self.unit_bytes / 1e9)
    }

    /// The last number of a line that has the label, whatever the spaces between its words.
    fn rate_in(&self, line: &str) -> Option<f64> {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.join(" ").contains(self.label).then_some(())?;
        words.iter().rev().find_map(|word| word.trim_matches(['(', ')']).parse().ok())
    }
}
