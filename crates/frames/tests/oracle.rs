//! Random operations against a model that tracks every frame, with a recount after each.

mod common;

use std::collections::BTreeMap;

use common::{Bench, Tables, range, ring};
use numalab_frames::{
    AllocError, CpuIndex, Frame, Frames, FreeError, MemoryRange, NodeIndex, NodeMask, Order, Owner,
    Policy, RangeState, Request, Yields, ZoneIndex,
};
use proptest::prelude::*;

const CPUS: u16 = 4;
const NODES: u16 = 3;
const OFFLINE: (u64, u64) = (8192, 1024);

/// Returns three nodes with holes, ends within blocks and rows, two nodes in one block, a zone
/// limit in the middle, and a range that can go online and offline.
fn tables() -> Tables {
    let offline = MemoryRange { state: RangeState::Offline, ..range(OFFLINE.0, OFFLINE.1, 1) };
    Tables {
        ranges: vec![
            range(3, 1197, 0),
            range(1300, 1000, 0),
            range(2300, 200, 0),
            range(2500, 2300, 1),
            range(6000, 1100, 2),
            offline,
        ],
        zone_limits: vec![2 << 20, 8 << 20, u64::MAX],
        cpus: [0, 0, 1, 2].map(NodeIndex).to_vec(),
        fallback: ring(NODES),
    }
}

/// A request in the terms of the test.
#[derive(Clone, Debug)]
struct Ask {
    cpu: u16,
    frames: u64,
    align: u8,
    policy: u8,
    node: u16,
    mask: u8,
    zone: Option<u8>,
    node_yields: bool,
    below: Option<u64>,
}

#[derive(Clone, Debug)]
enum Op {
    Alloc(Ask),
    /// Frees a piece of a held run: the run, the start and the length.
    Free {
        cpu: u16,
        pick: prop::sample::Index,
        from: u64,
        frames: u64,
    },
    /// Frees a frame, held or not.
    Wild {
        cpu: u16,
        frame: u64,
    },
    Online {
        cpu: u16,
    },
    Offline {
        cpu: u16,
    },
    /// Allocates single frames until nothing is left for this policy.
    Exhaust(Ask),
}

fn ask() -> impl Strategy<Value = Ask> {
    let frames = prop_oneof![
        6 => Just(1_u64),
        3 => (0_u32..11).prop_map(|order| 1 << order),
        2 => 2_u64..1300,
    ];
    let zone = prop::option::weighted(0.3, 0_u8..3);
    let below = prop::option::weighted(0.2, 0_u64..(40 << 20));
    (0..CPUS, frames, any::<bool>(), 0_u8..6, 0..NODES, 0_u8..8, zone, any::<bool>(), below)
        .prop_map(|(cpu, frames, own, policy, node, mask, zone, node_yields, below)| {
            let own_order = frames.is_power_of_two() && own;
            let align = if own_order { frames.ilog2().to_le_bytes()[0] } else { 0 };
            Ask { cpu, frames, align, policy, node, mask, zone, node_yields, below }
        })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => ask().prop_map(Op::Alloc),
        8 => (0..CPUS, any::<prop::sample::Index>(), 0_u64..600, 1_u64..1300)
            .prop_map(|(cpu, pick, from, frames)| Op::Free { cpu, pick, from, frames }),
        3 => (0..CPUS, 0_u64..10_000).prop_map(|(cpu, frame)| Op::Wild { cpu, frame }),
        1 => (0..CPUS).prop_map(|cpu| Op::Online { cpu }),
        1 => (0..CPUS).prop_map(|cpu| Op::Offline { cpu }),
        1 => ask().prop_map(|ask| Op::Exhaust(Ask { frames: 1, align: 0, ..ask })),
    ]
}

struct Model {
    tables: Tables,
    bench: Bench,
    frames: Frames<'static>,
    /// Held runs: first frame to length.
    held: BTreeMap<u64, u64>,
    /// A flag for each frame that is held.
    taken: Vec<bool>,
    online: bool,
}

