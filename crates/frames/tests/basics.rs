//! The guarantees of each call, one behaviour per test.

mod common;

use common::{Bench, two_nodes};
use numalab_frames::{
    AllocError, CpuIndex, Frame, FreeError, FreePlace, NodeIndex, Order, Policy, Request,
};

const CPU0: CpuIndex = CpuIndex(0);
const CPU1: CpuIndex = CpuIndex(1);

#[test]
fn a_frame_comes_from_the_cpus_own_node() {
    let bench = Bench::new(two_nodes(4096));
    let frames = bench.frames();
    let here = frames.alloc_frame(CPU0).unwrap();
    let there = frames.alloc_frame(CPU1).unwrap();
    assert!(here.number() < 4096);
    assert!((4096..8192).contains(&there.number()));
}

#[test]
fn every_frame_is_allocated_once_and_then_memory_is_exhausted() {
    let bench = Bench::new(two_nodes(1000));
    let frames = bench.frames();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..2000 {
        assert!(seen.insert(frames.alloc_frame(CPU0).unwrap()));
    }
    assert_eq!(frames.alloc_frame(CPU0), Err(AllocError::Exhausted { frames: 1 }));
    assert_eq!(frames.alloc_frame(CPU1), Err(AllocError::Exhausted { frames: 1 }));
}

#[test]
fn a_frame_in_another_cpus_cache_is_found_before_memory_is_exhausted() {
    let bench = Bench::new(two_nodes(64));
    let frames = bench.frames();
    let all: Vec<Frame> = (0..128).map(|_| frames.alloc_frame(CPU0).unwrap()).collect();
    // The last row is still cpu 0's magazine, so this frame goes back into it.
    frames.free_frame(CPU0, *all.last().unwrap()).unwrap();
    let found = frames.alloc(CPU1, &Request::FRAME).unwrap();
    assert_eq!(found, *all.last().unwrap());
}

#[test]
fn a_double_free_is_reported_with_its_place() {
    let bench = Bench::new(two_nodes(4096));
    let frames = bench.frames();
    let a = frames.alloc_frame(CPU0).unwrap();
    let b = frames.alloc(CPU0, &Request::order(Order::BLOCK)).unwrap();
    frames.free_frame(CPU0, a).unwrap();
    for cpu in [CPU0, CPU1] {
        let place = FreePlace::Cache(CPU0);
        assert_eq!(frames.free_frame(cpu, a), Err(FreeError::AlreadyFree { frame: a, place }));
    }
    frames.free(CPU0, b, Order::BLOCK).unwrap();
    let place = FreePlace::Cache(CPU0);
    assert_eq!(frames.free_frame(CPU1, b), Err(FreeError::AlreadyFree { frame: b, place }));
    let shared = Frame::new(4095);
    let place = FreePlace::Shared;
    let error = FreeError::AlreadyFree { frame: shared, place };
    assert_eq!(frames.free_frame(CPU0, shared), Err(error));
    assert_eq!(
        frames.free_run(CPU0, Frame::new(4090), 6),
        Err(FreeError::AlreadyFree { frame: Frame::new(4090), place })
    );
}

#[test]
fn exact_and_bind_stay_on_their_nodes() {
    let bench = Bench::new(two_nodes(512));
    let frames = bench.frames();
    let exact = Request::FRAME.policy(Policy::Exact(NodeIndex(1)));
    for _ in 0..512 {
        let frame = frames.alloc(CPU0, &exact).unwrap();
        assert!(frame.number() >= 512);
    }
    assert_eq!(frames.alloc(CPU0, &exact), Err(AllocError::Exhausted { frames: 1 }));
    assert!(frames.alloc_frame(CPU1).unwrap().number() < 512);
}

#[test]
fn orders_up_to_one_gibibyte_are_aligned_and_can_be_freed() {
    let bench = Bench::new(two_nodes(3 << 18));
    let frames = bench.frames();
    for exponent in 0..=18 {
        let order = Order::new(exponent).unwrap();
        let block = frames.alloc(CPU0, &Request::order(order)).unwrap();
        assert_eq!(block.number() % order.frames(), 0, "{order:?}");
        frames.free(CPU0, block, order).unwrap();
    }
    let info = frames.node_info(NodeIndex(0));
    assert_eq!((info.allocated(), info.managed), (0, 3 << 18));
}

#[test]
fn a_run_across_blocks_is_found_when_nothing_else_is_left() {
    let bench = Bench::new(two_nodes(1024));
    let frames = bench.frames();
    let a = frames.alloc(CPU0, &Request::run(200)).unwrap();
    let b = frames.alloc(CPU0, &Request::run(624)).unwrap();
    let c = frames.alloc(CPU0, &Request::run(200)).unwrap();
    let node0 = [(a, 200), (b, 624), (c, 200)];
    for (first, length) in node0 {
        assert!(first.number() + length <= 1024);
    }
    frames.free_run(CPU0, b, 624).unwrap();
    let exact = Request::run(624).policy(Policy::Exact(NodeIndex(0)));
    assert_eq!(frames.alloc(CPU0, &exact), Ok(b));
}
