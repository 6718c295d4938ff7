//! The state of one vCPU.

use crate::cache::Cache;
use crate::cost::Overlap;
use crate::counters::{Figure, Kind};
use crate::leaving::Leaving;
use crate::machine::{Core, Tlb};
use crate::paths::Paths;
use crate::pipeline::Pipeline;
use crate::pipeline::flow::Flow;
use crate::pipeline::operands::Ends;
use crate::predictor::{Prediction, Predictor};
use crate::recent_pages::RecentPages;
use crate::sleep::Debt;
use crate::tlb::Tlbs;
use alloc::vec::Vec;
use spin::Mutex;

/// Number of consecutive loads of one address after which a vCPU counts as waiting.
const LOOKS: u64 = 16;

/// A vCPU: the state that others may read and change, and the state of its own thread.
#[derive(Debug)]
pub(crate) struct Vcpu {
    /// Private caches, nearest first. Other vCPUs take lines from them.
    pub caches: Vec<Cache>,
    /// The lines that it has written and that other vCPUs are taking from it.
    pub leaving: Leaving,
    /// The lines that it has read, and that other vCPUs are about to store to.
    pub upgraded: Leaving,
    /// The vCPU's own time, by which it queues for bandwidth. Written by the thread that runs it,
    /// and by others when a marker aligns all vCPUs. A simultaneous write by the vCPU's own thread
    /// may win; the next alignment corrects it.
    pub time_ps: Figure,
    /// Number of the thread that runs on the vCPU, if threads are tracked.
    pub thread: Figure,
    /// The state that only its own thread uses.
    pub state: Mutex<VcpuState>,
}

/// The place of a block of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Address of the first instruction.
    pub address: u64,
    /// Address after the last instruction.
    pub end: u64,
}

/// The state that only the thread which runs the vCPU changes.
#[derive(Debug)]
pub(crate) struct VcpuState {
    /// TLBs, if addresses are translated.
    pub tlbs: Option<Tlbs>,
    /// Accesses in flight, if misses overlap.
    pub pipeline: Option<Pipeline>,
    /// Branch predictor, if misses overlap, made at the first branch: most of a large machine's
    /// vCPUs never run.
    predictor: Option<Predictor>,
    /// The blocks that the vCPU has executed while mispredictions were expensive.
    paths: Option<Paths>,
    /// The previous block.
    before: Option<(Place, Option<&'static Flow>)>,
    /// The instructions that hide a miss, if misses do not overlap.
    pub overlap: Overlap,
    pub recent_pages: RecentPages,
    /// Number of instructions in the blocks begun so far.
    pub instructions: u64,
    /// Number of instructions in the current block.
    pub block: u64,
    /// Time to issue all these instructions.
    pub taken_ps: u64,
    /// Time charged but not yet on the guest's clock, less than a nanosecond.
    rest_ps: u64,
    /// The address that the vCPU accessed last, the number of consecutive loads of it, with the access before
    /// them, and whether the last access was a load.
    watched: u64,
    looks: u64,
    loaded: bool,
    pub debt: Debt,
}

impl Vcpu {
    /// Creates a vCPU with empty caches.
    pub fn new(caches: Vec<Cache>, tlb: Option<&Tlb>, core: Option<Core>) -> Self {
        let state = VcpuState {
            tlbs: tlb.map(Tlbs::new),
            pipeline: core.map(|core| Pipeline::new(core, tlb)),
            predictor: None,
            paths: None,
            before: None,
            overlap: Overlap::default(),
            recent_pages: RecentPages::default(),
            instructions: 0,
            block: 0,
            taken_ps: 0,
            rest_ps: 0,
            watched: 0,
            looks: 0,
            loaded: false,
            debt: Debt::default(),
        };
        Self {
            caches,
            leaving: Leaving::default(),
            upgraded: Leaving::default(),
            time_ps: Figure::default(),
            thread: Figure::default(),
            state: Mutex::new(state),
        }
    }
}

impl VcpuState {
    /// Begins a block of this number of instructions, which take this long to issue.
    #[inline]
    pub fn begin_block(&mut self, instructions: u64, takes_ps: u64) {
        self.instructions += instructions;
        self.block = instructions;
        self.taken_ps += takes_ps;
    }