impl Model {
    fn new() -> Self {
        let bench = Bench::new(tables());
        let frames = bench.frames();
        Self {
            tables: tables(),
            bench,
            frames,
            held: BTreeMap::new(),
            taken: vec![false; 10_000],
            online: false,
        }
    }

    fn is_held(&self, frame: u64) -> bool {
        self.taken[usize::try_from(frame).unwrap()]
    }

    fn mark(&mut self, first: u64, frames: u64, held: bool) {
        let first = usize::try_from(first).unwrap();
        self.taken[first..first + usize::try_from(frames).unwrap()].fill(held);
    }

    /// Returns the online pieces of a node's zone.
    fn pieces(&self, node: u16, zone: usize) -> Vec<(u64, u64)> {
        let limit = |z: usize| self.tables.zone_limits[z] / 4096;
        let low = if zone == 0 { 0 } else { limit(zone - 1) };
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for r in &self.tables.ranges {
            let online = r.state == RangeState::Online || self.online;
            let (from, to) =
                (r.start.number().max(low), (r.start.number() + r.frames).min(limit(zone)));
            if r.node.0 != node || !online || from >= to {
                continue;
            }
            match pieces.last_mut() {
                Some(last) if last.1 == from => last.1 = to,
                _ => pieces.push((from, to)),
            }
        }
        pieces
    }

    /// Returns the (node, zone) pairs that a request may use, in the documented order; for an
    /// interleaved one the order is not known here.
    fn walk(&self, ask: &Ask) -> Vec<(u16, usize)> {
        let home = self.tables.cpus[usize::from(ask.cpu)].0;
        let order = |from: u16| (0..NODES).map(move |k| (from + k) % NODES);
        let in_mask = |n: &u16| ask.mask >> n & 1 == 1;
        let nodes: Vec<u16> = match ask.policy {
            0 => order(home).collect(),
            1 => order(ask.node).collect(),
            2 => vec![ask.node],
            3 | 4 => order(home).filter(in_mask).collect(),
            _ => (0..NODES).collect(),
        };
        let zones: Vec<usize> = (0..=ask.zone.map_or(2, usize::from)).rev().collect();
        if ask.node_yields && ask.zone.is_some() {
            zones.iter().flat_map(|&z| nodes.iter().map(move |&n| (n, z))).collect()
        } else {
            nodes.iter().flat_map(|&n| zones.iter().map(move |&z| (n, z))).collect()
        }
    }

    /// Returns a run that serves a request in a node's zone, among frames for which `free` is true.
    fn run_in(&self, ask: &Ask, pool: (u16, usize), free: impl Fn(u64) -> bool) -> Option<u64> {
        let align = 1_u64 << ask.align;
        let below = ask.below.map_or(u64::MAX, |bytes| bytes / 4096);
        self.pieces(pool.0, pool.1).into_iter().find_map(|(from, to)| {
            let to = to.min(below);
            let mut length = 0;
            (from..to).find_map(|frame| {
                length = if free(frame) { length + 1 } else { 0 };
                let start = (frame + 1).checked_sub(ask.frames)?;
                // Within the free run, the first aligned start that leaves room.
                (length >= ask.frames && start.is_multiple_of(align)).then_some(start)
            })
        })
    }

