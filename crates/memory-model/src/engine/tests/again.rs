//! The fast path has the same result as the general one.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const STORE: &[u8] = &[0x48, 0x89, 0x18]; // mov %rbx,(%rax)
const STREAM: &[u8] = &[0x48, 0x0f, 0xc3, 0x18]; // movnti %rbx,(%rax)

/// An access of a random program: its vCPU, line and kind.
#[derive(Clone, Copy, Debug)]
struct Step {
    vcpu: usize,
    line: u64,
    kind: Kind,
    /// True if it is neither a load that depends on its own address nor a store that bypasses
    /// caches.
    free: bool,
}

/// The path of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All on the general path.
    Farther,
    /// Fast for known lines, like those of a program's threads.
    Known,
    /// Fast for lines in the nearest cache, like those of a machine's vCPUs.
    Near,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let line = prop_oneof![0_u64..4, 0_u64..200];
    let kind = prop_oneof![Just(Kind::Load), Just(Kind::Store)];
    let step = (0_usize..2, line, kind, any::<bool>());
    let step = step.prop_map(|(vcpu, line, kind, free)| Step { vcpu, line, kind, free });
    prop::collection::vec(step, 1..400)
}

/// Returns each vCPU's time and counts, and the number of accesses on the fast path.
fn run(machine: &str, steps: &[Step], way: Way) -> (Vec<[u64; 5]>, usize) {
    let quickly = way == Way::Known;
    let engine = engine_of(machine).for_threads();
    let [follow, read, store, stream] =
        [FOLLOW, READ, STORE, STREAM].map(|code| block_of(&[code, COUNT, STEP]));
    let mut known = HashMap::new();
    let (mut quick, mut last) = (0, None);
    for step in steps {
        let mut active = engine.enter_as(step.vcpu, step.vcpu);
        let flow = match (step.kind, step.free) {
            (Kind::Store, true) => store,
            (Kind::Store, false) => stream,
            (Kind::Load, true) => read,
            (Kind::Load, false) => follow,
        };
        if !quickly || !active.begin_quickly(flow.instructions, Some(flow)) {
            active.begin(flow.instructions, Some(flow), None);
        }
        // The frame's offset in 2 MiB differs from the page's, which rules out huge pages.
        let address = step.line * 64;
        let access = Access { virtual_address: address + 4096, ..access(step.kind, address, 0) };
        if way == Way::Near {
            quick += usize::from(active.access(access).known.is_none());
            continue;
        }
        let place = (step.vcpu, step.line);
        let by = By { accessor: flow.accessors.first(), behind: 2 };
        let same = last.replace(place) == Some(place);
        let known_line = known.get(&place).filter(|_| quickly);
        let found = known_line.filter(|of| same || active.translates(of) && active.finds(address));
        let hit = found.and_then(|of| active.again(of, (address, 8), step.kind, &by));
        if hit.is_some() {
            let counts = [Kind::Load, Kind::Store].map(|kind| u64::from(kind == step.kind));
            engine.count(step.vcpu, 0, counts);
            quick += 1;
            continue;
        }
        let outcome = active.access_on(0, access, None);
        known.remove(&place);
        known.extend(outcome.known.filter(|_| active.has_quick_way()).map(|known| (place, known)));
    }
    let seen = |vcpu: usize| {
        let figures = engine.counters.of(0, vcpu);
        let node = &figures.nodes[0];
        let times = [engine.time_ps(vcpu), figures.time_ps.get(), figures.cost_ps.get()];
        [times[0], times[1], times[2], node.all(), node.cost_ps.get()]
    };
    ((0..2).map(seen).collect(), quick)
}

proptest! {
    #[test]
    fn accesses_that_go_the_quick_way_take_and_count_what_they_would_otherwise(steps in steps()) {
        for more in [
            "caches=1:4K:4:64:cpu+2:8K:4:64:group:9",
            "caches=1:4K:4:64:cpu+2:8K:4:64:cpu:9,stages=owners",
            "caches=1:4K:4:64:cpu:1+2:8K:4:64:cpu:9,stages=core+owners",
            "caches=1:4K:4:64:cpu:1+2:8K:4:64:cpu:9,stages=core+owners+tlb",
        ] {
            let machine = format!("{MACHINE},mode=count,{more}");
            let farther = run(&machine, &steps, Way::Farther).0;
            prop_assert_eq!(&run(&machine, &steps, Way::Known).0, &farther);
            prop_assert_eq!(run(&machine, &steps, Way::Near).0, farther);
        }
    }
}

#[test]
fn a_repeatedly_accessed_line_takes_the_fast_path() {
    let step = |turn: u64| Step { vcpu: 0, line: turn % 2, kind: Kind::Load, free: true };
    let steps: Vec<Step> = (0..1000).map(step).collect();
    let machine = format!("{MACHINE},mode=count,caches=1:4K:4:64:cpu:1,stages=core+owners+tlb");
    for way in [Way::Known, Way::Near] {
        let quick = run(&machine, &steps, way).1;
        // Both lines are in flight at first.
        assert!(quick > 500, "{way:?}: {quick} of 1000");
    }
}
