//! The ordering rules, over every interleaving within a bound on preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p numalab-frames --release --test loom`; two preemptions per
//! execution by default (one if a run is taken from two rows), one more with `NUMALAB_LONG=1`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use numalab_frames::{
    CpuFences, CpuIndex, Frame, Frames, FreeError, Machine, MemoryRange, NodeIndex, Order, Policy,
    RangeError, RangeState, Request, Word,
};

type Shared = Arc<Frames<'static>>;

const CPU0: CpuIndex = CpuIndex(0);
const CPU1: CpuIndex = CpuIndex(1);

/// Returns one node with two cpus; the metadata of one execution is leaked.
fn machine(frames: u64) -> Shared {
    of_ranges(vec![range(0, frames, RangeState::Online)])
}

fn range(start: u64, frames: u64, state: RangeState) -> MemoryRange {
    MemoryRange { start: Frame::new(start), frames, node: NodeIndex(0), state }
}

fn of_ranges(ranges: Vec<MemoryRange>) -> Shared {
    let order: &'static [NodeIndex] = &[NodeIndex(0)];
    let machine = Machine {
        ranges: ranges.leak(),
        zone_limits: &[u64::MAX],
        cpus: &[NodeIndex(0), NodeIndex(0)],
        fallback: vec![order].leak(),
    };
    let words = machine.metadata_words().unwrap();
    let metadata: Vec<Word> = (0..words).map(|_| Word::new(0)).collect();
    Arc::new(Frames::new(machine, metadata.leak(), CpuFences).unwrap())
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    model_within(2, run);
}

/// Runs `model` with this default number of preemptions, for the calls with the most steps.
fn model_within(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let long = std::env::var_os("NUMALAB_LONG").is_some();
    builder.preemption_bound = Some(preemptions + usize::from(long));
    builder.max_branches = 20_000;
    builder.check(run);
}

/// Runs the closures on both cpus at once.
fn both<A: 'static, B>(
    frames: &Shared,
    first: impl FnOnce(&Frames<'static>) -> A + 'static,
    second: impl FnOnce(&Frames<'static>) -> B,
) -> (A, B) {
    let shared = Arc::clone(frames);
    let other = thread::spawn(move || first(&shared));
    let mine = second(frames);
    (other.join().unwrap(), mine)
}

fn all_is_free(frames: &Frames<'_>) {
    let info = frames.node_info(NodeIndex(0));
    assert_eq!((info.allocated(), info.free + info.cached), (0, info.managed));
    assert_eq!(frames.counters(NodeIndex(0)).freed_twice, 0);
}

/// Freeze against enter: one cpu refills with everything while the other must still get a frame.
#[test]
fn two_cpus_get_the_last_two_frames() {
    model(|| {
        let frames = machine(2);
        let (a, b) = both(&frames, |f| f.alloc_frame(CPU0), |f| f.alloc_frame(CPU1));
        assert_ne!(a.unwrap(), b.unwrap());
    });
}

/// The only frame is taken from and returned to one cpu's magazine while the other takes caches
/// back.
#[test]
fn a_magazine_is_taken_back_while_its_cpu_uses_it() {
    model(|| {
        let frames = machine(1);
        let held = Arc::new(AtomicU64::new(0));
        let first = frames.alloc_frame(CPU0).unwrap();
        let here = Arc::clone(&held);
        let use_it = |frames: &Frames<'static>, cpu, held: &AtomicU64| {
            if let Ok(frame) = frames.alloc_frame(cpu) {
                assert_eq!(held.swap(1, Ordering::Relaxed), 0, "allocated twice");
                held.store(0, Ordering::Relaxed);
                frames.free_frame(cpu, frame).unwrap();
            }
        };
        both(
            &frames,
            move |f| {
                f.free_frame(CPU0, first).unwrap();
                use_it(f, CPU0, &here);
            },
            |f| use_it(f, CPU1, &held),
        );
        all_is_free(&frames);
    });
}

/// Count against bits, and the listing of a block whose count two cpus raise from 0.
#[test]
fn two_frees_into_an_empty_block_make_both_frames_available() {
    model(|| {
        let frames = machine(2);
        let (a, b) = (frames.alloc_frame(CPU0).unwrap(), frames.alloc_frame(CPU1).unwrap());
        both(&frames, move |f| f.free_frame(CPU1, a), |f| f.free_frame(CPU0, b)).0.unwrap();
        all_is_free(&frames);
        frames.alloc_frame(CPU0).unwrap();
        frames.alloc_frame(CPU0).unwrap();
    });
}

/// A free into a block while another cpu takes the block's last frame: its removal from the lists
/// races with the free's insertion into them.
#[test]
fn a_frame_freed_while_its_block_leaves_the_lists_is_found() {
    model(|| {
        let frames = machine(2);
        let a = frames.alloc_frame(CPU0).unwrap();
        both(&frames, move |f| f.free_frame(CPU1, a).unwrap(), |f| f.alloc_frame(CPU0).unwrap());
        // One frame is free, and must be found.
        frames.alloc_frame(CPU1).unwrap();
    });
}

