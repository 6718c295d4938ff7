//! The bandwidth kernels compared with other programs, alternating with runs of them.
//!
//! The programs use 4 KiB pages and get new ones for every run, so our kernels do the same here:
//! the placement of the pages makes more difference than the loops do.

use crate::machine::{self, Memory, Pages};
use crate::sample::Paired;
use crate::streaming::{self, ARRAY_BYTES};
use numalab_membench::{Access, Clock, Isa, Kernel};
use std::process::Command;

const PAIRS: usize = 7;
/// Number of passes of a run, for both.
const PASSES: usize = 20;
const MEBIBYTE: f64 = 1_048_576.0;

/// A program's run, and our kernel that does the same.
struct Peer {
    program: &'static str,
    /// The name of this run among those of the program.
    variant: String,
    arguments: String,
    kernel: Kernel,
    /// The text before the rate in its output.
    label: &'static str,
    /// Bytes counted as STREAM does, for each unit of the printed rate.
    unit_bytes: f64,
}

/// Compares with likwid-bench's loops for every instruction set that this machine has.
pub fn compare_with_likwid() {
    let loops = [
        ("load", Kernel::Read),
        ("store", Kernel::Write),
        ("store_mem", Kernel::NtWrite),
        ("copy", Kernel::Copy),
        ("copy_mem", Kernel::NtCopy),
        ("stream", Kernel::Triad),
    ];
    let sets = Isa::ALL.into_iter().filter(|isa| isa.is_available());
    let suffixes: Vec<&str> = sets.map(likwid_suffix).collect();
    let peers = loops.iter().flat_map(|&(name, kernel)| {
        suffixes.iter().map(move |suffix| {
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
        })
    });
    compare(&peers.collect::<Vec<_>>());
}

fn likwid_suffix(isa: Isa) -> &'static str {
    match isa {
        Isa::Avx512 => "_avx512",
        Isa::Avx2 => "_avx",
        Isa::Sse2 => "_sse",
        Isa::Neon | Isa::Sve => "",
    }
}

/// Compares with sysbench's memory test, on one block of an array's size.
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

/// Compares with mbw's two copies: its own loop, and glibc's memcpy. It counts a copied byte once.
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
    println!(
        "## Bandwidth compared with {program}, one thread, 4 KiB pages: GB/s as STREAM counts\n"
    );
    println!("| kernel | their variant | ours | theirs | ratio |");
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

/// Makes a run of ours that matches theirs, in the instruction set that a trial finds.
fn ours(kernel: Kernel, clock: &Clock) -> f64 {
    let mut memory = Memory::new(kernel.arrays() * ARRAY_BYTES, Pages::Small);
    let mut stream = streaming::stream(kernel, Access::Sequential, Isa::detect(), memory.lines());
    stream.choose_isa(clock).expect("a steady clock");
    streaming::rate(clock, || (0..PASSES).map(|_| stream.pass()).sum())
}

impl Peer {
    fn is_missing(&self) -> bool {
        self.run().is_none()
    }

    /// Runs it once and reads the rate in GB/s; `None` if it does not run or does not print a rate.
    fn run(&self) -> Option<f64> {
        let words = self.arguments.split_whitespace();
        let output = Command::new(self.program).args(words).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find_map(|line| self.rate_in(line)).map(|rate| rate * self.unit_bytes / 1e9)
    }

    /// Returns the last number of a line that has the label, with any spaces between its words.
    fn rate_in(&self, line: &str) -> Option<f64> {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.join(" ").contains(self.label).then_some(())?;
        words.iter().rev().find_map(|word| word.trim_matches(['(', ')']).parse().ok())
    }
}
