//! Several cpus at once: no frame is allocated twice, and no request is refused while memory is
//! free.

mod common;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use common::{Bench, Tables, range, ring, two_nodes};
use numalab_frames::{
    AllocError, CpuFences, CpuIndex, Fences, Frame, Frames, NodeIndex, NodeMask, Order, Policy,
    RemoteFences, Request,
};
use rustix::thread::{MembarrierCommand, membarrier};

fn heavy() {
    membarrier(MembarrierCommand::PrivateExpedited).unwrap();
}

/// Returns fences by Linux's `membarrier`, if it is available; for tests in which each cpu is used
/// by one thread.
#[expect(unsafe_code, reason = "the far side of a fence is a promise")]
fn remote() -> Option<RemoteFences> {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).ok()?;
    // SAFETY: 1. `membarrier` returns once every thread has run a full barrier. 2. No test that
    // uses these fences lets two threads name one cpu.
    Some(unsafe { RemoteFences::new(heavy) })
}

fn long() -> bool {
    std::env::var_os("NUMALAB_LONG").is_some()
}

/// The xorshift64* generator: the same operations for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

/// The owner of each frame: 0 for none, otherwise the thread's number.
struct Shadow(Vec<AtomicU8>);

impl Shadow {
    fn new(frames: u64) -> Self {
        Self((0..frames).map(|_| AtomicU8::new(0)).collect())
    }

    fn take(&self, frame: Frame, frames: u64, thread: u8) {
        for frame in frame.number()..frame.number() + frames {
            let owner = &self.0[usize::try_from(frame).unwrap()];
            let before = owner.swap(thread, Ordering::Relaxed);
            assert_eq!(before, 0, "frame {frame} was given to {thread} while {before} had it");
        }
    }

    fn give(&self, frame: Frame, frames: u64, thread: u8) {
        for frame in frame.number()..frame.number() + frames {
            let owner = &self.0[usize::try_from(frame).unwrap()];
            assert_eq!(owner.swap(0, Ordering::Relaxed), thread, "frame {frame}");
        }
    }
}

/// Runs one thread's random operations; `pass` passes frames between the threads.
fn soak<F: Fences>(
    frames: &Frames<'_, F>,
    shadow: &Shadow,
    cpu: u16,
    seed: u64,
    operations: u64,
    pass: &[AtomicU64],
) {
    let mut random = Random(seed);
    let thread = u8::try_from(cpu).unwrap() + 1;
    let cpu = CpuIndex(cpu);
    let mut held: Vec<(Frame, u64)> = Vec::new();
    for _ in 0..operations {
        match random.below(16) {
            0..8 if held.len() < 3000 => {
                let length = match random.below(64) {
                    0 => 512,
                    1 => 1 + random.below(100),
                    2..6 => 1 << random.below(5),
                    _ => 1,
                };
                let request = Request::run(length);
                let found =
                    if length == 1 { frames.alloc_frame(cpu) } else { frames.alloc(cpu, &request) };
                if let Ok(frame) = found {
                    shadow.take(frame, length, thread);
                    held.push((frame, length));
                }
            }
            8 if !held.is_empty() => {
                // Pass a single frame to the other thread, or take one from it and free it.
                let slot = &pass[usize::try_from(random.below(64)).unwrap()];
                let (frame, length) = *held.last().unwrap();
                if length == 1 {
                    held.pop();
                    shadow.give(frame, 1, thread);
                    let other = slot.swap(frame.number() + 1, Ordering::AcqRel);
                    if other != 0 {
                        frames.free_frame(cpu, Frame::new(other - 1)).unwrap();
                    }
                }
            }
            _ if !held.is_empty() => {
                let at = usize::try_from(random.below(held.len() as u64)).unwrap();
                let (frame, length) = held.swap_remove(at);
                // Sometimes only a part of a run.
                let freed = if random.below(4) == 0 { 1 + random.below(length) } else { length };
                shadow.give(frame, freed, thread);
                frames.free_run(cpu, frame, freed).unwrap();
                if freed < length {
                    held.push((Frame::new(frame.number() + freed), length - freed));
                }
            }
            _ => {}
        }
    }
    for (frame, length) in held {
        shadow.give(frame, length, thread);
        frames.free_run(cpu, frame, length).unwrap();
    }
}

