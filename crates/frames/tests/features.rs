//! Hot-plug, domains, physinfo, dumps, adapters, nested calls, refusals.

mod common;

use std::alloc::Layout;
use std::cell::Cell;

use common::{Bench, Tables, range, ring, two_nodes};
use numalab_frames::{
    Affinity, AllocError, CpuFences, CpuIndex, Domain, DomainError, Dump, DumpError, Fences, Frame,
    FramesCell, FreeError, InitError, MemoryRange, NodeIndex, NodeMask, Order, OstdFrames, Owner,
    Policy, RangeError, RangeState, Request, RmmFrames, Word, Yields, ZoneIndex,
};
use proptest::prelude::*;

const CPU0: CpuIndex = CpuIndex(0);
const CPU1: CpuIndex = CpuIndex(1);
const NODE0: NodeIndex = NodeIndex(0);
const NODE1: NodeIndex = NodeIndex(1);

fn cpu0() -> CpuIndex {
    CPU0
}

/// Returns two nodes; node 1 has a range that can be added.
fn with_hotplug() -> Tables {
    let later = MemoryRange { state: RangeState::Offline, ..range(4096, 1024, 1) };
    let mut tables = two_nodes(1024);
    tables.ranges.push(later);
    tables
}

#[test]
fn an_added_range_is_allocated_and_goes_offline_only_when_it_is_free() {
    let bench = Bench::new(with_hotplug());
    let frames = bench.frames();
    let added = Frame::new(4096);
    assert_eq!(frames.node_info(NODE1).managed, 1024);
    assert_eq!(frames.free_frame(CPU0, added), Err(FreeError::Offline { frame: added }));
    frames.online(CPU0, added, 1024).unwrap();
    let again = frames.online(CPU0, added, 1024);
    assert_eq!(again, Err(RangeError::StateAlready { frame: added }));
    let exact = Request::run(1024).policy(Policy::Exact(NODE1));
    let (a, b) = (frames.alloc(CPU0, &exact).unwrap(), frames.alloc(CPU0, &exact).unwrap());
    assert_eq!(a.number().max(b.number()), 4096);
    let in_use = frames.offline(CPU0, added, 1024);
    assert_eq!(in_use, Err(RangeError::InUse { frame: added }));
    frames.free_run(CPU0, added, 1024).unwrap();
    // Moves a frame into a cache, from which `offline` must fetch it.
    let block = Request::order(Order::BLOCK).policy(Policy::Exact(NODE1));
    let block = frames.alloc(CPU1, &block).unwrap();
    frames.free(CPU1, block, Order::BLOCK).unwrap();
    frames.offline(CPU0, added, 1024).unwrap();
    assert_eq!(frames.node_info(NODE1).offline, 1024);
    let half = frames.online(CPU0, Frame::new(4100), 512);
    assert_eq!(half, Err(RangeError::Misaligned { frame: Frame::new(4100) }));
    let none = frames.online(CPU0, Frame::new(9000), 512);
    assert_eq!(none, Err(RangeError::NotManaged { frame: Frame::new(9000) }));
}

#[test]
fn a_domain_is_populated_on_its_node_and_its_accounts_follow() {
    let bench = Bench::new(two_nodes(2048));
    let frames = bench.frames();
    let held = [Word::new(0), Word::new(0)];
    let domain = Domain::new(Owner(3), &held);
    let mut extents = [Frame::new(0); 4];
    let exact = Affinity::Exact(NODE1);
    domain.populate(&frames, CPU0, Order::BLOCK, exact, &mut extents).unwrap();
    assert_eq!((domain.held(NODE0), domain.held(NODE1)), (0, 2048));
    let mut more = [Frame::new(0)];
    assert_eq!(
        domain.populate(&frames, CPU0, Order::FRAME, exact, &mut more),
        Err(DomainError::Alloc { done: 0, error: AllocError::Exhausted { frames: 1 } })
    );
    let preferred = Affinity::Preferred(NODE1);
    domain.populate(&frames, CPU0, Order::FRAME, preferred, &mut more).unwrap();
    assert_eq!(domain.held(NODE0), 1);
    let given_up = domain.decrease(&frames, CPU0, Order::BLOCK, &extents);
    assert_eq!((given_up, domain.held(NODE1)), (Ok(()), 0));
    let other = frames.alloc(CPU0, &Request::FRAME.policy(Policy::Exact(NODE1))).unwrap();
    let not_held = DomainError::NotHeld { place: 0, frame: other, held: 0 };
    let refused = domain.decrease(&frames, CPU0, Order::FRAME, &[other]);
    assert_eq!(refused, Err(not_held));
}