    /// Allocates, and checks the outcome; with `nearest` also that nothing nearer would have
    /// served.
    fn alloc(&mut self, ask: &Ask, nearest: bool) -> Result<Frame, AllocError> {
        let mask: NodeMask = (0..NODES).filter(|n| ask.mask >> n & 1 == 1).map(NodeIndex).collect();
        let policy = match ask.policy {
            0 => Policy::Local,
            1 => Policy::Preferred(NodeIndex(ask.node)),
            2 => Policy::Exact(NodeIndex(ask.node)),
            3 => Policy::Bind(&mask),
            4 => Policy::Interleave { nodes: &mask, weights: &[1, 3, 2] },
            _ => Policy::Blind,
        };
        let mut request = Request::run(ask.frames)
            .aligned(Order::new(ask.align).unwrap())
            .policy(policy)
            .owner(Owner(7));
        if let Some(zone) = ask.zone {
            let yields = if ask.node_yields { Yields::Node } else { Yields::Zone };
            request = request.zone(ZoneIndex(zone), yields);
        }
        if let Some(below) = ask.below {
            request = request.below(below);
        }
        let shared = nearest.then(|| self.shared_to(ask.cpu));
        let result = self.frames.alloc(CpuIndex(ask.cpu), &request);
        match result {
            Ok(frame) => {
                self.check_place(ask, frame.number(), shared.as_deref());
                self.mark(frame.number(), ask.frames, true);
                self.held.insert(frame.number(), ask.frames);
            }
            Err(AllocError::Exhausted { .. }) => {
                for pool in self.walk(ask) {
                    let found = self.run_in(ask, pool, |frame| !self.is_held(frame));
                    assert_eq!(found, None, "refused {ask:?} though {pool:?} has it");
                }
            }
            Err(AllocError::NoWeight) => assert_eq!((ask.policy, ask.mask), (4, 0)),
            Err(error) => panic!("{error} for {ask:?}"),
        }
        result
    }

    /// Returns the frames that are free in the shared maps and not reserved by another cpu.
    fn shared_to(&self, cpu: u16) -> Vec<bool> {
        let mut shared = vec![false; 10_000];
        let reachable = |holder: Option<CpuIndex>| holder.is_none_or(|h| h == CpuIndex(cpu));
        for view in self.frames.walk().filter(|view| reachable(view.reserved)) {
            for bit in (0..512).filter(|bit| view.free[bit / 64] >> (bit % 64) & 1 == 1) {
                shared[usize::try_from(view.first.number()).unwrap() + bit] = true;
            }
        }
        shared
    }

    /// Checks that the run was free, is eligible for the request, and that nothing nearer would
    /// have served.
    fn check_place(&self, ask: &Ask, first: u64, shared: Option<&[bool]>) {
        assert!(first.is_multiple_of(1 << ask.align));
        for frame in first..first + ask.frames {
            assert!(!self.is_held(frame), "frame {frame} was allocated twice");
        }
        let end = first + ask.frames;
        assert!(end <= ask.below.map_or(u64::MAX, |bytes| bytes / 4096));
        let walk = self.walk(ask);
        let place = walk.iter().position(|&(node, zone)| {
            self.pieces(node, zone).iter().any(|&(from, to)| from <= first && end <= to)
        });
        let place = place.unwrap_or_else(|| panic!("frame {first} is not eligible for {ask:?}"));
        if let Some(shared) = shared.filter(|_| ask.policy != 4) {
            for &pool in &walk[..place] {
                let free = |frame| shared[usize::try_from(frame).unwrap()];
                let nearer = self.run_in(ask, pool, free);
                assert_eq!(nearer, None, "{first} given for {ask:?} though {pool:?} is nearer");
            }
        }
    }

    fn free(&mut self, cpu: u16, first: u64, from: u64, frames: u64) {
        let length = self.held[&first];
        let from = from % length;
        let frames = frames.min(length - from);
        self.frames.free_owned(CpuIndex(cpu), Frame::new(first + from), frames, Owner(7)).unwrap();
        self.mark(first + from, frames, false);
        self.held.remove(&first);
        if from > 0 {
            self.held.insert(first, from);
        }
        if from + frames < length {
            self.held.insert(first + from + frames, length - from - frames);
        }
    }

