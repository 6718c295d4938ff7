//! The waits of a core for its accesses in flight.

use super::speeds::Speeds;
use super::stores::Bytes;
use super::*;
use crate::machine::Family;

const CORE: Core = Core {
    misses: 4,
    instructions: 100,
    ns_per_instruction: 0.001,
    prefetch: None,
    writes: None,
    atomic_ns: None,
    branch_ns: Some(0.02),
    timing: None,
};

fn flow(block: &[&[u8]]) -> Option<&'static Flow> {
    let operands = block.iter().map(|bytes| x86::decode(bytes));
    Some(Box::leak(Box::new(Flow::new(operands, &Speeds::of(&CORE)))))
}

/// Begins a block.
fn begin(pipeline: &mut Pipeline, flow: Option<&'static Flow>, now_ps: u64, number: u64) -> u64 {
    pipeline.begin(flow, now_ps, number).at_ps
}

/// Returns the times of an access whose instruction is issued when it can begin.
fn times((issue_ps, done_ps): (u64, u64)) -> Times {
    Times { came_ps: issue_ps, issue_ps, done_ps }
}

/// Returns a load by an instruction.
fn loads(instruction: u64) -> Act {
    Act { by: None, instruction, kind: Kind::Load, bytes: Bytes::new(64, 8) }
}

const MISS: Miss = Miss { goes_back: false, is_far: false };

#[test]
fn a_dependent_load_waits_and_an_independent_one_does_not() {
    let mut pipeline = Pipeline::new(CORE, None);
    // mov (%rax),%rcx; mov (%rcx),%rdx; mov (%rbx),%rsi
    let block = flow(&[&[0x48, 0x8b, 0x08], &[0x48, 0x8b, 0x11], &[0x48, 0x8b, 0x33]]);
    assert_eq!(begin(&mut pipeline, block, 0, 0), 0);
    assert_eq!(pipeline.issue_ps(pipeline.accessor(0), 0), 0);
    pipeline.fill(1, (0, 100), loads(1));
    pipeline.loaded(pipeline.accessor(0), 0, 100);
    assert_eq!(pipeline.issue_ps(pipeline.accessor(2), 2), 2);
    assert_eq!(pipeline.issue_ps(pipeline.accessor(1), 1), 100);
    // The value stays behind the block's end.
    begin(&mut pipeline, flow(&[&[0x48, 0x8b, 0x11]]), 3, 3);
    assert_eq!(pipeline.issue_ps(pipeline.accessor(0), 3), 100);
}

/// With caches without hit times, such loads ended every chain, and the misses after them overlapped.
#[test]
fn a_load_with_a_late_address_is_late_even_if_it_takes_no_time() {
    let mut pipeline = Pipeline::new(CORE, None);
    // mov (%rcx),%rcx
    let block = flow(&[&[0x48, 0x8b, 0x09]]);
    begin(&mut pipeline, block, 0, 0);
    pipeline.loaded(pipeline.accessor(0), 0, 100);
    begin(&mut pipeline, block, 2, 1);
    let issue_ps = pipeline.issue_ps(pipeline.accessor(0), 2);
    assert_eq!(issue_ps, 100);
    pipeline.loaded(pipeline.accessor(0), issue_ps, issue_ps);
    begin(&mut pipeline, block, 4, 2);
    assert_eq!(pipeline.issue_ps(pipeline.accessor(0), 4), 100);
}

#[test]
fn fill_buffers_and_the_reorder_buffer_bound_the_loads_in_flight() {
    let mut pipeline = Pipeline::new(CORE, None);
    for line in 0..4 {
        assert_eq!(pipeline.room_ps((MISS, line), line, line), line);
        pipeline.fill(line, (line, 1000 + line), loads(line));
    }
    assert_eq!(pipeline.room_ps((MISS, 9), 9, 10), 1000, "the first buffer to be free");
    assert_eq!(pipeline.under_way_ps(3, 10), Some(1003));
    assert_eq!(pipeline.under_way_ps(9, 10), None);
    let block = flow(&[&[0x90]]);
    assert_eq!(begin(&mut pipeline, block, 20, 99), 20);
    assert_eq!(begin(&mut pipeline, block, 20, 102), 1002, "no more than 100 ahead of the load");
}

