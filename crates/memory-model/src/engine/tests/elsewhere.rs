//! What cores would wait with pages on other nodes, beside what they do.

use super::*;
use crate::arguments::Beside;
use crate::space::Placement;

const CORE: &str = "mode=count,stages=core+owners,caches=1:4K:4:64:cpu:1";
const STORE: &[u8] = &[0x48, 0x89, 0x08]; // mov %rcx,(%rax)

fn interleaved(node: usize) -> Beside {
    Beside::Placed(Placement::Interleave(vec![node]))
}

fn bound() -> Beside {
    Beside::Placed(Placement::Bind(vec![1]))
}

fn there(node: usize) -> There {
    There { node, huge: false }
}

/// What vCPU 0 waits for a line of each 64 bytes at an address, and what longer if they were on the
/// node that is named, in ps.
fn waits(kind: Kind, code: &[u8], address: u64, elsewhere: usize) -> (u64, i64) {
    let engine = engine(CORE).watching_elsewhere(&[interleaved(elsewhere)]);
    // Seven instructions beside the access.
    let flow = block_of(&[code, &[0x90], &[0x90], &[0x90], &[0x90], &[0x90], &[0x90], &[0x90]]);
    for line in 0..4096 {
        engine.block_of(0, flow);
        let access = Access { kind, ..load(0, address + line * 64, 0) };
        engine.access_beside(access, &[there(elsewhere)]);
    }
    (engine.waited_ps(0), engine.later_ps(0)[0])
}

#[test]
fn what_would_be_waited_elsewhere_is_what_is_waited_there() {
    let (own, other) = (MIB, 65 * MIB);
    for (kind, code) in [(Kind::Store, STORE), (Kind::Load, READ), (Kind::Load, FOLLOW)] {
        let (here, longer) = waits(kind, code, own, 1);
        let (there, shorter) = waits(kind, code, other, 0);
        let found = there.cast_signed() - here.cast_signed();
        assert!(found > 1_000_000, "{kind:?}: {here}, {there}");
        // A wait that has not ended yet at the last access may be in one of them.
        assert!((longer - found).abs() <= 250_000, "{kind:?}: {longer}, {found}");
        assert!((shorter + found).abs() <= 250_000, "{kind:?}: {shorter}, {found}");
        assert_eq!(waits(kind, code, own, 0).1, 0, "{kind:?}: where it is");
    }
}

#[test]
fn nothing_is_kept_where_nothing_is_asked_or_no_core_is_modelled() {
    let plain = engine("mode=count,caches=1:4K:4:64:cpu:1").watching_elsewhere(&[bound()]);
    plain.access_beside(store(0, MIB), &[there(1)]);
    assert!(plain.later_ps(0).is_empty());
    assert!(engine(CORE).later_ps(0).is_empty());
}

#[test]
fn a_core_that_is_bound_with_all_finds_its_memory_and_what_others_wrote_near() {
    let engine = engine(CORE).watching_elsewhere(&[bound()]);
    let flow = block_of(&[FOLLOW]);
    for line in 0..5 {
        engine.block_of(0, flow);
        engine.access_beside(load(0, 65 * MIB + line * 64, 0), &[there(1)]);
    }
    let memory = (engine.waited_ps(0), engine.later_ps(0)[0]);
    // Each waits for the one before it, but for its own instruction.
    assert_eq!(memory, (4 * 249_750, -4 * 150_000), "100 ns on node 1, 250 from node 0");
    engine.block_of(1, block_of(&[STORE]));
    engine.access_beside(store(1, 2 * MIB), &[there(1)]);
    engine.block_of(0, flow);
    let before = (engine.waited_ps(0), engine.later_ps(0)[0]);
    engine.access_beside(load(0, 2 * MIB, 0), &[there(1)]);
    let after = (engine.waited_ps(0), engine.later_ps(0)[0]);
    assert!(after.0 - before.0 >= 197_000, "{before:?}, {after:?}");
    // The last of the loads is waited for too.
    let shorter = before.1 - after.1 - 150_000;
    assert!((shorter - (197_000 - 23_000)).abs() <= 1_000, "cores of one group: {shorter}");
}

#[test]
fn neighbours_that_are_packed_find_near_what_the_other_wrote_or_read() {
    let engine = engine_of(
        "cpus=0.1.0.1,memory=64M.64M,latency=100.250/250.100,mode=count,stages=core+owners,\
         caches=1:4K:4:64:cpu:1+2:64K:4:64:group:10",
    );
    let engine = engine.watching_elsewhere(&[Beside::Packed]);
    assert_eq!(
        (0..4).filter_map(|vcpu| engine.packed_node(vcpu)).collect::<Vec<_>>(),
        [0, 0, 1, 1]
    );
    let shorter = |vcpu: usize, address: u64| {
        let before = engine.later_ps(vcpu)[0];
        engine.block_of(vcpu, block_of(&[FOLLOW]));
        engine.access_beside(load(vcpu, address, 0), &[there(0)]);
        // The load is waited for by the next one.
        engine.block_of(vcpu, block_of(&[FOLLOW]));
        engine.access_beside(load(vcpu, address, 0), &[there(0)]);
        before - engine.later_ps(vcpu)[0]
    };
    engine.block_of(0, block_of(&[STORE]));
    engine.access_beside(store(0, 2 * MIB), &[there(0)]);
    assert!(
        (shorter(1, 2 * MIB) - 174_000).abs() <= 1_000,
        "from the other node, and in its group"
    );
    shorter(0, 3 * MIB);
    assert!((shorter(1, 3 * MIB) - 240_000).abs() <= 1_000, "250 from memory, 10 from their cache");
    let longer = -shorter(3, 3 * MIB);
    assert!((longer - 240_000).abs() <= 1_000, "vCPU 1, which has it, is on the other node then");
}

/// What vCPU 0 waits for a load of each of 32 MiB's pages, from frames that leave room for huge pages
/// or do not, and what longer if all that could be were huge pages, in ps.
fn waits_for_pages(frames: u64) -> (u64, i64) {
    let engine = engine("mode=count,stages=core+tlb,caches=1:4K:4:64:cpu:1");
    let engine = engine.watching_elsewhere(&[Beside::Huge]);
    let flow = block_of(&[FOLLOW]);
    for page in (0..1 << 13).map(|page: u64| page * 4097 % (1 << 13)) {
        let virtual_address = (1 << 40) + page * 4096;
        engine.block_of(0, flow);
        let access = load(0, frames + page * 4096, 0);
        engine
            .access_beside(Access { virtual_address, ..access }, &[There { node: 0, huge: true }]);
    }
    (engine.waited_ps(0), engine.later_ps(0)[0])
}

#[test]
fn what_huge_pages_would_save_is_what_they_do() {
    let (small, longer) = waits_for_pages(4096);
    let (huge, same) = waits_for_pages(2 * MIB);
    let saved = huge.cast_signed() - small.cast_signed();
    assert!(saved < -1_000_000, "{small}, {huge}");
    assert!((longer - saved).abs() <= saved.abs() / 10, "{longer}, {saved}");
    assert!(same.abs() <= small.cast_signed() / 100, "{same}: they are huge pages");
}