#[test]
fn a_domain_with_too_few_accounts_is_refused() {
    let bench = Bench::new(two_nodes(2048));
    let frames = bench.frames();
    let frame = frames.alloc_frame(CPU0).unwrap();
    let domain = Domain::new(Owner(3), &[]);
    let refused = Err(DomainError::Accounts { accounts: 0, nodes: 2 });
    let (nearest, mut more) = (Affinity::Preferred(NODE0), [Frame::new(0)]);
    assert_eq!(domain.decrease(&frames, CPU0, Order::FRAME, &[frame]), refused);
    assert_eq!(domain.populate(&frames, CPU0, Order::FRAME, nearest, &mut more), refused);
    let given = (Order::FRAME, std::slice::from_ref(&frame));
    assert_eq!(domain.exchange(&frames, CPU0, given, (Order::FRAME, &mut more), nearest), refused);
}

#[test]
fn a_domain_exchanges_extents_for_the_same_amount_in_another_order() {
    let bench = Bench::new(two_nodes(2048));
    let frames = bench.frames();
    let held = [Word::new(0), Word::new(0)];
    let domain = Domain::new(Owner(3), &held);
    let mut extents = [Frame::new(0); 4];
    let affinity = Affinity::Preferred(NODE1);
    domain.populate(&frames, CPU0, Order::BLOCK, affinity, &mut extents).unwrap();
    // One block for the same number of single frames, which only node 0 has.
    let mut singles = [Frame::new(0); 512];
    let given = (Order::BLOCK, &extents[..1]);
    domain.exchange(&frames, CPU0, given, (Order::FRAME, &mut singles), affinity).unwrap();
    assert_eq!((domain.held(NODE0), domain.held(NODE1)), (512, 1536));
    let few = (Order::FRAME, &mut singles[..3]);
    let unequal = domain.exchange(&frames, CPU0, given, few, affinity);
    assert_eq!(unequal, Err(DomainError::Unequal { given: 512, wanted: 3 }));
    domain.decrease(&frames, CPU0, Order::FRAME, &singles).unwrap();
    domain.decrease(&frames, CPU0, Order::BLOCK, &extents[1..]).unwrap();
    assert_eq!((domain.held(NODE0), domain.held(NODE1)), (0, 0));
}

#[test]
fn free_blocks_are_reported_by_order() {
    let bench = Bench::new(two_nodes(1024));
    let frames = bench.frames();
    let mut all: Vec<Frame> = (0..1024).map(|_| frames.alloc_frame(CPU0).unwrap()).collect();
    all.sort_unstable();
    for frame in all.iter().step_by(2) {
        frames.free_frame(CPU1, *frame).unwrap();
    }
    let info = frames.node_info(NODE0);
    assert_eq!(info.free_blocks(Order::FRAME), info.free);
    assert_eq!(info.free_blocks(Order::new(3).unwrap()), 0);
}

#[test]
fn a_zone_or_a_node_yields_as_the_request_specifies() {
    let bench = Bench::new(Tables {
        ranges: vec![range(0, 4096, 0), range(4096, 512, 0), range(8192, 4096, 1)],
        zone_limits: vec![16 << 20, u64::MAX],
        cpus: vec![NODE0],
        fallback: ring(2),
    });
    let frames = bench.frames();
    let high = |yields| Request::FRAME.zone(ZoneIndex(1), yields);
    let mut by_node = Vec::new();
    let next = |yields| frames.alloc(CPU0, &high(yields)).unwrap().number();
    for _ in 0..512 {
        by_node.push(next(Yields::Node));
    }
    assert!(by_node.iter().all(|frame| (4096..4608).contains(frame)));
    assert!(next(Yields::Node) >= 8192, "the zone on the other node comes first");
    assert!(next(Yields::Zone) < 4096, "the lower zone of the own node comes first");
    let low = Request::run(16).below(1 << 20);
    assert!(frames.alloc(CPU0, &low).unwrap().number() + 16 <= 256);
    let isa = Request::FRAME.zone(ZoneIndex(0), Yields::Zone).policy(Policy::Exact(NODE1));
    assert_eq!(frames.alloc(CPU0, &isa), Err(AllocError::Exhausted { frames: 1 }));
}