    /// Moves to a block; returns how the preceding branch was predicted. In a core, also requests
    /// lines on the wrong path of the branch.
    #[inline]
    pub fn comes_to(&mut self, place: Place, flow: Option<&'static Flow>) -> Prediction {
        let before = self.before;
        let prediction = self.learns(place, flow);
        let (Some((from, flow)), Some(pipeline)) = (before, &mut self.pipeline) else {
            return prediction;
        };
        if let Some(flow) = flow
            && flow.ends == Ends::Conditional
            && place.address != from.end
        {
            pipeline.jumps(flow);
        }
        let is_wrong = prediction == Prediction::Wrong;
        let mut path = Vec::new();
        if pipeline.expects_paths() {
            let paths = self.paths.get_or_insert_default();
            if is_wrong {
                path = paths.wrong(from.address, place.address);
            }
            if let Some(flow) = flow {
                paths.leads((from.address, flow), place.address);
            }
        }
        if is_wrong {
            pipeline.goes_astray(path, place.address);
        } else {
            pipeline.follows(flow, place.address, self.instructions + 1);
        }
        prediction
    }

    /// Moves to a block, and only trains the branch predictor; returns how the preceding branch was
    /// predicted.
    #[inline]
    pub fn learns(&mut self, place: Place, flow: Option<&'static Flow>) -> Prediction {
        let before = self.before.replace((place, flow));
        let (Some((from, Some(flow))), Some(pipeline)) = (before, &self.pipeline) else {
            return Prediction::Known;
        };
        if flow.ends == Ends::Known {
            return Prediction::Known;
        }
        let predictor = self.predictor.get_or_insert_with(|| Predictor::new(pipeline.family()));
        match flow.ends {
            Ends::Indirect => predictor.target(from.end, place.address),
            Ends::IndirectCall => predictor.called(from.end, place.address),
            _ if predictor.misses(from.end, place.address != from.end) => Prediction::Wrong,
            _ => Prediction::Known,
        }
    }

    /// Forgets the previous block before another thread runs, because none of its branches leads to
    /// the next block.
    pub fn forget_block(&mut self) {
        self.before = None;
    }

    /// Returns the number of the instruction at a position of the current block.
    #[inline]
    pub fn instruction(&self, position: u32) -> u64 {
        self.instructions - self.block + u64::from(position) + 1
    }

    /// Records an access; returns the number of consecutive loads of its address, and the access before them.
    #[inline]
    pub fn look(&mut self, address: u64, kind: Kind) -> u64 {
        if kind == Kind::Store || self.watched != address {
            self.watched = address;
            self.looks = 0;
        }
        self.looks += 1;
        self.loaded = kind == Kind::Load;
        self.looks
    }

    /// Returns true if the last access was a load of this address, too.
    pub fn polls(&self, address: u64) -> bool {
        self.watched == address && self.loaded
    }

    /// Returns true once for every `LOOKS` consecutive loads of one address, which a vCPU makes
    /// while it waits for another.
    #[inline]
    pub fn spins(&mut self) -> bool {
        let spins = self.looks % LOOKS == LOOKS - 1;
        self.looks += u64::from(spins);
        spins
    }

    /// Returns the number of the block's instructions after a position.
    #[inline]
    pub fn behind(&self, position: u32) -> u64 {
        self.block.saturating_sub(u64::from(position) + 1)
    }

    /// Returns the whole nanoseconds by which the clock must advance, or go back if negative.
    #[inline]
    pub fn clock_ns(&mut self, by_ps: i64) -> i64 {
        let rest_ps = self.rest_ps.cast_signed() + by_ps;
        self.rest_ps = rest_ps.rem_euclid(1000).cast_unsigned();
        rest_ps.div_euclid(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::speeds::Speeds;
    use crate::pipeline::x86::decode;

    #[test]
    fn branches_that_a_core_passes_train_its_predictor() {
        let core = Core::TYPICAL;
        let block = [decode(&[0x72, 0xfb])];
        let flow: &'static Flow = Box::leak(Box::new(Flow::at(block, (0, 2), &Speeds::of(&core))));
        let wrong = |trained: bool| {
            let vcpu = Vcpu::new(Vec::new(), None, Some(core));
            let mut state = vcpu.state.lock();
            let place = |at: u64| {
                let address = if at % 7 < 3 { 2 } else { 0x40 };
                Place { address, end: 2 }
            };
            let rounds = if trained { 5000 } else { 0 };
            (0..rounds).for_each(|at| _ = state.learns(place(at), Some(flow)));
            let mut is_wrong = |at| state.comes_to(place(at), Some(flow)) == Prediction::Wrong;
            (5000..5100).filter(|at| is_wrong(*at)).count()
        };
        let [trained, new] = [true, false].map(wrong);
        assert!(trained < 3 && new > 5, "{trained} and {new}");
    }
}
