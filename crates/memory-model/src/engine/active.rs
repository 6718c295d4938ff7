//! A vCPU at work: the blocks that it begins, and its accesses.

use spin::MutexGuard;

use super::hierarchy::Hierarchy;
use super::{Access, Engine, Mode};
use crate::counters::Figure;
use crate::elsewhere::{Shadow, There};
use crate::outcome::Outcome;
use crate::pipeline::Pipeline;
use crate::pipeline::flow::Flow;
use crate::predictor::Prediction;
use crate::vcpu::{Place, VcpuState};

/// The effect of a vCPU's block on QEMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// True if the vCPU's turn is over.
    pub over: bool,
    /// Offset of the vCPU's clock from the previous vCPU's.
    pub clock_ns: i64,
}

/// The state at the start of a thread's block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// Time waited for accesses of earlier blocks.
    pub waited_ps: u64,
    /// Time at which it continued, after waiting for accesses or results.
    pub resumed_ps: u64,
}

/// A vCPU with its thread in the model; no other thread changes its state meanwhile.
#[derive(Debug)]
pub struct Active<'a> {
    pub(super) memory: Hierarchy<'a>,
    phase: usize,
    pub(super) time_ps: &'a Figure,
    pub(super) state: MutexGuard<'a, VcpuState>,
    /// Instructions already counted, and their time.
    counted: (u64, u64),
}

impl Engine {
    /// Enters the model as a vCPU, after waiting for any other thread that is in it as the same
    /// vCPU.
    #[inline]
    pub fn enter(&self, vcpu: usize) -> Active<'_> {
        let phase = self.gate.phase();
        let state = self.vcpus[vcpu].state.lock();
        let memory = Hierarchy {
            engine: self,
            vcpu,
            home: self.arguments.machine.cpus[vcpu],
            thread: None,
            figures: self.counters.of(phase, vcpu),
            caches: &self.vcpus[vcpu].caches,
            nearest: self.vcpus[vcpu].caches.first(),
            nearest_ps: self.hit_ps.first().copied().unwrap_or(0),
        };
        Active {
            memory,
            phase,
            time_ps: &self.vcpus[vcpu].time_ps,
            counted: (state.instructions, state.taken_ps),
            state,
        }
    }

    /// Enters the model as a vCPU that now runs the thread of this number. Nothing is in flight if
    /// another thread ran there before.
    pub fn enter_as(&self, vcpu: usize, thread: usize) -> Active<'_> {
        let mut active = self.enter(vcpu);
        active.memory.thread = Some(thread);
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

impl<'a> Active<'a> {
    /// Returns the engine it belongs to.
    pub fn engine(&self) -> &'a Engine {
        self.memory.engine
    }
}