#[test]
fn interleaving_follows_the_weights() {
    let bench = Bench::new(two_nodes(4096));
    let frames = bench.frames();
    let nodes: NodeMask = [NODE0, NODE1].into_iter().collect();
    let request = Request::FRAME.policy(Policy::Interleave { nodes: &nodes, weights: &[3, 1] });
    let got: Vec<bool> =
        (0..40).map(|_| frames.alloc(CPU0, &request).unwrap().number() < 4096).collect();
    assert_eq!(got.iter().filter(|&&near| near).count(), 30);
    assert_eq!(got[..4], [true, true, true, false]);
}

#[test]
fn invalid_requests_are_refused_with_their_facts() {
    let bench = Bench::new(two_nodes(1024));
    let frames = bench.frames();
    let refusal = |request: Request<'_>| frames.alloc(CPU0, &request).unwrap_err();
    assert_eq!(refusal(Request::run(0)), AllocError::RunLength { frames: 0 });
    assert_eq!(refusal(Request::run(1 << 19)), AllocError::RunLength { frames: 1 << 19 });
    let node = NodeIndex(2);
    let unknown = AllocError::UnknownNode { node, nodes: 2 };
    assert_eq!(refusal(Request::FRAME.policy(Policy::Exact(node))), unknown);
    let zone = ZoneIndex(1);
    let unknown = AllocError::UnknownZone { zone, zones: 1 };
    assert_eq!(refusal(Request::FRAME.zone(zone, Yields::Zone)), unknown);
    let cpu = CpuIndex(2);
    assert_eq!(frames.alloc_frame(cpu), Err(AllocError::UnknownCpu { cpu, cpus: 2 }));
    let nobody = Policy::Interleave { nodes: &NodeMask::EMPTY, weights: &[] };
    assert_eq!(refusal(Request::FRAME.policy(nobody)), AllocError::NoWeight);
    let frame = Frame::new(3);
    let order = Order::new(2).unwrap();
    assert_eq!(frames.free(CPU0, frame, order), Err(FreeError::Misaligned { frame, order }));
    let frame = Frame::new(5000);
    assert_eq!(frames.free_frame(CPU0, frame), Err(FreeError::NotManaged { frame }));
}

#[test]
fn impossible_machines_are_refused() {
    let refusal = |change: fn(&mut Tables)| {
        let mut tables = two_nodes(1024);
        change(&mut tables);
        let fallback: Vec<&[NodeIndex]> = tables.fallback.iter().map(|o| &o[..]).collect();
        let machine = numalab_frames::Machine {
            ranges: &tables.ranges,
            zone_limits: &tables.zone_limits,
            cpus: &tables.cpus,
            fallback: &fallback,
        };
        machine.metadata_words().unwrap_err()
    };
    assert_eq!(refusal(|t| t.fallback[1].reverse()), InitError::Fallback { node: 1, nodes: 2 });
    assert_eq!(refusal(|t| t.cpus.clear()), InitError::CpuCount { cpus: 0 });
    assert_eq!(
        refusal(|t| t.ranges.swap(0, 1)),
        InitError::RangeOrder { index: 1, start: Frame::new(0) }
    );
    assert_eq!(
        refusal(|t| t.zone_limits = vec![4096, u64::MAX]),
        InitError::ZoneLimit { index: 0, limit: 4096 }
    );
    assert_eq!(
        refusal(|t| t.ranges[1].node = NodeIndex(9)),
        InitError::RangeNode { index: 1, node: NodeIndex(9), nodes: 2 }
    );
}

