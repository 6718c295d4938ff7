//! Runs any sequence of calls. Nothing panics, no frame is allocated twice, wrong frees change
//! nothing, and at the end all memory is free again.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use numalab_frames::{
    CpuFences, CpuIndex, Dump, Frame, Frames, Machine, MemoryRange, NodeIndex, NodeMask, Order,
    Owner, Policy, RangeState, Request, Word, Yields, ZoneIndex,
};

const NODES: [NodeIndex; 2] = [NodeIndex(0), NodeIndex(1)];
const LATER: (u64, u64) = (4096, 600);

fn ranges() -> [MemoryRange; 4] {
    let range = |start, frames, node, state| MemoryRange {
        start: Frame::new(start),
        frames,
        node: NodeIndex(node),
        state,
    };
    [
        range(7, 900, 0, RangeState::Online),
        range(907, 700, 1, RangeState::Online),
        range(2048, 1024, 1, RangeState::Online),
        range(LATER.0, LATER.1, 0, RangeState::Offline),
    ]
}

/// Numbers from the input; zeros when it ends.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u64 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        u64::from(*first)
    }

    fn number(&mut self) -> u64 {
        self.byte() << 8 | self.byte()
    }
}

fn request<'p>(input: &mut Input<'_>, mask: &'p NodeMask) -> Request<'p> {
    let kind = input.byte();
    let base = match kind % 4 {
        0 | 1 => Request::FRAME,
        2 => Request::order(Order::new((input.byte() % 12) as u8).unwrap()),
        _ => Request::run(1 + input.number() % 1500),
    };
    let node = NodeIndex((kind >> 2 & 1) as u16);
    let policy = match kind >> 3 & 7 {
        0..3 => Policy::Local,
        3 => Policy::Preferred(node),
        4 => Policy::Exact(node),
        5 => Policy::Bind(mask),
        6 => Policy::Interleave { nodes: mask, weights: &[2, 1] },
        _ => Policy::Blind,
    };
    let base = base.policy(policy).owner(Owner(1));
    match kind >> 6 {
        1 => base.below(input.number() << 9),
        2 => base.zone(ZoneIndex((input.byte() % 2) as u8), Yields::Node),
        _ => base,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let ranges = ranges();
    let machine = Machine {
        ranges: &ranges,
        zone_limits: &[4 << 20, u64::MAX],
        cpus: &[NODES[0], NODES[1], NODES[0]],
        fallback: &[&NODES, &[NODES[1], NODES[0]]],
        distances: &[],
    };
    let mut metadata: Vec<Word> =
        (0..machine.metadata_words().unwrap()).map(|n| Word::new(n as u64 * 77)).collect();
    let frames = Frames::new(machine, &mut metadata, CpuFences).unwrap();
    let mut held: BTreeMap<u64, u64> = BTreeMap::new();
    let mut input = Input(bytes);
    while !input.0.is_empty() {
        let op = input.byte();
        let cpu = CpuIndex((op >> 5) as u16 % 3);
        match op % 8 {
            0..4 => {
                let mask: NodeMask = NODES.into_iter().filter(|n| op >> (3 + n.0) & 1 == 1).collect();
                let asked = request(&mut input, &mask);
                if let Ok(frame) = frames.alloc(cpu, &asked) {
                    // The tags give the length, which is found by freeing too much.
                    let error = frames.free_owned(cpu, frame, 1 << 18, Owner(1)).unwrap_err();
                    let numalab_frames::FreeError::WrongSize { left, .. } = error else {
                        panic!("{error}");
                    };
                    let first = frame.number();
                    let below = held.range(..first + left).next_back();
                    assert!(below.is_none_or(|(&start, &n)| start + n <= first), "twice");
                    held.insert(first, left);
                }
            }
            4..6 => {
                let pick = input.number() as usize % held.len().max(1);
                if let Some((&first, &length)) = held.iter().nth(pick) {
                    let from = input.byte() % length;
                    let n = 1 + input.number() % (length - from);
                    frames.free_owned(cpu, Frame::new(first + from), n, Owner(1)).unwrap();
                    held.remove(&first);
                    if from > 0 {
                        held.insert(first, from);
                    }
                    if from + n < length {
                        held.insert(first + from + n, length - from - n);
                    }
                }
            }
            6 => {
                let frame = input.number() % 6000;
                let n = 1 + input.byte() % 80;
                let taken = held.range(..frame + n).next_back();
                if taken.is_none_or(|(&start, &length)| start + length <= frame) {
                    frames.free_owned(cpu, Frame::new(frame), n, Owner(1)).unwrap_err();
                }
            }
            _ => {
                let (start, length) = (Frame::new(LATER.0), LATER.1);
                let _ = match op >> 3 & 1 {
                    0 => frames.online(cpu, start, length),
                    _ => frames.offline(cpu, start, length),
                };
            }
        }
    }
    let mut dump = Vec::new();
    let _: Result<(), ()> = frames.dump(&mut |piece| {
        dump.extend_from_slice(piece);
        Ok(())
    });
    Dump::parse(&dump).unwrap();
    let used: u64 = held.values().sum();
    assert_eq!(NODES.map(|node| frames.node_info(node).allocated()).iter().sum::<u64>(), used);
    for (first, length) in held {
        frames.free_owned(CpuIndex(2), Frame::new(first), length, Owner(1)).unwrap();
    }
    assert_eq!(NODES.map(|node| frames.node_info(node).allocated()), [0, 0]);
});
