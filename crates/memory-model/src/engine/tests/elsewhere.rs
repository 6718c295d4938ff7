//! Waits of threads with pages on other nodes, compared with the actual ones.

use proptest::prelude::*;

use super::*;
use crate::machine::Family;

const CORE: &str = "cpus=0.1,memory=64M.64M,latency=100.250/250.100,mode=count,\
     stages=core+owners,caches=1:4K:4:64:cpu:1";
const FENCE: &[u8] = &[0x0f, 0xae, 0xe8]; // lfence
const STORE: &[u8] = &[0x48, 0x89, 0x08]; // mov %rcx,(%rax)

fn there(node: usize) -> There {
    There::on(node, false)
}

/// A machine with a thread on each vCPU, which is also followed under another placement.
struct Followed {
    engine: Engine,
    shadows: Vec<Shadow>,
    waited_ps: Vec<u64>,
}

impl Followed {
    fn new(machine: &str, alternatives: &str) -> Self {
        Self::of(engine_of(&format!("{machine},alternatives={alternatives}")))
    }

    fn of(engine: Engine) -> Self {
        let engine = engine.for_threads();
        let threads = engine.arguments.machine.cpus.len();
        let shadows = (0..threads).map(|thread| engine.shadow(thread)).collect();
        Self { engine, shadows, waited_ps: vec![0; threads] }
    }

    /// Runs a block of one thread with an access to memory in its first instruction; under the
    /// other placement the page is at `there`.
    fn access(&mut self, thread: usize, code: &[&[u8]], access: Access, there: There) {
        self.access_by(thread, block_of(code), &[access], there);
    }

    /// Runs a block of one thread with these accesses.
    fn access_by(&mut self, thread: usize, flow: &'static Flow, accesses: &[Access], there: There) {
        let mut active = self.engine.enter_as(thread, thread);
        let shadow = &mut self.shadows[thread];
        let begun = active.begin(flow.instructions, Some(flow), Some(&mut *shadow));
        self.waited_ps[thread] += begun.waited_ps;
        for access in accesses {
            let target = self.engine.node_of(access.address).expect("it is memory");
            let outcome = active.access_on(target, *access, Some((&mut *shadow, &[there])));
            self.waited_ps[thread] += outcome.waited_ps;
        }
    }

    /// Returns the wait of a thread once nothing is in flight, and the additional wait elsewhere,
    /// in ps.
    fn waited(&mut self, thread: usize) -> (u64, i64) {
        let fence = block_of(&[FENCE]);
        let mut active = self.engine.enter_as(thread, thread);
        let begun = active.begin(1, Some(fence), Some(&mut self.shadows[thread]));
        drop(active);
        self.waited_ps[thread] += begun.waited_ps;
        (self.waited_ps[thread], self.shadows[thread].later_ps()[0])
    }
}

/// Returns the wait of thread 0 for a line every 64 bytes at an address, and the additional wait
/// with pages on node `elsewhere`, in ps.
fn waits(kind: Kind, code: &[u8], address: u64, elsewhere: usize) -> (u64, i64) {
    let mut followed = Followed::new(CORE, &format!("interleave.{elsewhere}"));
    // Seven instructions besides the access.
    let mut block: Vec<&[u8]> = vec![code];
    block.extend([[0x90].as_slice(); 7]);
    for line in 0..4096 {
        followed.access(0, &block, access(kind, address + line * 64, 0), there(elsewhere));
    }
    followed.waited(0)
}

#[test]
fn threads_bound_to_the_one_node_with_cpus_have_its_shared_caches_as_now() {
    let machine = "cpus=0.0,memory=64M.64M,latency=100.250/250.250,mode=count,stages=core,\
         caches=1:4K:4:64:cpu:1+3:64K:4:64:group:9";
    let mut followed = Followed::new(machine, "bind.0");
    for line in (0..512).chain(0..512) {
        followed.access(
            0,
            &[&[0x48, 0x8b, 0x08]],
            access(Kind::Load, MIB + line * 64, 0),
            there(0),
        );
    }
    let waited = followed.waited(0);
    assert_eq!(waited.1, 0, "{waited:?}");
}