std::thread_local! {
    static INTERRUPT: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Fences that allow an interrupt between a cpu's `busy` and its first access to its cache.
struct Interrupted;

// SAFETY: both do what those of `CpuFences` do; the code that runs after them does not undo it.
#[expect(unsafe_code, reason = "the trait is a promise")]
unsafe impl Fences for Interrupted {
    fn claim(&self, busy: &Word) -> bool {
        let claimed = CpuFences.claim(busy);
        if let Some(handler) = INTERRUPT.take() {
            handler();
        }
        claimed
    }

    fn heavy(&self) {
        CpuFences.heavy();
        if let Some(handler) = INTERRUPT.take() {
            handler();
        }
    }
}

static NESTED: FramesCell<Interrupted> = FramesCell::new();

/// Allocates until refused, and frees the frames, from within an interrupt.
fn handler() {
    let frames = NESTED.get().unwrap();
    let mut got = Vec::new();
    let refusal = loop {
        match frames.alloc_frame(CPU0) {
            Ok(frame) => got.push(frame),
            Err(error) => break error,
        }
    };
    assert_eq!(refusal, AllocError::ExhaustedNested { frames: 1 });
    assert_eq!(frames.offline(CPU0, Frame::new(0), 512), Err(RangeError::Nested));
    got.into_iter().for_each(|frame| frames.free_frame(CPU0, frame).unwrap());
}

#[test]
fn a_call_from_an_interrupt_of_a_call_neither_waits_nor_breaks_anything() {
    let bench = Bench::new(two_nodes(600));
    let init = || NESTED.init(bench.machine, bench.metadata(), Interrupted);
    let frames = init().unwrap();
    assert!(matches!(init(), Err(InitError::Again)));
    let mut held = std::collections::HashSet::new();
    // While using a cache, an empty one, and (from frame 1200 on) while the caches are taken back.
    for n in 0..1201 {
        if n % 50 == 0 || n == 1200 {
            INTERRUPT.set(Some(handler));
        }
        match frames.alloc_frame(CPU0) {
            Ok(frame) => assert!(held.insert(frame)),
            Err(error) => assert_eq!((n, error), (1200, AllocError::Exhausted { frames: 1 })),
        }
    }
    INTERRUPT.set(None);
    held.into_iter().for_each(|frame| frames.free_frame(CPU1, frame).unwrap());
    assert_eq!(frames.node_info(NODE0).allocated() + frames.node_info(NODE1).allocated(), 0);
}

#[test]
fn ostd_allocates_odd_sizes_and_frees_pieces_in_any_order() {
    let bench = Bench::new(with_hotplug());
    let frames = bench.frames();
    let ostd = OstdFrames::new(&frames, cpu0);
    let layout = Layout::from_size_align(11 * 4096, 8192).unwrap();
    let addr = ostd.alloc(layout).unwrap();
    assert_eq!(addr % 8192, 0);
    for piece in [7, 0, 10, 3, 1, 2, 9, 8, 4, 6, 5] {
        ostd.dealloc(addr + piece * 4096, 4096).unwrap();
    }
    assert!(matches!(ostd.dealloc(addr, 4096), Err(FreeError::AlreadyFree { .. })));
    assert!(matches!(ostd.dealloc(addr + 1, 4096), Err(FreeError::Misaligned { .. })));
    ostd.add_free_memory(4096 * 4096, 1024 * 4096).unwrap();
    assert_eq!(frames.node_info(NODE1).managed, 2048);
}

#[test]
fn ostd_allocates_according_to_its_policy() {
    let bench = Bench::new(two_nodes(1024));
    let frames = bench.frames();
    let far = OstdFrames::new(&frames, cpu0).policy(Policy::Exact(NODE1));
    let near = OstdFrames::new(&frames, cpu0);
    let layout = Layout::from_size_align(4096, 4096).unwrap();
    let nodes = [far, near].map(|ostd| {
        let addr = ostd.alloc(layout).unwrap() as u64;
        frames.node_of(Frame::from_addr(addr).unwrap())
    });
    assert_eq!(nodes, [Some(NODE1), Some(NODE0)]);
}

#[test]
fn rmm_counts_frames_and_usage() {
    let bench = Bench::new(two_nodes(1024));
    let frames = bench.frames();
    let mut rmm = RmmFrames::new(&frames, cpu0);
    let address = rmm.allocate(5).unwrap();
    assert_eq!((rmm.usage().used, rmm.usage().total), (5, 2048));
    rmm.free(address, 5).unwrap();
    assert!(matches!(rmm.free(address + 12, 1), Err(FreeError::Misaligned { .. })));
    assert_eq!(rmm.usage().used, 0);
}

#[cfg(feature = "x86_64")]
#[test]
#[expect(unsafe_code, reason = "page tables rely on the adapter")]
fn x86_64_gets_pages_of_all_three_sizes() {
    use numalab_frames::X86Frames;
    use x86_64::structures::paging::{
        FrameAllocator, FrameDeallocator, PageSize, PhysFrame, Size1GiB, Size2MiB, Size4KiB,
    };
    fn pair<S: PageSize>(frames: &mut X86Frames<'_, '_, CpuFences>) {
        let frame: PhysFrame<S> = frames.allocate_frame().unwrap();
        assert!(frame.start_address().is_aligned(S::SIZE));
        // SAFETY: the frame was just allocated, and is not used.
        unsafe { frames.deallocate_frame(frame) };
    }
    let bench = Bench::new(two_nodes(1 << 19));
    let frames = bench.frames();
    // SAFETY: the frames are not mapped, so their memory is not used at all.
    let mut x86 = unsafe { X86Frames::new(&frames, cpu0) };
    pair::<Size4KiB>(&mut x86);
    pair::<Size2MiB>(&mut x86);
    pair::<Size1GiB>(&mut x86);
    assert_eq!(x86.refused(), None);
    assert_eq!(frames.node_info(NODE0).allocated(), 0);
}

#[cfg(feature = "checked")]
#[test]
fn a_checked_build_verifies_size_and_owner() {
    let bench = Bench::new(two_nodes(1024));
    let frames = bench.frames();
    let request = Request::run(10).owner(Owner(4));
    let first = frames.alloc(CPU0, &request).unwrap();
    let wrong = FreeError::WrongOwner { frame: first, expected: Owner(4), found: Owner(0) };
    assert_eq!(frames.free_run(CPU0, first, 10), Err(wrong));
    frames.alloc(CPU0, &request).unwrap();
    let size = FreeError::WrongSize { frame: first, frames: 12, left: 10 };
    assert_eq!(frames.free_owned(CPU0, first, 12, Owner(4)), Err(size));
    let rest = Frame::new(first.number() + 4);
    frames.free_owned(CPU0, rest, 6, Owner(4)).unwrap();
    frames.free_owned(CPU0, first, 4, Owner(4)).unwrap();
}

fn dump_of(bench: &Bench) -> Vec<u8> {
    let frames = bench.frames();
    let all: Vec<Frame> = (0..700).map(|_| frames.alloc_frame(CPU0).unwrap()).collect();
    all.iter().step_by(3).for_each(|&frame| frames.free_frame(CPU0, frame).unwrap());
    let block = frames.alloc(CPU1, &Request::order(Order::BLOCK)).unwrap();
    frames.free(CPU1, block, Order::BLOCK).unwrap();
    let mut bytes = Vec::new();
    let written: Result<(), ()> = frames.dump(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    written.unwrap();
    let dump = Dump::parse(&bytes).unwrap();
    let shared: u64 = dump.blocks().map(|block| block.free_frames()).sum();
    let cached: u64 = dump.magazines().map(|(_, mask)| u64::from(mask.count_ones())).sum();
    assert_eq!(dump.whole_blocks().flatten().next(), Some(block));
    let info = [NODE0, NODE1].map(|node| frames.node_info(node));
    assert_eq!(shared, info.iter().map(|node| node.free).sum::<u64>());
    assert_eq!(cached + 512, info.iter().map(|node| node.cached).sum::<u64>());
    bytes
}

#[test]
fn a_dump_agrees_with_the_heap_and_is_readable() {
    let bench = Bench::new(with_hotplug());
    let text = Dump::parse(&dump_of(&bench)).unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "heap: 2 nodes, 2 cpus; a character is 2 MiB");
    assert!(lines[2].starts_with("node 0 zone 0: 0x0 - 0x400000, 1024 frames, "), "{text}");
    assert!(text.contains("0x1000000 --\n"), "{text}");
    assert!(text.contains("cpu 1 on node 1 caches block 0x"), "{text}");
}

#[test]
fn every_truncation_of_a_dump_is_refused() {
    let bytes = dump_of(&Bench::new(with_hotplug()));
    for length in 0..bytes.len() {
        assert!(Dump::parse(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Dump::parse(&longer).unwrap_err(), DumpError::Trailing { bytes: 1 });
}

proptest! {
    #[test]
    fn damaged_dumps_are_refused_or_displayed(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = dump_of(&Bench::new(with_hotplug()));
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(dump) = Dump::parse(&bytes) {
            prop_assert!(!dump.to_string().is_empty());
        }
    }
}
