//! A vCPU at work: blocks that it begins, and accesses that it makes.

use spin::MutexGuard;

use super::{Access, Engine, Mode};
use crate::cache::Cache;
use crate::counters::{Figure, Kind, VcpuFigures};
use crate::elsewhere::{Shadow, There};
use crate::outcome::Outcome;
use crate::pipeline::Pipeline;
use crate::pipeline::flow::Flow;
use crate::vcpu::{Place, VcpuState};

/// What a block of a vCPU means for QEMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The vCPU has had its turn.
    pub over: bool,
    /// How far its own clock is from that of the vCPU before it.
    pub clock_ns: i64,
}

/// How a block of a thread begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// How long it waited for accesses that the blocks before had under way.
    pub waited_ps: u64,
    /// When it went on, having waited for those or for results.
    pub resumed_ps: u64,
}

/// A vCPU whose thread is in the model: nobody else changes its state meanwhile.
#[derive(Debug)]
pub struct Active<'a> {
    pub(super) engine: &'a Engine,
    pub(super) vcpu: usize,
    /// Position of its node.
    pub(super) home: usize,
    /// Number of the thread that runs on it, where threads are followed.
    pub(super) thread: Option<usize>,
    phase: usize,
    pub(super) figures: &'a VcpuFigures,
    pub(super) caches: &'a [Cache],
    /// The first of them, and what a hit there costs.
    pub(super) nearest: Option<&'a Cache>,
    pub(super) nearest_ps: u64,
    pub(super) time_ps: &'a Figure,
    pub(super) state: MutexGuard<'a, VcpuState>,
    /// Instructions that were counted, and how long they took to come up.
    counted: (u64, u64),
}

impl Engine {
    /// The thread of a vCPU comes to the model, and waits for another one that is there as the same
    /// vCPU.
    #[inline]
    pub fn enter(&self, vcpu: usize) -> Active<'_> {
        let phase = self.gate.phase();
        let state = self.vcpus[vcpu].state.lock();
        Active {
            engine: self,
            vcpu,
            home: self.arguments.machine.cpus[vcpu],
            thread: None,
            phase,
            figures: self.counters.of(phase, vcpu),
            caches: &self.vcpus[vcpu].caches,
            nearest: self.vcpus[vcpu].caches.first(),
            nearest_ps: self.hit_ps.first().copied().unwrap_or(0),
            time_ps: &self.vcpus[vcpu].time_ps,
            counted: (state.instructions, state.taken_ps),
            state,
        }
    }

    /// The same for the thread of this number, which runs on the vCPU now. It begins with nothing
    /// under way if another one ran there before.
    pub fn enter_as(&self, vcpu: usize, thread: usize) -> Active<'_> {
        let mut active = self.enter(vcpu);
        active.thread = Some(thread);
        let last = &self.vcpus[vcpu].thread;
        if last.get() != thread as u64 {
            last.set(thread as u64);
            active.state.forget_block();
            let latest_ps = active.state.pipeline.as_mut().map_or(0, Pipeline::drain);
            active.comes_to(latest_ps);
        }
        active
    }
}

impl Engine {
    /// How long instructions of a block take to come up.
    #[inline]
    pub(super) fn takes_ps(&self, instructions: u64, flow: Option<&Flow>) -> u64 {
        match flow {
            Some(flow) if self.arguments.machine.core.is_some() => flow.takes_ps,
            _ => instructions * self.ps_own,
        }
    }
}

impl<'a> Active<'a> {
    /// The model that it is in.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }
}