/// Two frees into a block that is on no list: the one that raises its count from 0 has not moved
/// the block yet when the other has returned. Nothing is cached, because the requests name the
/// node.
#[test]
fn a_freed_frame_is_found_before_the_free_that_lists_its_block_continues() {
    model(|| {
        let frames = machine(2);
        let exact = Request::FRAME.policy(Policy::Exact(NodeIndex(0)));
        let a = frames.alloc(CPU0, &exact).unwrap();
        let b = frames.alloc(CPU0, &exact).unwrap();
        both(
            &frames,
            move |f| f.free_frame(CPU1, b).unwrap(),
            move |f| {
                f.free_frame(CPU0, a).unwrap();
                f.alloc(CPU0, &exact).expect("its own frame is free");
            },
        );
    });
}

/// A run is claimed, but its frames turn out to be taken: the claim, which is given back, must not
/// hide the neighbouring frames from a refusal, which waits for the claimant. Of frames 0 to 2, the
/// run can only be 0 and 1.
#[test]
fn a_claim_that_is_given_back_hides_no_frame() {
    model(|| {
        let frames = machine(3);
        let exact = Policy::Exact(NodeIndex(0));
        let run = Request::order(Order::new(1).unwrap()).policy(exact);
        let (run, second) = both(
            &frames,
            move |f| f.alloc(CPU1, &run),
            move |f| {
                let frame = Request::FRAME.policy(exact);
                f.alloc(CPU0, &frame).unwrap();
                f.alloc(CPU0, &frame)
            },
        );
        assert!(run.is_ok() || second.is_ok(), "two frames are free");
    });
}

/// A run is freed into two rows of a block while the other cpu takes single frames from it.
#[test]
fn a_run_freed_against_a_run_taken_keeps_counts_and_bits_in_step() {
    model_within(1, || {
        let frames = machine(66);
        let run = frames.alloc(CPU0, &Request::run(66)).unwrap();
        let (_, got) = both(
            &frames,
            move |f| f.free_run(CPU0, run, 66).unwrap(),
            |f| f.alloc(CPU1, &Request::run(3)),
        );
        if let Ok(three) = got {
            frames.free_run(CPU1, three, 3).unwrap();
        }
        all_is_free(&frames);
        frames.alloc(CPU1, &Request::run(66)).unwrap();
    });
}

/// Two cpus want the only whole block; meanwhile one frees it into its own cache.
#[test]
fn a_whole_block_has_one_owner() {
    model(|| {
        let frames = machine(512);
        let block = Request::order(Order::BLOCK);
        let mine = frames.alloc(CPU0, &block).unwrap();
        let (_, other) = both(
            &frames,
            move |f| f.free(CPU0, mine, Order::BLOCK).unwrap(),
            move |f| f.alloc(CPU1, &Request::order(Order::BLOCK)),
        );
        if let Ok(other) = other {
            frames.free(CPU1, other, Order::BLOCK).unwrap();
        }
        all_is_free(&frames);
        frames.alloc(CPU1, &block).unwrap();
    });
}

/// Two cpus bring one range online: one is refused, whenever it comes, and each frame is free once.
#[test]
fn a_range_comes_online_once() {
    for frames in [2, 512] {
        model(move || {
            let offline = range(0, frames, RangeState::Offline);
            let shared = of_ranges(vec![offline, range(1024, 1, RangeState::Online)]);
            let online = move |f: &Frames<'static>, cpu| f.online(cpu, Frame::new(0), frames);
            let (one, two) = both(&shared, move |f| online(f, CPU0), |f| online(f, CPU1));
            let again = RangeError::StateAlready { frame: Frame::new(0) };
            assert!([(Ok(()), Err(again)), (Err(again), Ok(()))].contains(&(one, two)));
            assert_eq!(shared.node_info(NodeIndex(0)).managed, frames + 1);
            all_is_free(&shared);
            let run = shared.alloc(CPU0, &Request::run(frames)).unwrap();
            shared.free_run(CPU1, run, frames).unwrap();
            all_is_free(&shared);
        });
    }
}

/// Of two frees of one frame, exactly one is accepted, in every interleaving.
#[test]
fn one_of_two_frees_of_a_frame_is_refused() {
    model(|| {
        let frames = machine(70);
        // The frame is not in the row of any magazine, and its block is not reserved.
        let a = frames.alloc(CPU0, &Request::run(70)).unwrap();
        let (one, two) = both(&frames, move |f| f.free_frame(CPU0, a), |f| f.free_frame(CPU1, a));
        assert!(matches!(
            (one, two),
            (Ok(()), Err(FreeError::AlreadyFree { .. }))
                | (Err(FreeError::AlreadyFree { .. }), Ok(()))
        ));
    });
}
