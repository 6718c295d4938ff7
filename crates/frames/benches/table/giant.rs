//! A simulated machine of 64 nodes, 4,096 cpus and 64 TiB, of which only the allocator's metadata
//! exists.

use std::time::Instant;

use super::harness::per_op_ns;
use super::subjects::machine;
use numalab_frames::{CpuFences, CpuIndex, Frames, NodeIndex, Order, Request, Word};

const NODES: u16 = 64;
const CPUS: u16 = 4096;
/// Frames of a node: 1 TiB.
const PER_NODE: u64 = 1 << 28;

/// Sets it up, lets every cpu work, and prints figures.
pub fn run() {
    let cpus = (0..CPUS).map(|cpu| NodeIndex(cpu / (CPUS / NODES))).collect();
    let machine = machine(NODES, PER_NODE, cpus);
    let words = machine.metadata_words().expect("the machine is valid");
    let metadata: Vec<Word> = std::iter::repeat_with(|| Word::new(0)).take(words).collect();
    let start = Instant::now();
    let frames = Frames::new(machine, metadata.leak(), CpuFences).expect("the metadata suffices");
    let init = start.elapsed();
    let gib = f64::from(NODES) * 1024.0;
    println!("## 64 nodes, 4,096 cpus, 64 TiB (simulated map, full fences)\n");
    println!(
        "- metadata {:.2} GiB ({:.1} KiB per GiB); initialised in {:.2} s ({:.1} us per GiB)",
        words as f64 * 8.0 / f64::from(1 << 30),
        words as f64 * 8.0 / 1024.0 / gib,
        init.as_secs_f64(),
        init.as_secs_f64() * 1e6 / gib,
    );
    let request = Request::order(Order::BLOCK);
    let pairs = u64::from(CPUS) * 64;
    let pair_ns = per_op_ns(pairs, || {
        for cpu in (0..CPUS).map(CpuIndex) {
            for _ in 0..64 {
                let frame = frames.alloc_frame(cpu).expect("memory is free");
                assert_eq!(frames.node_of(frame), Some(NodeIndex(cpu.0 / (CPUS / NODES))));
                frames.free_frame(cpu, frame).expect("the frame was allocated");
            }
        }
    });
    println!(
        "- 64 pairs of order 0 on each cpu in turn, each checked to be local: {pair_ns:.1} ns"
    );
    let first_ns = per_op_ns(CPUS.into(), || {
        for cpu in (0..CPUS).map(CpuIndex) {
            frames.alloc(cpu, &request).expect("memory is free");
        }
    });
    println!("- a first block of order 9 on each cpu: {first_ns:.0} ns");
    let start = Instant::now();
    let giants =
        (0..).take_while(|_| frames.alloc(CpuIndex(0), &Request::order(Order::MAX)).is_ok());
    let giants = giants.count();
    let took = start.elapsed();
    println!(
        "- every remaining 1 GiB block, from cpu 0 over all nodes: {giants} in {:.2} s, the \
         last resort over 4,096 caches included",
        took.as_secs_f64()
    );
}
