//! The workload of the original project: each thread fills an arena by first touch, then reads it
//! at random addresses. Both phases are timed.

use alloc::format;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};

use numalab_frames::Policy;
use numalab_kernel::arena_size::ArenaRequest;
use numalab_kernel::event::{Event, Run};
use numalab_kernel::work::{Additive, Generator};
use numalab_marks::mark;
use numalab_membench::{Barrier, Random, random_reads};

use super::{Failure, Lab, arena, cpu_index};
use crate::bare::address;
use crate::bare::meter::{self, Moment, Span};
use crate::bare::window::MOST_CPUS;

/// The original parameters: two threads, 20 million reads each.
const THREADS: u32 = 2;
const READS: u64 = 20_000_000;
/// Number of nodes for which frames are counted separately.
pub const NODES: usize = 64;

struct Thread {
    start: Moment,
    touched: Moment,
    end: Moment,
    held: [u64; NODES],
    failure: Option<Failure>,
}

struct Size {
    pieces: u64,
    piece_frames: u64,
    reads: u64,
}

/// Makes the requested number of runs.
#[inline(never)]
pub fn run(lab: &mut Lab) -> Result<(), Failure> {
    let threads = lab.command.threads.unwrap_or(THREADS) as usize;
    let cpus = lab.dealt(&lab.chosen(), threads);
    if cpus.len() < threads {
        return Err(format!("{threads} threads on {} cpus: expected a cpu for each", cpus.len()));
    }
    let piece_frames = 1 << lab.command.order;
    let machine = &lab.plan.machine;
    let request = ArenaRequest {
        asked_bytes: lab.command.size_bytes,
        free_bytes: machine.memory_bytes(),
        nodes: machine.nodes.len() as u64,
        threads: threads as u64,
        piece_bytes: piece_frames * 4096,
    };
    let bytes = request.bytes().map_err(|error| format!("{error}"))?;
    let pieces = bytes / request.piece_bytes;
    let size = Size { pieces, piece_frames, reads: lab.command.count.unwrap_or(READS) };
    if cpus.iter().any(|&cpu| cpu >= MOST_CPUS) {
        return Err(format!("a cpu above {}: expected one with a window", MOST_CPUS - 1));
    }
    for index in 0..lab.command.runs {
        // The emulator's report then has the accesses of each run separately.
        mark::phase(u8::try_from(index).unwrap_or(u8::MAX));
        one(lab, index, &cpus, &size)?;
    }
    Ok(())
}

fn one(lab: &mut Lab, index: u32, cpus: &[usize], size: &Size) -> Result<(), Failure> {
    let barrier = Barrier::new(u32::try_from(cpus.len()).unwrap_or(u32::MAX));
    let shared = Shared::new(lab.command.seed);
    let threads = {
        let lab: &Lab = lab;
        lab.cpus.collect(cpus, &|place| thread(lab, index, place, size, &barrier, &shared))
    };
    if let Some(failure) = threads.iter().find_map(|thread| thread.failure.clone()) {
        return Err(failure);
    }
    let nodes = lab.plan.machine.nodes.len().min(NODES);
    let local = threads.iter().zip(cpus);
    let local: u64 = local.map(|(thread, &cpu)| thread.held[lab.node_of(cpu)]).sum();
    let all: u64 = threads.iter().flat_map(|thread| thread.held).sum();
    let bytes = size.pieces * size.piece_frames * 4096;
    let touch: Vec<Span> = threads.iter().map(|t| t.touched.since(&t.start)).collect();
    let read: Vec<Span> = threads.iter().map(|t| t.end.since(&t.touched)).collect();
    lab.report.send(&Event::Run(Run {
        index,
        bytes,
        reads: size.reads,
        ticks: elapsed_ticks(&threads),
        local,
        remote: all - local,
        cpus: address::numbers(cpus),
        touch_ticks: meter::ticks(&touch),
        read_ticks: meter::ticks(&read),
        held: threads.iter().map(|thread| thread.held[..nodes].to_vec()).collect(),
        touch_own_ns: meter::own_ns(&touch),
        read_own_ns: meter::own_ns(&read),
        touch_accesses: meter::accesses(&touch),
        read_accesses: meter::accesses(&read),
    }));
    Ok(())
}

/// Returns the ticks from the first thread's start to the last one's end.
fn elapsed_ticks(threads: &[Thread]) -> u64 {
    let start = threads.iter().map(|thread| thread.start.stamp()).min();
    let end = threads.iter().map(|thread| thread.end.stamp()).max();
    let elapsed = start.zip(end).and_then(|(start, end)| end.since(start).ok());
    elapsed.map_or(0, |ticks| ticks.0)
}

fn thread(
    lab: &Lab,
    index: u32,
    place: usize,
    size: &Size,
    barrier: &Barrier,
    shared: &Shared,
) -> Thread {
    let (memory, cpu) = (lab.memory(), cpu_index(place));
    let mut held = [0; NODES];
    // No cpu aborts this barrier.
    let _ = barrier.wait();
    let start = Moment::now(place);
    let policy: Policy<'_> = lab.policy();
    let filled = arena::fill(memory, place, policy, (size.pieces, size.piece_frames), &mut held);
    let arena = match filled {
        Ok(arena) => arena,
        Err(error) => {
            let failure = Some(format!("the arena of cpu {place}: {error}"));
            return Thread { start, touched: start, end: start, held, failure };
        }
    };
    let touched = Moment::now(place);
    let random = Random::new(lab.command.seed + u64::from(index), place as u64);
    let words = arena.words();
    let sum = match lab.command.random {
        Generator::Inline => random_reads(words, size.reads, random),
        Generator::Shared => (0..size.reads).fold(0_u64, |sum, _| {
            let place = shared.next() % words.len() as u64;
            sum.wrapping_add(words[address::index(place)])
        }),
    };
    black_box(sum);
    let end = Moment::now(place);
    let failure = arena.close(memory, cpu).err().map(|error| format!("{error}"));
    Thread { start, touched, end, held, failure }
}

/// One generator for all threads, behind a lock.
struct Shared {
    locked: AtomicBool,
    numbers: core::cell::UnsafeCell<Additive>,
}

// SAFETY: `numbers` is accessed only by the cpu that has set `locked`.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(seed: u64) -> Self {
        let [a, b, c, d, ..] = seed.to_le_bytes();
        let numbers = Additive::new(u32::from_le_bytes([a, b, c, d]));
        Self { locked: AtomicBool::new(false), numbers: core::cell::UnsafeCell::new(numbers) }
    }

    fn next(&self) -> u64 {
        while self.locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: only this cpu has set `locked`.
        let number = unsafe { (*self.numbers.get()).draw() };
        self.locked.store(false, Ordering::Release);
        number.into()
    }
}