#[test]
fn a_store_that_waits_for_its_line_in_the_store_queue_stops_only_as_many_stores() {
    let of = |family: Family| {
        let core = Core { timing: Some(family.timing(1.0)), ..CORE };
        let mut pipeline = Pipeline::new(core, None);
        // mov %rcx,(%rbx)
        let block = flow(&[&[0x48, 0x89, 0x0b]]);
        begin(&mut pipeline, block, 0, 0);
        pipeline.fill(1, (0, 9000), Act { kind: Kind::Store, ..loads(0) });
        let behind = Act { kind: Kind::Store, by: pipeline.accessor(0), ..loads(1) };
        (0..64).for_each(|_| _ = pipeline.goes_on_ps(behind, false, times((10, 10))));
        let began_ps = begin(&mut pipeline, block, 20, 101);
        [
            began_ps,
            pipeline.comes_ps((101, Kind::Load), 20),
            pipeline.comes_ps((101, Kind::Store), 20),
        ]
    };
    assert_eq!(of(Family::Zen4), [20, 20, 9000], "the 65th store");
    assert_eq!(of(Family::NeoverseN1)[0], 9000, "it stays in the reorder buffer");
}

#[test]
fn fences_and_unknown_blocks_wait_for_everything() {
    for block in [flow(&[&[0x0f, 0xae, 0xe8]]), None] {
        let mut pipeline = Pipeline::new(CORE, None);
        pipeline.fill(7, (0, 500), loads(1));
        assert_eq!(begin(&mut pipeline, block, 10, 2), 500);
    }
}

#[test]
fn instructions_after_an_atomic_read_modify_write_wait_for_it() {
    // lock incl (%rax); mov (%rbx),%rsi
    let add = flow(&[&[0xf0, 0xff, 0x00], &[0x48, 0x8b, 0x33]]);
    let act = |position: usize, kind| {
        let by = add.and_then(|flow| flow.accessors.get(position));
        Act { by, instruction: 1, kind, bytes: Bytes::new(64, 8) }
    };
    let mut plain = Pipeline::new(CORE, None);
    plain.begin(add, 0, 0);
    for kind in [Kind::Load, Kind::Store] {
        assert_eq!(
            plain.goes_on_ps(act(0, kind), false, times((10, 20))),
            20,
            "for each of its accesses"
        );
    }
    let mut longer = Pipeline::new(Core { atomic_ns: Some(5.0), ..CORE }, None);
    longer.begin(add, 0, 0);
    assert_eq!(longer.goes_on_ps(act(0, Kind::Load), false, times((10, 20))), 5020);
    assert_eq!(
        longer.goes_on_ps(act(0, Kind::Store), false, times((30, 40))),
        30,
        "its load took it all"
    );
    assert_eq!(
        longer.goes_on_ps(act(0, Kind::Store), false, times((50, 60))),
        5060,
        "QEMU said no load"
    );
    for pipeline in [&mut plain, &mut longer] {
        assert_eq!(
            pipeline.goes_on_ps(act(1, Kind::Load), false, times((40, 90))),
            40,
            "a load of its own"
        );
        assert_eq!(
            pipeline.goes_on_ps(act(1, Kind::Load), true, times((40, 90))),
            90,
            "another core's line"
        );
    }
}

#[test]
fn a_load_waits_for_the_data_of_the_store_that_it_loads_from() {
    // mov (%rax),%rcx; mov %rcx,(%rbx); mov (%rbx),%rdx; mov (%rdx),%rsi
    let block =
        flow(&[&[0x48, 0x8b, 0x08], &[0x48, 0x89, 0x0b], &[0x48, 0x8b, 0x13], &[0x48, 0x8b, 0x32]]);
    let mut pipeline = Pipeline::new(CORE, None);
    begin(&mut pipeline, block, 0, 0);
    pipeline.fill(1, (0, 100), loads(1));
    let act = |position: usize, kind, address| {
        let bytes = Bytes::new(address, 8);
        let by = block.and_then(|flow| flow.accessors.get(position));
        Act { by, instruction: position as u64 + 1, kind, bytes }
    };
    pipeline.goes_on_ps(act(0, Kind::Load, 64), false, times((0, 100)));
    assert_eq!(
        pipeline.goes_on_ps(act(1, Kind::Store, 512), false, times((1, 6))),
        1,
        "it waits for no one"
    );
    let load = act(2, Kind::Load, 512);
    let takes_ps = load.forwarded(&pipeline).takes_ps(2, 5, None);
    assert_eq!(takes_ps, 103, "a hit behind what was loaded at 100");
    assert_eq!(act(2, Kind::Load, 520).forwarded(&pipeline).takes_ps(2, 5, None), 5);
    pipeline.goes_on_ps(load, false, times((2, 2 + takes_ps)));
    assert_eq!(pipeline.issue_ps(pipeline.accessor(3), 3), 105);
}

