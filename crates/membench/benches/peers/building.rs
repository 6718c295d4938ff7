//! How long it takes to build a cycle, beside two other ways.

use crate::machine;
use crate::reference::Reference;
use crate::sample::{Paired, Summary};
use numalab_membench::{Chase, Cycle, Line, LineSize, Pattern};
use std::time::Instant;

pub fn compare(reference: &Reference) {
    let long = std::env::var_os("NUMALAB_LONG").is_some();
    let gibibytes = if long { 4 } else { 1 };
    let memory = machine::memory(gibibytes << 30);
    // SAFETY of the two calls below: `memory` has as many lines as they are told.
    let (start, lines) = (memory.as_mut_ptr().cast::<u8>(), memory.len());
    let pairs = if long { 3 } else { 5 };

    println!("## Building a cycle: s for {gibibytes} GiB of touched memory, one thread\n");
    println!("| pattern | way | s | s/GiB | times as long as ours |");
    println!("|---|---|---|---|---|");
    let scale = (gibibytes) as f64;
    let random = |memory: &mut [Line]| seconds(|| build(Pattern::Random, memory));
    let sattolo = Paired::take(
        pairs,
        || seconds(|| assert_eq!(unsafe { (reference.build_sattolo)(start, lines, 64) }, 1)),
        || random(memory),
    );
    row("random", "ours", &sattolo.theirs(3), scale, "1");
    row(
        "random",
        "Sattolo",
        &sattolo.ours(3),
        scale,
        &sattolo.ratio().to_string(),
    );
    let page_local = Pattern::PageLocal {
        block_bytes: 64 * 4096,
    };
    let groups = Paired::take(
        pairs,
        || {
            seconds(|| {
                assert_eq!(
                    unsafe { (reference.build_groups)(start, lines, 64, 4096) },
                    1
                )
            })
        },
        || seconds(|| build(page_local, memory)),
    );
    row("256 KiB blocks", "ours", &groups.theirs(3), scale, "1");
    row(
        "256 KiB blocks",
        "multichase's",
        &groups.ours(3),
        scale,
        &groups.ratio().to_string(),
    );
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

fn row(pattern: &str, way: &str, taken: &Summary, gibibytes: f64, times: &str) {
    println!(
        "| {pattern} | {way} | {taken} | {:.3} | {times} |",
        taken.median / gibibytes
    );
}
