//! The frame allocator's first test: threads that fill an arena each by first touch, and then read
//! it at random places. Both are timed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;

use numalab_kernel::plan::Plan;
use numalab_marks::mark;
use numalab_membench::{Barrier, Random};
use ostd::mm::io::util::HasVmReaderWriter;
use ostd::mm::{FrameAllocOptions, HasPaddr, Segment};
use ostd::prelude::println;
use ostd::sync::SpinLock;

use super::FRAME;
use crate::physical::Words64;
use crate::times::Moment;
use crate::words::Words;
use crate::{Failure, cpus, machine};

/// The test's original figures: two threads, 4 GiB each, 20 million reads.
const THREADS: u32 = 2;
const SIZE_BYTES: u64 = 4 << 30;
const READS: u64 = 20_000_000;
/// Size of a cache line in bytes.
const LINE: usize = 64;

/// The work of one thread.
#[derive(Clone, Copy)]
struct Size {
    pieces: usize,
    piece_frames: usize,
    reads: u64,
    seed: u64,
}

/// The results of one thread.
struct Thread {
    start: Moment,
    touched: Moment,
    end: Moment,
    local: u64,
    remote: u64,
}

/// Runs the requested number of times.
#[inline(never)]
pub fn run(words: &Words, plan: &'static Plan) -> Result<(), Failure> {
    let command = &words.command;
    let threads = command.threads.unwrap_or(THREADS) as usize;
    let places = cpus::chosen(plan, threads);
    if places.len() < threads {
        return Err(alloc::format!("{threads} threads: expected as many cpus"));
    }
    let piece_frames = 1 << command.order;
    let bytes = command.size_bytes.unwrap_or(SIZE_BYTES) as usize;
    let pieces = bytes.div_ceil(piece_frames * FRAME);
    let reads = command.count.unwrap_or(READS);
    let (mut sum_s, mut local, mut remote) = (0.0, 0, 0);
    for index in 0..command.runs {
        // The emulator's report lists the accesses of each run separately.
        mark::phase(u8::try_from(index).unwrap_or(u8::MAX));
        let seed = command.seed + u64::from(index);
        let threads = one(plan, &places, Size { pieces, piece_frames, reads, seed })?;
        let start = threads.iter().map(|thread| thread.start).min();
        let end = threads.iter().map(|thread| thread.end).max();
        let elapsed_ns = start.zip(end).map_or(0.0, |(start, end)| end.since_ns(start));
        println!("Run #{}: {:.9} s", index + 1, elapsed_ns / 1e9);
        for (thread, place) in threads.iter().zip(&places) {
            println!(
                "  cpu {}: touch {:.0} ns, read {:.0} ns, {} frames local, {} remote",
                place,
                thread.touched.since_ns(thread.start),
                thread.end.since_ns(thread.touched),
                thread.local,
                thread.remote
            );
            local += thread.local;
            remote += thread.remote;
        }
        sum_s += elapsed_ns / 1e9;
    }
    println!("time elapsed: {:.9} s", sum_s / f64::from(command.runs));
    println!("frames local: {:.4} %", 100.0 * local as f64 / (local + remote).max(1) as f64);
    Ok(())
}

fn one(plan: &'static Plan, places: &[usize], size: Size) -> Result<Vec<Thread>, Failure> {
    let barrier = Barrier::new(u32::try_from(places.len()).unwrap_or(u32::MAX));
    let found = Arc::new(SpinLock::<Vec<_>>::new(Vec::with_capacity(places.len())));
    let told = found.clone();
    cpus::on(plan, places, move |place| {
        let thread = thread(plan, place, size, &barrier);
        told.lock().push((place, thread));
    });
    let mut found = core::mem::take(&mut *found.lock());
    found.sort_by_key(|(place, _)| places.iter().position(|of| of == place));
    let refused = "an arena was refused: expected more memory, or a smaller size";
    found.into_iter().map(|(_, thread)| thread.ok_or_else(|| refused.into())).collect()
}

fn thread(plan: &Plan, place: usize, size: Size, barrier: &Barrier) -> Option<Thread> {
    let mut pieces: Vec<Segment<()>> = Vec::with_capacity(size.pieces);
    // No thread gives up at this barrier.
    let _ = barrier.wait();
    let start = Moment::now();
    for _ in 0..size.pieces {
        let piece = FrameAllocOptions::new().zeroed(false).alloc_segment(size.piece_frames).ok()?;
        touch(&piece, size.piece_frames * FRAME);
        pieces.push(piece);
    }
    let touched = Moment::now();
    black_box(random_reads(&pieces, size, place));
    let end = Moment::now();
    let home = plan.cpu_nodes.get(place).map(|node| usize::from(node.0));
    let frames = pieces
        .iter()
        .flat_map(|piece| (0..size.piece_frames).map(|frame| piece.paddr() + frame * FRAME));
    let (mut local, mut remote) = (0, 0);
    for addr in frames {
        match machine::node_of(plan, addr) == home {
            true => local += 1,
            false => remote += 1,
        }
    }
    Some(Thread { start, touched, end, local, remote })
}

/// Writes a word of every line: the first touch.
#[inline(never)]
fn touch(piece: &Segment<()>, bytes: usize) {
    for line in 0..bytes / LINE {
        // No word crosses the end of a piece.
        let _ = piece.writer().skip(line * LINE).write_once(&1_u64);
    }
}

/// Returns the sum of words at random places.
#[inline(never)]
fn random_reads(pieces: &[Segment<()>], size: Size, place: usize) -> u64 {
    let words = Words64::of(pieces, size.piece_frames * FRAME);
    let mut random = Random::new(size.seed, place as u64);
    (0..size.reads).fold(0, |sum, _| sum.wrapping_add(words.read(random.below(words.len()))))
}
