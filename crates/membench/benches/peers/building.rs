//! Time to build a cycle, compared with two other methods.

use crate::machine::{Memory, Pages};
use crate::reference::Reference;
use crate::sample::Paired;
use numalab_membench::{Chase, Cycle, Line, LineSize, Pattern};
use std::ffi::c_int;
use std::time::Instant;

const LINE_BYTES: usize = 64;
/// multichase's default group: 64 pages of 4 KiB.
const GROUP_LINES: usize = 64 * 4096 / LINE_BYTES;

pub fn compare(reference: &Reference) {
    let long = std::env::var_os("NUMALAB_LONG").is_some();
    let gibibytes = if long { 4 } else { 1 };
    let pairs = if long { 3 } else { 5 };
    let mut memory = Memory::new(gibibytes << 30, Pages::Huge);
    let memory = memory.lines();
    let (start, lines) = (memory.as_mut_ptr().cast::<u8>(), memory.len());
    // SAFETY: `memory` has this number of lines, and is not used otherwise meanwhile.
    let sattolo = || unsafe { (reference.build_sattolo)(start, lines, LINE_BYTES) };
    // SAFETY: as above.
    let groups = |group| unsafe { (reference.build_groups)(start, lines, LINE_BYTES, group) };
    let local = Pattern::PageLocal { block_bytes: GROUP_LINES * LINE_BYTES };

    println!("## Building a cycle: s for {gibibytes} GiB of touched memory, one thread\n");
    println!("| order | their method | theirs | ours | ours per GiB | ratio |");
    println!("|---|---|---|---|---|---|");
    let mut row = |order: &str, way: &str, pattern: Pattern, theirs: &dyn Fn() -> c_int| {
        let paired = Paired::take(
            pairs,
            || seconds(|| assert_eq!(theirs(), 1, "memory for their tables")),
            || seconds(|| build(pattern, memory)),
        );
        let (theirs, ours, ratio) = (paired.ours(3), paired.theirs(3), paired.ratio());
        let per_gibibyte = ours.median / gibibytes as f64;
        println!("| {order} | {way} | {theirs} | {ours} | {per_gibibyte:.3} | {ratio} |");
    };
    row("all lines", "Sattolo's", Pattern::Random, &sattolo);
    row("all lines", "multichase's, one group", Pattern::Random, &|| groups(lines));
    row("256 KiB groups", "multichase's", local, &|| groups(GROUP_LINES));
    println!();
}

fn build(pattern: Pattern, memory: &mut [Line]) {
    let size_bytes = size_of_val(memory);
    let cycle = Cycle::new(pattern, size_bytes, LineSize::Bytes64, 1).expect("a plan");
    Chase::build(cycle, memory).expect("enough memory");
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