#[test]
fn nothing_comes_up_behind_a_mispredicted_branch_before_it_is_decided() {
    // cmp %rcx,(%rax); jne
    let block = flow(&[&[0x48, 0x39, 0x08], &[0x75, 0xfb]]);
    let mut pipeline = Pipeline::new(CORE, None);
    for (mispredicted, expected_ps) in [(false, 4), (true, 120)] {
        begin(&mut pipeline, block, 0, 0);
        pipeline.fill(1, (0, 100), loads(1));
        pipeline.loaded(pipeline.accessor(0), 0, 100);
        if mispredicted {
            pipeline.predicts(Prediction::Wrong);
        }
        assert_eq!(begin(&mut pipeline, block, 4, 3), expected_ps);
    }
    assert_eq!(begin(&mut pipeline, block, 130, 5), 130, "the next one was predicted");
    pipeline.predicts(Prediction::Wrong);
    assert_eq!(begin(&mut pipeline, block, 140, 7), 160, "with nothing under way");
}

#[test]
fn instructions_that_do_not_need_an_address_pass_the_access_that_waits_for_it() {
    let passes = |issue_ps| Pipeline::passes_ps(10, issue_ps);
    assert_eq!(passes(500_000), 10);
    assert_eq!(passes(1_200_000), 200_000, "but no more than so far");
    // mov (%rax),%rcx; mov (%rcx),%rdx, and another block that uses neither
    let block = flow(&[&[0x48, 0x8b, 0x08], &[0x48, 0x8b, 0x11]]);
    let mut pipeline = Pipeline::new(CORE, None);
    begin(&mut pipeline, block, 0, 1);
    pipeline.loaded(pipeline.accessor(0), 0, 100);
    let issue_ps = pipeline.issue_ps(pipeline.accessor(1), 1);
    pipeline.loaded(pipeline.accessor(1), issue_ps, 250);
    assert_eq!(begin(&mut pipeline, flow(&[&[0x90]]), 2, 3), 2);
    assert_eq!(begin(&mut pipeline, flow(&[&[0x90]]), 60, 101), 60);
    assert_eq!(begin(&mut pipeline, flow(&[&[0x90]]), 61, 102), 250, "the buffer is full");
}

#[test]
fn a_chain_that_fills_a_scheduler_keeps_what_follows_waiting() {
    let ends_ps = |family: Family| {
        let core = Core { timing: Some(family.timing(1.0)), ..Core::TYPICAL };
        // mulsd %xmm1,%xmm0
        let chain = [[0xf2, 0x0f, 0x59, 0xc1]; 20];
        let block = Flow::new(chain.iter().map(|bytes| x86::decode(bytes)), &Speeds::of(&core));
        let block: &'static Flow = Box::leak(Box::new(block));
        let mut pipeline = Pipeline::new(core, None);
        (0..12).fold(0, |now_ps, number| {
            pipeline.begin(Some(block), now_ps, number * 20).at_ps + block.takes_ps
        })
    };
    // 240 instructions fit into the reorder buffer, and 97 or 64 of them into the scheduler.
    assert_eq!(ends_ps(Family::Skylake), 120_000);
    assert!(ends_ps(Family::GoldenCove) > 400_000, "{}", ends_ps(Family::GoldenCove));
    assert!(ends_ps(Family::Zen3) > 450_000, "{}", ends_ps(Family::Zen3));
}

#[test]
fn repeated_elements_of_a_line_take_one_entry_of_the_store_queue() {
    let core = Core { timing: Some(Family::Zen4.timing(0.1)), ..Core::TYPICAL };
    let comes_ps = |code: &[u8]| {
        let mut pipeline = Pipeline::new(core, None);
        let flow = Flow::new([x86::decode(code)], &Speeds::of(&core));
        let bytes = Bytes::new(64, 1);
        let store = Act { by: None, instruction: 1, kind: Kind::Store, bytes };
        pipeline.fill(1, (0, 1000), store);
        (0..64).for_each(|_| pipeline.stores(&flow.accessors[0], bytes, (0, 1)));
        pipeline.comes_ps((2, Kind::Store), 10)
    };
    assert_eq!(comes_ps(&[0xf3, 0xaa]), 10, "rep stosb");
    assert_eq!(comes_ps(&[0x88, 0x07]), 1000, "mov %al,(%rdi)");
}