#[test]
fn the_predicted_wait_of_a_placement_is_the_wait_there() {
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
    let plain = Followed::new(&format!("{MACHINE},mode=count,caches=1:4K:4:64:cpu:1"), "bind.1");
    assert!(plain.shadows[0].later_ps().is_empty());
    let alone = engine_of(CORE).for_threads();
    assert!(alone.shadow(0).later_ps().is_empty());
}

#[test]
fn a_core_bound_with_all_others_finds_memory_and_others_writes_near() {
    let mut followed = Followed::new(CORE, "bind.1");
    let load = |address| access(Kind::Load, address, 0);
    for line in 0..5 {
        followed.access(0, &[FOLLOW], load(65 * MIB + line * 64), there(1));
    }
    // Each access waits for the one before it, while the four instructions after the first are
    // issued.
    let memory = followed.waited(0);
    assert_eq!(memory, (5 * 250_000 - 4 * 250, -5 * 150_000), "100 ns on node 1, 250 from node 0");
    followed.access(1, &[STORE], access(Kind::Store, 2 * MIB, 0), there(1));
    followed.access(0, &[FOLLOW], load(2 * MIB), there(1));
    let after = followed.waited(0);
    assert!(after.0 - memory.0 >= 196_000, "{memory:?}, {after:?}");
    let shorter = memory.1 - after.1;
    assert!((shorter - (197_000 - 23_000)).abs() <= 1_000, "cores of one group: {shorter}");
}

#[test]
fn packed_neighbours_find_each_others_lines_near() {
    let mut followed = Followed::new(
        "cpus=0.1.0.1,memory=64M.64M,latency=100.250/250.100,mode=count,stages=core+owners,\
         caches=1:4K:4:64:cpu:1+2:64K:4:64:group:10",
        "pack",
    );
    let nodes: Vec<_> = (0..4).filter_map(|thread| followed.engine.packed_node(thread)).collect();
    assert_eq!(nodes, [0, 0, 1, 1]);
    let shorter = |followed: &mut Followed, thread: usize, address: u64| {
        let before = followed.waited(thread).1;
        // The next load waits for this one.
        for _ in 0..2 {
            followed.access(thread, &[FOLLOW], access(Kind::Load, address, 0), there(0));
        }
        before - followed.waited(thread).1
    };
    followed.access(0, &[STORE], access(Kind::Store, 2 * MIB, 0), there(0));
    let written = shorter(&mut followed, 1, 2 * MIB);
    assert!((written - 174_000).abs() <= 1_000, "{written}: from the other node, and in its group");
    shorter(&mut followed, 0, 3 * MIB);
    let read = shorter(&mut followed, 1, 3 * MIB);
    assert!((read - 240_000).abs() <= 1_000, "{read}: 250 from memory, 10 from their cache");
    let longer = -shorter(&mut followed, 3, 3 * MIB);
    assert!((longer - 240_000).abs() <= 1_000, "{longer}: thread 1 has it, on the other node then");
}

/// Returns the wait of thread 0 for one load per page of 32 MiB, from frames that allow huge pages
/// or not, and the additional wait with all possible huge pages, in ps.
fn waits_for_pages(frames: u64) -> (u64, i64) {
    let mut followed = Followed::new(
        &format!("{MACHINE},mode=count,stages=core+tlb,caches=1:4K:4:64:cpu:1"),
        "thp",
    );
    for page in (0..1 << 13).map(|page: u64| page * 4097 % (1 << 13)) {
        let virtual_address = (1 << 40) + page * 4096;
        let load = Access { virtual_address, ..access(Kind::Load, frames + page * 4096, 0) };
        followed.access(0, &[FOLLOW], load, There::on(0, true));
    }
    followed.waited(0)
}

#[test]
fn huge_pages_save_the_predicted_time() {
    let (small, longer) = waits_for_pages(4096);
    let (huge, same) = waits_for_pages(2 * MIB);
    let saved = huge.cast_signed() - small.cast_signed();
    assert!(saved < -1_000_000, "{small}, {huge}");
    assert!((longer - saved).abs() <= saved.abs() / 10, "{longer}, {saved}");
    assert!(same.abs() <= small.cast_signed() / 100, "{same}: they are huge pages");
}