    fn wild(&mut self, cpu: u16, frame: u64) {
        if self.is_held(frame) {
            let (&first, _) = self.held.range(..=frame).next_back().unwrap();
            return self.free(cpu, first, frame - first, 1);
        }
        let known =
            |r: &&MemoryRange| (r.start.number()..r.start.number() + r.frames).contains(&frame);
        let range = self.tables.ranges.iter().find(known);
        let error = self
            .frames
            .free_owned(CpuIndex(cpu), Frame::new(frame), 1, Owner(7))
            .expect_err("a frame that is not held was freed");
        match (range, error) {
            (None, FreeError::NotManaged { .. }) => {}
            (Some(r), FreeError::Offline { .. }) if r.state == RangeState::Offline => {
                assert!(!self.online);
            }
            (Some(_), FreeError::AlreadyFree { frame: reported, .. }) => {
                assert_eq!(reported.number(), frame);
            }
            (range, error) => panic!("{error:?} for frame {frame} of {range:?}"),
        }
    }

    fn switch(&mut self, cpu: u16, online: bool) {
        let (start, length) = OFFLINE;
        let cpu = CpuIndex(cpu);
        let result = if online {
            self.frames.online(cpu, Frame::new(start), length)
        } else {
            self.frames.offline(cpu, Frame::new(start), length)
        };
        let in_use = (start..start + length).any(|frame| self.is_held(frame));
        assert_eq!(result.is_ok(), self.online != online && !in_use, "{result:?}");
        if result.is_ok() {
            self.online = online;
        }
    }

    /// Compares the allocator's statistics with a count of the held frames.
    fn recount(&self) {
        for node in 0..NODES {
            let mut sum = (0, 0);
            for zone in 0..3 {
                let pieces = self.pieces(node, usize::from(zone));
                let managed: u64 = pieces.iter().map(|(from, to)| to - from).sum();
                let held = pieces.iter().flat_map(|&(from, to)| from..to);
                let held = held.filter(|&frame| self.is_held(frame)).count() as u64;
                let info = self.frames.zone_info(NodeIndex(node), ZoneIndex(zone));
                assert_eq!((info.managed, info.allocated()), (managed, held), "{info:?}");
                let by_order = info.blocks.iter().zip(0..).map(|(n, order)| n << order);
                assert_eq!(by_order.sum::<u64>(), info.free);
                sum = (sum.0 + managed, sum.1 + held);
            }
            let info = self.frames.node_info(NodeIndex(node));
            assert_eq!((info.managed, info.allocated()), sum);
        }
        for view in self.frames.walk() {
            for bit in 0..512 {
                let free = view.free[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
                assert!(!free || (view.from..view.to).contains(&bit));
                assert!(!free || !self.is_held(view.first.number() + bit));
            }
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Alloc(ask) => drop(self.alloc(ask, true)),
            Op::Free { cpu, pick, from, frames } => {
                if !self.held.is_empty() {
                    let first = *self.held.keys().nth(pick.index(self.held.len())).unwrap();
                    self.free(*cpu, first, *from, *frames);
                }
            }
            Op::Wild { cpu, frame } => self.wild(*cpu, *frame),
            Op::Online { cpu } => self.switch(*cpu, true),
            Op::Offline { cpu } => self.switch(*cpu, false),
            Op::Exhaust(ask) => {
                let mut nearest = (0..).map(|n| n % 61 == 0);
                while self.alloc(ask, nearest.next() == Some(true)).is_ok() {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // Tests for aarch64 run under qemu-user, which is some ten times slower.
        cases: match std::env::var_os("NUMALAB_LONG") {
            Some(_) => 4096,
            None if cfg!(target_arch = "aarch64") => 32,
            None => 256,
        },
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_operations_agree_with_the_model(ops in prop::collection::vec(op(), 1..60)) {
        let mut model = Model::new();
        for op in &ops {
            model.apply(op);
            model.recount();
        }
        // The rest is freed, and then all memory is free again, in one piece.
        while let Some((&first, &length)) = model.held.iter().next() {
            model.free(0, first, 0, length);
        }
        model.recount();
        let whole = Ask {
            cpu: 3, frames: 1100, align: 0, policy: 2, node: 2, mask: 0, zone: None,
            node_yields: false, below: None,
        };
        prop_assert_eq!(model.alloc(&whole, true).unwrap().number(), 6000);
        prop_assert_eq!(model.bench.machine.nodes(), usize::from(NODES));
    }
}
