//! The timed workloads.

use std::arch::asm;
use std::sync::Barrier;

use super::harness::{Random, Samples, per_op_ns};
use super::subjects::Subject;
use numalab_frames::{CpuIndex, Fences, Frame, Frames, NodeIndex, Order, Request};

/// Number of frames of the bulk workloads: 1 GiB.
const BULK: usize = 1 << 18;

/// Rows of the table, in order.
pub const ROWS: [&str; 9] = [
    "pair of order 0, ns",
    "pair of order 9, ns",
    "1 GiB of order 0: allocate, ns/frame",
    "free in random order, ns/frame",
    "free in random order from another cpu, ns/frame",
    "two threads: pair of order 0, ns",
    "two threads: pair of order 9, ns",
    "two threads, 512 MiB each: allocate, ns/frame",
    "two threads: free in random order, ns/frame",
];

/// Hides the number of a frame from the optimiser. It is passed in a register, as a caller would;
/// `black_box` goes through memory, which adds a store's round trip to every pair.
fn opaque(mut frame: u64) -> u64 {
    // SAFETY: the instruction is empty, and only claims to change the register.
    unsafe { asm!("/* {0} */", inout(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}

/// Times pairs in a separate function for every subject, so that each has all registers available.
#[inline(never)]
fn pairs(subject: &impl Subject, cpu: u16, order: u8, operations: u64) {
    for _ in 0..operations {
        let frame = subject.alloc(cpu, order).expect("memory is free");
        subject.free(cpu, opaque(frame), order);
    }
}

/// Runs one repetition of every workload; `scale` shortens it for slow subjects.
pub fn repeat(subject: &impl Subject, scale: u64, figures: &mut [Samples; ROWS.len()]) {
    let operations = 2_000_000 / scale;
    figures[0].add(per_op_ns(operations, || pairs(subject, 0, 0, operations)));
    let blocks = operations / 4;
    figures[1].add(per_op_ns(blocks, || pairs(subject, 0, 9, blocks)));
    let mut random = Random(0x5eed);
    let mut frames = vec![0; BULK];
    for other in [false, true] {
        let alloc_ns = per_op_ns(BULK as u64, || {
            for frame in &mut frames {
                *frame = subject.alloc(0, 0).expect("memory is free");
            }
        });
        figures[2].add(alloc_ns);
        random.shuffle(&mut frames);
        let free_all = || {
            let cpu = u16::from(other);
            per_op_ns(BULK as u64, || {
                for &frame in &frames {
                    subject.free(cpu, frame, 0);
                }
            })
        };
        let free_ns = if other {
            std::thread::scope(|scope| scope.spawn(free_all).join().expect("no panic"))
        } else {
            free_all()
        };
        figures[if other { 4 } else { 3 }].add(free_ns);
    }
    for (row, order) in [(5, 0), (6, 9)] {
        let operations = operations >> (order / 4);
        let [ns] = together(|cpu, ready| {
            ready.wait();
            [per_op_ns(operations, || pairs(subject, cpu, order, operations))]
        });
        figures[row].add(ns);
    }
    let [alloc_ns, free_ns] = together(|cpu, ready| half_in_bulk(subject, cpu, ready));
    figures[7].add(alloc_ns);
    figures[8].add(free_ns);
}

/// Runs half of the bulk workload in one of two threads; returns the time to allocate a frame and
/// to free it.
fn half_in_bulk(subject: &impl Subject, cpu: u16, ready: &Barrier) -> [f64; 2] {
    let mut frames = vec![0; BULK / 2];
    let each = frames.len() as u64;
    ready.wait();
    let alloc_ns = per_op_ns(each, || {
        for frame in &mut frames {
            *frame = subject.alloc(cpu, 0).expect("memory is free");
        }
    });
    Random(0x5eed + u64::from(cpu)).shuffle(&mut frames);
    ready.wait();
    let free_ns = per_op_ns(each, || {
        for &frame in &frames {
            subject.free(cpu, frame, 0);
        }
    });
    [alloc_ns, free_ns]
}

/// Returns the means of the measurements of two threads at the same time, one as each cpu.
fn together<const N: usize>(measure: impl Fn(u16, &Barrier) -> [f64; N] + Sync) -> [f64; N] {
    let ready = Barrier::new(2);
    let both = std::thread::scope(|scope| {
        let threads = [0, 1].map(|cpu| {
            let (measure, ready) = (&measure, &ready);
            scope.spawn(move || measure(cpu, ready))
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    std::array::from_fn(|at| both.iter().map(|figures| figures[at]).sum::<f64>() / 2.0)
}

/// Counts of wholly free blocks of 2 MiB, and of those that can be allocated.
pub struct Packing {
    pub free_blocks: u64,
    pub allocatable: u64,
    pub refill_ns: f64,
}

fn packing<F: Fences>(frames: &Frames<'static, F>, refill_ns: f64) -> Packing {
    let free_blocks =
        frames.walk().filter(|view| view.free_frames() == 512 || view.cached.is_some()).count();
    let block = Request::order(Order::BLOCK);
    let allocatable = (0..).take_while(|_| frames.alloc(CpuIndex(0), &block).is_ok()).count();
    Packing { free_blocks: free_blocks as u64, allocatable: allocatable as u64, refill_ns }
}

/// Allocates everything in frames of 4 KiB and frees a random half; then frees and allocates a
/// random tenth in each of 47 rounds.
pub fn churn_half<F: Fences>(frames: &Frames<'static, F>) -> Packing {
    let cpu = CpuIndex(0);
    let mut held: Vec<Frame> = std::iter::from_fn(|| frames.alloc_frame(cpu).ok()).collect();
    let mut random = Random(0xf1);
    random.shuffle(&mut held);
    let half = held.split_off(held.len() / 2);
    half.iter().for_each(|&frame| frames.free_frame(cpu, frame).expect("the frame was allocated"));
    let tenth = held.len() / 10;
    let ns = per_op_ns(47 * tenth as u64, || {
        for _ in 0..47 {
            for _ in 0..tenth {
                let last = held.len() - 1;
                held.swap(random.below(last + 1), last);
                frames
                    .free_frame(cpu, held.pop().expect("not empty"))
                    .expect("the frame was allocated");
            }
            held.extend((0..tenth).map_while(|_| frames.alloc_frame(cpu).ok()));
        }
    });
    packing(frames, ns)
}

/// Allocates half of the memory, then replaces frames at random.
pub fn replace_half<F: Fences>(frames: &Frames<'static, F>, replacements: u64) -> Packing {
    let cpu = CpuIndex(0);
    let half = frames.node_info(NodeIndex(0)).managed / 2;
    let mut held: Vec<Frame> = (0..half).map_while(|_| frames.alloc_frame(cpu).ok()).collect();
    let mut random = Random(0xf2);
    let ns = per_op_ns(replacements, || {
        for _ in 0..replacements {
            let at = random.below(held.len());
            frames.free_frame(cpu, held[at]).expect("the frame was allocated");
            held[at] = frames.alloc_frame(cpu).expect("half is free");
        }
    });
    packing(frames, ns)
}
