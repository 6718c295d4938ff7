//! The chase compared with one in C, and L1 load-to-use latency as a multiple of an addition.

use crate::machine::{self, Memory, Pages};
use crate::reference::Reference;
use crate::sample::{Paired, Summary};
use numalab_membench::{Adds, Chase, Cycle, LineSize, Pattern, Stamp};

/// Compares the two chases on the same cycle in the same memory, window by window.
pub fn compare_with_c(reference: &Reference) {
    const LOADS: u64 = 20_000;
    let clock = machine::clock();
    let mut memory = Memory::new(256 << 20, Pages::Huge);
    let memory = memory.lines();
    let first = memory.as_mut_ptr();
    println!("## Chase: ns per load, windows of {LOADS} loads alternating with a chase in C\n");
    println!("| size KiB | pattern | ours | C -O3 | ratio |");
    println!("|---|---|---|---|---|");
    for (kibibytes, pattern) in [
        (16, Pattern::Random),
        (512, Pattern::Random),
        (4096, Pattern::Random),
        (256 << 10, Pattern::Random),
        (256 << 10, Pattern::PageLocal { block_bytes: 2 << 20 }),
        (256 << 10, Pattern::OneLinePerPage { page_bytes: 4096 }),
        (256 << 10, Pattern::Sequential),
    ] {
        let cycle = Cycle::new(pattern, kibibytes << 10, LineSize::Bytes64, 1).expect("a plan");
        let chase = Chase::build(cycle, memory).expect("enough memory");
        let mut walk = chase.walk();
        // Each chase walks a different half of the cycle, otherwise the second one would find its
        // lines in the caches.
        let mut ahead = chase.walk();
        ahead.loads(chase.cycle().nodes() as u64 / 2);
        let mut at = first.wrapping_byte_add(ahead.offset_bytes()).cast();
        let windows = if kibibytes < 1 << 10 { 2000 } else { 300 };
        let paired = Paired::take(
            windows,
            || walk.window(LOADS).expect("a steady clock").ns_per_load(&clock),
            || {
                let start = Stamp::now();
                // SAFETY: `at` is on the cycle, which the chase keeps in place.
                at = unsafe { (reference.chase)(at, LOADS) };
                clock.ns(Stamp::now().since(start).expect("a steady clock")) / LOADS as f64
            },
        );
        let (ours, theirs, ratio) = (paired.ours(2), paired.theirs(2), paired.ratio());
        println!("| {kibibytes} | {pattern} | {ours} | {theirs} | {ratio} |");
    }
    println!();
}

/// Measures a load's latency in L1 as a multiple of an addition's, alternating between the two.
pub fn load_to_use() {
    const STEPS: u64 = 20_000;
    let clock = machine::clock();
    let mut memory = Memory::new(2 << 20, Pages::Huge);
    let memory = memory.lines();
    println!(
        "## L1 load-to-use in core cycles: alternating windows of {STEPS} loads and additions\n"
    );
    println!("| size KiB | pattern | cycles per load | core GHz |");
    println!("|---|---|---|---|");
    for (kibibytes, pattern) in
        [(4, Pattern::Random), (16, Pattern::Random), (16, Pattern::Sequential)]
    {
        let cycle = Cycle::new(pattern, kibibytes << 10, LineSize::Bytes64, 1).expect("a plan");
        let chase = Chase::build(cycle, memory).expect("enough memory");
        let mut walk = chase.walk();
        let mut speeds = Vec::new();
        let paired = Paired::take(
            2000,
            || walk.window(STEPS).expect("a steady clock").ticks.0 as f64,
            || {
                let adds = Adds::window(STEPS).expect("a steady clock");
                speeds.push(adds.core_cycles_per_ns(&clock));
                adds.ticks.0 as f64
            },
        );
        let speed = Summary::of(speeds, 3);
        println!("| {kibibytes} | {pattern} | {} | {speed} |", paired.ratio());
    }
    println!();
}