fn soak_two_threads<F: Fences + Sync>(fences: F, operations: u64, seed: u64) {
    let per_node = 2800;
    let bench = Bench::new(two_nodes(per_node));
    let frames = bench.frames_with(fences);
    let shadow = Shadow::new(2 * per_node);
    let pass: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for cpu in 0..2_u16 {
            let (frames, shadow, pass) = (&frames, &shadow, &pass);
            let seed = seed.wrapping_mul(2).wrapping_add(u64::from(cpu)) | 1 << 40;
            scope.spawn(move || soak(frames, shadow, cpu, seed, operations / 2, pass));
        }
    });
    for left in pass.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|&left| left != 0) {
        frames.free_frame(CpuIndex(0), Frame::new(left - 1)).unwrap();
    }
    for node in [NodeIndex(0), NodeIndex(1)] {
        let info = frames.node_info(node);
        assert_eq!((info.allocated(), info.free + info.cached), (0, per_node));
        assert_eq!(frames.counters(node).freed_twice, 0);
    }
}

/// Runs 10^7 operations (fewer for aarch64); 5 * 10^8 with NUMALAB_LONG, in parts of 10^8 by
/// `NUMALAB_SOAK_PART` if set.
#[test]
fn random_operations_on_two_threads_allocate_no_frame_twice() {
    let part = std::env::var("NUMALAB_SOAK_PART").ok().and_then(|part| part.parse().ok());
    let parts: Vec<u64> = match (long(), part) {
        (false, _) => vec![0],
        (true, Some(part)) => vec![part],
        (true, None) => (0..5).collect(),
    };
    // Tests for aarch64 run under qemu-user, which is some ten times slower.
    let short = if cfg!(target_arch = "aarch64") { 500_000 } else { 10_000_000 };
    let operations = if long() { 100_000_000 } else { short };
    for seed in parts {
        match remote() {
            Some(fences) => {
                soak_two_threads(fences, operations / 2, seed * 2 + 1);
                soak_two_threads(CpuFences, operations / 2, seed * 2 + 2);
            }
            None => soak_two_threads(CpuFences, operations, seed * 2 + 1),
        }
    }
}

/// Every cpu fills its cache and keeps it; then one cpu must be able to get every remaining frame,
/// under each policy.
#[test]
fn no_policy_fails_while_an_eligible_frame_is_in_any_cache() {
    let cpus = 12_u16;
    let nodes = 3_u16;
    let mask: NodeMask = [NodeIndex(0), NodeIndex(2)].into_iter().collect();
    let policies = [
        (Policy::Local, vec![0, 1, 2]),
        (Policy::Preferred(NodeIndex(2)), vec![0, 1, 2]),
        (Policy::Exact(NodeIndex(1)), vec![1]),
        (Policy::Bind(&mask), vec![0, 2]),
        (Policy::Interleave { nodes: &mask, weights: &[2, 0, 5] }, vec![0, 2]),
        (Policy::Blind, vec![0, 1, 2]),
    ];
    for (policy, eligible) in policies {
        let bench = Bench::new(Tables {
            ranges: (0..nodes).map(|n| range(u64::from(n) * 2048, 2048, n)).collect(),
            zone_limits: vec![u64::MAX],
            cpus: (0..cpus).map(|cpu| NodeIndex(cpu % nodes)).collect(),
            fallback: ring(nodes),
        });
        let frames = bench.frames();
        for cpu in (0..cpus).map(CpuIndex) {
            // A magazine of 63 frames with the rest of a reserved block, and a whole block.
            frames.alloc_frame(cpu).unwrap();
            let block = frames.alloc(cpu, &Request::order(Order::BLOCK));
            if let Ok(block) = block {
                frames.free(cpu, block, Order::BLOCK).unwrap();
            }
        }
        let free: u64 = eligible
            .iter()
            .map(|&n| frames.node_info(NodeIndex(n)))
            .map(|info| info.free + info.cached)
            .sum();
        let request = Request::FRAME.policy(policy);
        let got = (0..).take_while(|_| frames.alloc(CpuIndex(5), &request).is_ok()).count();
        assert_eq!(got as u64, free, "{policy:?}");
    }
}