/// Runs a loop on one thread in which a branch in either direction depends on a line that is
/// missed, and both paths meet at a block that misses another line. Pages stay where they are.
fn mispredicts(followed: &mut Followed) {
    const COMPARE: &[u8] = &[0x48, 0x39, 0xd1]; // cmp %rdx,%rcx
    const BRANCH: &[u8] = &[0x72, 0x10];
    const JUMP: &[u8] = &[0xeb, 0x10];
    const OTHER: &[u8] = &[0x48, 0x8b, 0x33]; // mov (%rbx),%rsi
    let [decides, between, meets] =
        [[READ, COMPARE, BRANCH].as_slice(), &[JUMP], &[OTHER, JUMP]].map(block_of);
    let mut random = 1_u64;
    for _ in 0..4096 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let line = |shift: u32| MIB + (random >> shift) % 4096 * 64;
        let taken = random >> 63 == 1;
        let blocks = [
            (0x100, decides, Some(line(20))),
            (0x10a, between, None),
            (0x120, meets, Some(line(40))),
        ];
        for (address, flow, loaded) in blocks.into_iter().filter(|of| !taken || of.0 != 0x10a) {
            let mut active = followed.engine.enter_as(0, 0);
            let shadow = &mut followed.shadows[0];
            active.branches(Place { address, end: 0x10a }, Some(flow));
            let begun = active.begin(flow.instructions, Some(flow), Some(&mut *shadow));
            let outcome = loaded.map(|address| {
                active.access_on(0, access(Kind::Load, address, 0), Some((shadow, &[there(0)])))
            });
            followed.waited_ps[0] += begun.waited_ps + outcome.map_or(0, |of| of.waited_ps);
        }
    }
}

#[test]
fn a_core_that_stays_where_it_is_waits_as_long_after_mispredicted_branches() {
    let mut followed = Followed::new(CORE, "interleave.0");
    mispredicts(&mut followed);
    let (waited_ps, longer_ps) = followed.waited(0);
    assert!(waited_ps > 4096 * 5_000, "{waited_ps}");
    assert_eq!(longer_ps, 0);
}

/// Returns a machine of two cores of a family that does most of what cores do, with the blocks of its
/// programs.
fn zen4() -> (Followed, [(&'static Flow, &'static [Kind]); 6]) {
    let machine = format!("{CORE}+2:16K:4:64:group:9,alternatives=interleave.0");
    let mut arguments = engine_of(&machine).arguments;
    let timing = Some(Family::Zen4.timing(0.25));
    let core = Core { prefetch: Some(8), atomic_ns: Some(5.0), timing, ..Core::TYPICAL };
    arguments.machine.core = Some(core);
    let of = |code: &[u8], kinds: &'static [Kind]| {
        let block = [decode(code), decode(COUNT)];
        let flow: &'static Flow = Box::leak(Box::new(Flow::new(block, &Speeds::of(&core))));
        (flow, kinds)
    };
    let blocks = [
        of(FOLLOW, &[Kind::Load]),
        of(&[0x48, 0x8b, 0x5c, 0x24, 0x08], &[Kind::Load]), // mov 8(%rsp),%rbx
        of(&[0x48, 0x89, 0x5c, 0x24, 0x08], &[Kind::Store]), // mov %rbx,8(%rsp)
        of(STORE, &[Kind::Store]),
        of(&[0x48, 0x0f, 0xc3, 0x18], &[Kind::Store]), // movnti %rbx,(%rax)
        of(&[0xf0, 0x48, 0x0f, 0xc1, 0x18], &[Kind::Load, Kind::Store]), // lock xadd %rbx,(%rax)
    ];
    let now = || Duration::ZERO;
    let engine = Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, now);
    (Followed::of(engine), blocks)
}

proptest! {
    #[test]
    fn a_core_whose_pages_stay_where_they_are_waits_as_long(
        steps in prop::collection::vec((0_usize..2, 0_usize..6, 0_u64..40), 1..400),
    ) {
        let (mut followed, blocks) = zen4();
        for (thread, block, line) in steps {
            let (flow, kinds) = blocks[block];
            let of = |kind: &Kind| access(*kind, MIB + line / 4 * 64 * line, 0);
            let accesses: Vec<Access> = kinds.iter().map(of).collect();
            followed.access_by(thread, flow, &accesses, there(0));
        }
        prop_assert_eq!([0, 1].map(|thread| followed.waited(thread).1), [0, 0]);
    }
}