impl Active<'_> {
    /// Returns the vCPU's own time.
    #[inline]
    pub fn now_ps(&self) -> u64 {
        self.time_ps.get()
    }

    /// Advances to this time without adding to any account; never goes back.
    pub fn comes_to(&mut self, time_ps: u64) {
        self.time_ps.set(self.time_ps.get().max(time_ps));
    }

    /// Waits for all accesses in flight; returns the wait.
    pub(super) fn settles(&mut self) -> u64 {
        let time_ps = self.time_ps.get();
        let latest_ps = self.state.pipeline.as_mut().map_or(0, Pipeline::settles_ps);
        let waited_ps = latest_ps.saturating_sub(time_ps);
        self.memory.figures.time_ps.add(waited_ps);
        self.time_ps.add(waited_ps);
        waited_ps
    }

    /// Begins a block of this number of instructions on a vCPU of a machine, with its flow if
    /// known.
    #[inline]
    pub fn block(&mut self, instructions: u64, flow: Option<&'static Flow>) -> Step {
        let engine = self.memory.engine;
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
        let mut step = engine.take_turn(self.memory.vcpu, self.time_ps.get());
        // Without owners of lines, spinning cannot be detected.
        let spins = engine.owners.is_some() && self.state.spins();
        let before_ps = self.time_ps.get();
        self.begin(instructions, flow, None);
        self.count_instructions();
        if spins {
            // A vCPU that waits for another lets it run, and does not delay others.
            engine.turns.wait(self.memory.vcpu);
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

    /// Records the branch to the block at this place, which may have been mispredicted; to be
    /// called before the block begins.
    #[inline]
    pub fn branches(&mut self, place: Place, flow: Option<&'static Flow>) {
        let state = &mut *self.state;
        let prediction = state.comes_to(place, flow);
        if prediction != Prediction::Known
            && let Some(pipeline) = &mut state.pipeline
        {
            pipeline.predicts(prediction);
        }
    }

    /// Begins a block of a thread, which may also be simulated under other placements.
    #[inline]
    pub fn begin(
        &mut self,
        instructions: u64,
        flow: Option<&'static Flow>,
        mut shadow: Option<&mut Shadow>,
    ) -> Begun {
        self.keep_phase();
        let state = &mut *self.state;
        let time_ps = self.time_ps.get();
        let mut begun = Begun { waited_ps: 0, resumed_ps: time_ps };
        if let Some(pipeline) = &mut state.pipeline {
            let number = state.instructions + 1;
            if let Some(shadow) = shadow.as_deref_mut() {
                // Before the block begins: each core resolves the branch itself.
                shadow.predicts(pipeline);
            }
            let came = pipeline.begin(flow, time_ps, number);
            begun.resumed_ps = came.at_ps;
            let waited_ps = begun.resumed_ps - time_ps;
            begun.waited_ps = if came.for_access { waited_ps } else { 0 };
            if let Some(shadow) = shadow {
                shadow.begin(flow, time_ps, number, waited_ps);
            }
        }
        self.begins_at(instructions, flow, begun.resumed_ps);
        begun
    }

    /// Begins a block whose first instruction is issued at this time.
    #[inline]
    pub(super) fn begins_at(&mut self, instructions: u64, flow: Option<&Flow>, at_ps: u64) {
        let waited_ps = at_ps - self.time_ps.get();
        if waited_ps > 0 {
            self.memory.figures.time_ps.add(waited_ps);
        }
        let state = &mut *self.state;
        let takes_ps = match (&mut state.pipeline, flow) {
            (Some(pipeline), Some(flow)) => pipeline.takes_ps(flow, at_ps),
            _ => instructions * self.memory.engine.ps_own,
        };
        self.time_ps.set(at_ps + takes_ps);
        state.begin_block(instructions, takes_ps);
    }

    /// Accesses memory.
    #[inline]
    pub fn access(&mut self, access: Access) -> Outcome {
        self.keep_phase();
        let Some(target) = self.memory.engine.map.node(access.address) else {
            self.memory.figures.other.add(self.memory.engine.sampler.weight());
            return Outcome::default();
        };
        match self.quickly(access, target) {
            Some(outcome) => outcome,
            None => self.access_on(target, access, None),
        }
    }

    /// Accesses memory of the node at a position, for a thread that may also be simulated under
    /// other placements; `shadow` then has the page's place in each of them.
    #[inline]
    pub fn access_on(
        &mut self,
        target: usize,
        access: Access,
        shadow: Option<(&mut Shadow, &[There])>,
    ) -> Outcome {
        self.keep_phase();
        let weight = self.memory.engine.sampler.weight();
        self.memory.figures.nodes[target].accesses[access.kind as usize].add(weight);
        match self.state.pipeline {
            _ if self.memory.engine.is_plain => self.counted(access, target, weight),
            Some(_) => self.piped(access, target, shadow),
            None => self.modelled(access, target),
        }
    }

    /// Makes an access that counts as `weight` accesses, in a model that only counts.
    fn counted(&mut self, access: Access, target: usize, weight: u64) -> Outcome {
        let node = &self.memory.figures.nodes[target];
        let latency_ps =
            weight * self.memory.engine.costs.memory_ps(self.memory.home, target, access.kind);
        node.misses[access.kind as usize].add(weight);
        node.cost_ps.add(latency_ps);
        self.memory.figures.cost_ps.add(latency_ps);
        self.memory.figures.time_ps.add(latency_ps);
        Outcome::default()
    }

    /// Switches to the counters of the current phase.
    #[inline]
    fn keep_phase(&mut self) {
        let phase = self.memory.engine.gate.phase();
        if phase != self.phase {
            self.count_instructions();
            self.phase = phase;
            self.memory.figures = self.memory.engine.counters.of(phase, self.memory.vcpu);
        }
    }

    /// Counts the instructions begun since the last call, and their time.
    #[inline]
    fn count_instructions(&mut self) {
        let (instructions, taken_ps) = self.counted;
        let instructions = self.state.instructions - instructions;
        if instructions > 0 {
            self.memory.figures.instructions.add(instructions);
            self.memory.figures.time_ps.add(self.state.taken_ps - taken_ps);
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