impl Active<'_> {
    /// Its own time.
    #[inline]
    pub fn now_ps(&self) -> u64 {
        self.time_ps.get()
    }

    /// It comes to this time, for nobody's account; never back.
    pub fn comes_to(&mut self, time_ps: u64) {
        self.time_ps.set(self.time_ps.get().max(time_ps));
    }

    /// It waits for all that it has under way; how long.
    pub(super) fn settles(&mut self) -> u64 {
        let time_ps = self.time_ps.get();
        let latest_ps = self.state.pipeline.as_mut().map_or(0, Pipeline::settles_ps);
        let waited_ps = latest_ps.saturating_sub(time_ps);
        self.figures.time_ps.add(waited_ps);
        self.time_ps.add(waited_ps);
        waited_ps
    }

    /// A vCPU of a machine begins a block of so many instructions, whose flow may be known.
    #[inline]
    pub fn block(&mut self, instructions: u64, flow: Option<&'static Flow>) -> Step {
        let engine = self.engine;
        if engine.is_plain {
            self.keep_phase();
            self.state.begin_block(instructions, instructions * engine.ps_own);
            self.count_instructions();
            return Step::default();
        }
        if let Some(front) = &engine.front {
            self.time_ps.set(front.meet(self.time_ps.get()));
        }
        if engine.arguments.mode != Mode::Virtual {
            self.begin(instructions, flow, None);
            self.count_instructions();
            return Step::default();
        }
        let mut step = engine.take_turn(self.vcpu, self.time_ps.get());
        // Without owners of lines nobody is seen to wait.
        let spins = engine.owners.is_some() && self.state.spins();
        let before_ps = self.time_ps.get();
        self.begin(instructions, flow, None);
        self.count_instructions();
        if spins {
            // Who waits for another one lets it run, and holds nobody up.
            engine.turns.wait(self.vcpu);
            step.over = true;
        }
        if self.state.pipeline.is_some() {
            // QEMU's clock counts the block's instructions at its own rate.
            let (own_ps, told_ps) = (self.time_ps.get() - before_ps, instructions * engine.ps_each);
            let ahead_ps = own_ps.wrapping_sub(told_ps).cast_signed();
            step.clock_ns += self.state.clock_ns(ahead_ps);
        }
        step
    }

    /// It comes to a block that lies at a place, by a branch that may have been mispredicted: to be said
    /// before it begins the block.
    #[inline]
    pub fn branches(&mut self, place: Place, flow: Option<&'static Flow>) {
        let state = &mut *self.state;
        if state.comes_to(place, flow)
            && let Some(pipeline) = &mut state.pipeline
        {
            pipeline.mispredicts();
        }
    }

    /// A thread begins a block, which may be followed elsewhere too.
    #[inline]
    pub fn begin(
        &mut self,
        instructions: u64,
        flow: Option<&'static Flow>,
        shadow: Option<&mut Shadow>,
    ) -> Begun {
        self.keep_phase();
        let state = &mut *self.state;
        let time_ps = self.time_ps.get();
        let mut begun = Begun { waited_ps: 0, resumed_ps: time_ps };
        if let Some(pipeline) = &mut state.pipeline {
            let number = state.instructions + 1;
            let mispredicted = pipeline.is_mispredicted();
            let came = pipeline.begin(flow, time_ps, number);
            begun.resumed_ps = came.at_ps;
            let waited_ps = begun.resumed_ps - time_ps;
            begun.waited_ps = if came.for_access { waited_ps } else { 0 };
            if let Some(shadow) = shadow {
                if mispredicted {
                    shadow.mispredicts();
                }
                shadow.begin(flow, time_ps, number, waited_ps);
            }
            if waited_ps > 0 {
                self.figures.time_ps.add(waited_ps);
            }
        }
        let takes_ps = self.engine.takes_ps(instructions, flow);
        self.time_ps.set(begun.resumed_ps + takes_ps);
        state.begin_block(instructions, takes_ps);
        begun
    }

    /// Accesses memory.
    #[inline]
    pub fn access(&mut self, access: Access) -> Outcome {
        self.keep_phase();
        let Some(target) = self.engine.map.node(access.address) else {
            self.figures.other.add(self.engine.sampler.weight());
            return Outcome::default();
        };
        match self.quickly(access, target) {
            Some(outcome) => outcome,
            None => self.access_on(target, access, None),
        }
    }

    /// Accesses memory of the node at a position, for a thread that may be followed elsewhere: where
    /// the page would be by the placements that are watched.
    #[inline]
    pub fn access_on(
        &mut self,
        target: usize,
        access: Access,
        shadow: Option<(&mut Shadow, &[There])>,
    ) -> Outcome {
        self.keep_phase();
        let weight = self.engine.sampler.weight();
        self.figures.nodes[target].accesses[access.kind as usize].add(weight);
        match self.state.pipeline {
            _ if self.engine.is_plain => self.counted(access, target, weight),
            Some(ref pipeline) => match pipeline.non_temporal_bytes(access.position) {
                bytes if bytes > 0 && access.kind == Kind::Store => {
                    self.past_caches(access, bytes, target, shadow)
                }
                _ => self.piped(access, target, shadow),
            },
            None => self.modelled(access, target),
        }
    }

    /// An access where nothing but counting is asked for, which stands for so many.
    fn counted(&mut self, access: Access, target: usize, weight: u64) -> Outcome {
        let node = &self.figures.nodes[target];
        let latency_ps = weight * self.engine.costs.memory_ps(self.home, target, access.kind);
        node.misses[access.kind as usize].add(weight);
        node.cost_ps.add(latency_ps);
        self.figures.cost_ps.add(latency_ps);
        self.figures.time_ps.add(latency_ps);
        Outcome::default()
    }

    /// The figures are those of the present phase.
    #[inline]
    fn keep_phase(&mut self) {
        let phase = self.engine.gate.phase();
        if phase != self.phase {
            self.count_instructions();
            self.phase = phase;
            self.figures = self.engine.counters.of(phase, self.vcpu);
        }
    }

    /// The instructions that were begun since this was done last are counted, and their time.
    #[inline]
    fn count_instructions(&mut self) {
        let (instructions, taken_ps) = self.counted;
        let instructions = self.state.instructions - instructions;
        if instructions > 0 {
            self.figures.instructions.add(instructions);
            self.figures.time_ps.add(self.state.taken_ps - taken_ps);
            self.counted = (self.state.instructions, self.state.taken_ps);
        }
    }
}

impl Drop for Active<'_> {
    #[inline]
    fn drop(&mut self) {
        self.count_instructions();
    }
}