/// Threads repeatedly take all memory and free it: together they always get all of it.
#[test]
fn threads_that_exhaust_memory_together_get_every_frame() {
    let (threads, total) = (4_u16, 1500_u64);
    let bench = Bench::new(Tables {
        ranges: vec![range(0, 700, 0), range(700, 800, 1)],
        zone_limits: vec![u64::MAX],
        cpus: (0..threads).map(|cpu| NodeIndex(cpu % 2)).collect(),
        fallback: ring(2),
    });
    let frames = bench.frames();
    let shadow = Shadow::new(total);
    for _ in 0..40 {
        let got = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for cpu in 0..threads {
                let (frames, shadow, got) = (&frames, &shadow, &got);
                scope.spawn(move || {
                    while let Ok(frame) = frames.alloc_frame(CpuIndex(cpu)) {
                        shadow.take(frame, 1, 1);
                        got.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(got.into_inner(), total);
        for frame in (0..total).map(Frame::new) {
            shadow.give(frame, 1, 1);
            frames.free_frame(CpuIndex((frame.number() % 4).try_into().unwrap()), frame).unwrap();
        }
    }
}

/// Tells the other threads to stop when its own ends, even by a panic.
struct StopAtEnd<'a>(&'a AtomicU8);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(2, Ordering::Release);
    }
}

/// A frame that stays free must be found although blocks move between lists all the time.
#[test]
fn a_free_frame_is_found_while_others_move_blocks_between_lists() {
    let bench = Bench::new(two_nodes(512));
    let frames = bench.frames();
    let exact = Request::FRAME.policy(Policy::Exact(NodeIndex(1)));
    let stop = AtomicU8::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _stop = StopAtEnd(&stop);
            // Node 1 is left with two frames; this thread takes and frees one of them repeatedly.
            let all: Vec<Frame> =
                (0..511).map(|_| frames.alloc(CpuIndex(1), &exact).unwrap()).collect();
            frames.free_frame(CpuIndex(1), all[100]).unwrap();
            stop.store(1, Ordering::Release);
            while stop.load(Ordering::Acquire) == 1 {
                let frame = frames.alloc(CpuIndex(1), &exact).expect("one of two frames is free");
                frames.free_frame(CpuIndex(1), frame).unwrap();
            }
        });
        let _stop = StopAtEnd(&stop);
        while stop.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..20_000 {
            let frame = frames.alloc(CpuIndex(0), &exact).expect("one of two frames is free");
            frames.free_frame(CpuIndex(0), frame).unwrap();
        }
    });
    assert_eq!(frames.counters(NodeIndex(1)).freed_twice, 0);
    assert!(matches!(
        frames
            .alloc(CpuIndex(0), &Request::order(Order::BLOCK).policy(Policy::Exact(NodeIndex(1)))),
        Err(AllocError::Exhausted { frames: 512 })
    ));
}

/// A caller's mistake: two threads name cpu 0. They may be refused as an interrupt is, but no frame
/// is allocated twice, and none is lost.
#[test]
fn two_threads_that_name_one_cpu_get_no_frame_twice() {
    let total = 4096;
    let bench = Bench::new(two_nodes(total / 2));
    let frames = bench.frames();
    let shadow = Shadow::new(total);
    let rounds = if cfg!(miri) { 3 } else { 300 };
    let ready = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for thread in [1, 2] {
            let (frames, shadow, ready) = (&frames, &shadow, &ready);
            scope.spawn(move || {
                for round in 0..rounds {
                    ready.wait();
                    // Single frames, whole blocks and runs, more than any cache holds.
                    let length = [1, 512, 5][round % 3];
                    let got: Vec<Frame> = (0..1200 / length)
                        .filter_map(|_| match length {
                            1 => frames.alloc_frame(CpuIndex(0)).ok(),
                            _ => frames.alloc(CpuIndex(0), &Request::run(length)).ok(),
                        })
                        .inspect(|&frame| shadow.take(frame, length, thread))
                        .collect();
                    for frame in got {
                        shadow.give(frame, length, thread);
                        frames.free_run(CpuIndex(0), frame, length).unwrap();
                    }
                }
            });
        }
    });
    let infos = [NodeIndex(0), NodeIndex(1)].map(|node| frames.node_info(node));
    assert_eq!(infos.map(|info| info.allocated()), [0, 0]);
    let all = std::iter::from_fn(|| frames.alloc_frame(CpuIndex(1)).ok());
    assert_eq!(all.inspect(|&frame| shadow.take(frame, 1, 3)).count() as u64, total);
}
