//! The model: takes events of vCPUs, counts, and says what time they take.
//!
//! Knows nothing of QEMU. Threads of different vCPUs may call it at once.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use spin::Mutex;

use crate::address::{AddressMap, Addressing};
use crate::arguments::{Arguments, Mode};
use crate::bandwidth::Bandwidth;
use crate::cache::Cache;
use crate::cost::{Costs, ps};
use crate::counters::{Counters, Kind, VcpuFigures};
pub use crate::elsewhere::There;
use crate::gate::{Change, Gate};
use crate::load::Load;
use crate::machine::{CacheLevel, Scope};
use crate::marker::Marker;
use crate::owners::Owners;
use crate::phase_names::PhaseNames;
use crate::pipeline::flow::Flow;
use crate::regrouped::Regrouped;
use crate::sample::Sampler;
use crate::seats::Seats;
use crate::tlb::Tlbs;
use crate::turn::{Front, Turns};
use crate::vcpu::Vcpu;

/// Without QEMU's word for it, an instruction takes a nanosecond.
pub const PS_PER_INSTRUCTION: u64 = 1000;

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Who.
    pub vcpu: usize,
    /// Where, as QEMU says it.
    pub address: u64,
    /// The address that the guest's program used.
    pub virtual_address: u64,
    /// Load or store.
    pub kind: Kind,
    /// Place of its instruction in the block, from 0.
    pub position: u32,
}

/// Accesses to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Those that reached memory.
    pub misses: u64,
    /// What all took, in ps.
    pub cost_ps: u64,
    /// Of that, waiting for bandwidth.
    pub queue_ps: u64,
}

/// What must be done for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// The guest's clock goes on by so many nanoseconds.
    Advance(u64),
    /// The vCPU's thread sleeps.
    Sleep(Duration),
}

/// The model of a machine.
#[derive(Debug)]
pub struct Engine {
    /// What was asked for.
    pub arguments: Arguments,
    /// What was counted.
    pub counters: Counters,
    /// Whether it counts now.
    pub gate: Gate,
    names: Mutex<PhaseNames>,
    map: AddressMap,
    costs: Costs,
    sampler: Sampler,
    vcpus: Vec<Vcpu>,
    /// Shared caches by L3 group, nearest first.
    shared: Vec<Mutex<Vec<Cache>>>,
    /// What they would hold if all vCPUs were on one node, where that is asked for.
    one_node: Option<Regrouped>,
    /// The same if vCPUs filled node after node, and where they would be.
    packed: Option<(Seats, Option<Regrouped>)>,
    /// Other placements that are watched, as the program's pages would lie by them.
    elsewhere: usize,
    groups: Vec<usize>,
    hit_ps: Vec<u64>,
    /// A hit in each level of the TLBs.
    tlb_hit_ps: Vec<u64>,
    bandwidth: Option<Mutex<Bandwidth>>,
    load: Option<Mutex<Load>>,
    owners: Option<Owners>,
    front: Front,
    turns: Turns,
    /// An instruction's time by QEMU's clock, and by the machine.
    ps_each: u64,
    ps_own: u64,
    line_shift: u32,
    now: fn() -> Duration,
}

impl Engine {
    /// A model of the machine in the arguments; `now` is the host's clock, from any time on, by
    /// which accesses queue where vCPUs sleep.
    pub fn new(
        arguments: Arguments,
        addressing: Addressing,
        ps_per_instruction: u64,
        now: fn() -> Duration,
    ) -> Self {
        let machine = &arguments.machine;
        let mut levels = machine.caches.clone();
        levels.sort_by_key(|level| level.level);
        let caches = |scope| {
            let of_scope = levels.iter().filter(move |level| level.scope == scope);
            of_scope.map(Cache::new).collect::<Vec<_>>()
        };
        let lines = |level: &CacheLevel| level.size_bytes / u64::from(level.line_bytes);
        let of_own = levels.iter().filter(|level| level.scope == Scope::Cpu).map(lines);
        let own_lines = of_own.sum::<u64>() * machine.cpus.len() as u64;
        let groups = machine.groups();
        let group_count = groups.iter().max().map_or(0, |most| most + 1);
        let vcpu = |_: &usize| Vcpu::new(caches(Scope::Cpu), machine.tlb.as_ref(), machine.core);
        let line = levels.first().map_or(LINE_BYTES, |level| level.line_bytes);
        Self {
            counters: Counters::new(machine.cpus.len(), machine.nodes.len()),
            gate: Gate::new(arguments.start),
            names: Mutex::new(PhaseNames::new(machine.cpus.len())),
            map: AddressMap::new(machine, addressing),
            costs: Costs::new(machine),
            sampler: Sampler::new(machine.cpus.len(), arguments.sample),
            vcpus: machine.cpus.iter().map(vcpu).collect(),
            shared: (0..group_count).map(|_| Mutex::new(caches(Scope::Group))).collect(),
            one_node: None,
            packed: None,
            elsewhere: 0,
            groups,
            hit_ps: levels.iter().map(|level| ps(level.latency_ns)).collect(),
            tlb_hit_ps: machine.tlb.as_ref().map_or_else(Vec::new, translation::hits_ps),
            bandwidth: Bandwidth::new(machine).map(Mutex::new),
            load: Load::new(machine).map(Mutex::new),
            owners: machine.transfers.as_ref().map(|_| Owners::new(own_lines)),
            front: Front::default(),
            turns: Turns::new(machine.cpus.len()),
            ps_each: ps_per_instruction,
            ps_own: machine.core.map_or(ps_per_instruction, |core| ps(core.ns_per_instruction)),
            line_shift: line.trailing_zeros(),
            now,
            arguments,
        }
    }

    /// A vCPU begins a block.
    #[inline]
    pub fn block(&self, vcpu: usize, instructions: u64) -> Step {
        self.begin(vcpu, instructions, None)
    }

    /// A vCPU begins a block whose flow is known.
    #[inline]
    pub fn block_of(&self, vcpu: usize, flow: &'static Flow) -> Step {
        self.begin(vcpu, flow.instructions, Some(flow))
    }

    #[inline]
    fn begin(&self, vcpu: usize, instructions: u64, flow: Option<&'static Flow>) -> Step {
        let figures = self.figures(vcpu);
        figures.instructions.add(instructions);
        figures.time_ps.add(instructions * self.ps_own);
        if self.is_plain() {
            return Step::default();
        }
        let state = &self.vcpus[vcpu];
        let time_ps = self.front.meet(state.time_ps.get());
        state.time_ps.set(time_ps);
        let mut step = match self.arguments.mode {
            Mode::Virtual => self.take_turn(vcpu, time_ps),
            Mode::Count | Mode::Sleep => Step::default(),
        };
        if self.arguments.mode == Mode::Virtual && state.spins() {
            // Who waits for another one lets it run, and holds nobody up.
            self.turns.wait(vcpu);
            step.over = true;
        }
        if let Some(pipeline) = &state.pipeline {
            let begin_ps = pipeline.lock().begin(flow, time_ps, state.instructions.get() + 1);
            let waited_ps = begin_ps - time_ps;
            if self.elsewhere > 0 {
                let number = state.instructions.get() + 1;
                let mut others = state.elsewhere.lock();
                others.iter_mut().for_each(|core| core.begin(flow, time_ps, number, waited_ps));
            }
            if waited_ps > 0 {
                state.last.resumes(begin_ps);
            }
            state.time_ps.set(begin_ps);
            figures.time_ps.add(waited_ps);
            // QEMU's clock counts the block's instructions at its own rate.
            let (own_ps, told_ps) = (instructions * self.ps_own, instructions * self.ps_each);
            step.clock_ns +=
                state.clock_ns((waited_ps + own_ps).wrapping_sub(told_ps).cast_signed());
        }
        state.begin_block(instructions, self.ps_own);
        step
    }

    /// Whether this access of the vCPU is not one of the sample.
    #[inline]
    pub fn skips(&self, vcpu: usize) -> bool {
        self.sampler.skips(vcpu)
    }

    /// Whether a device's address is that of a node's memory, as those of CXL memory are.
    pub fn is_memory(&self, device_address: u64) -> bool {
        self.map.is_memory(device_address)
    }

    /// A vCPU asks a device.
    pub fn io(&self, vcpu: usize) {
        self.figures(vcpu).io.add(self.sampler.weight());
    }

    /// A vCPU accesses memory.
    #[inline]
    pub fn access(&self, access: Access) -> Effect {
        self.access_beside(access, &[])
    }

    /// The same for a page that would be there by the placements that are watched.
    #[inline]
    pub fn access_beside(&self, access: Access, elsewhere: &[There]) -> Effect {
        let figures = self.figures(access.vcpu);
        let weight = self.sampler.weight();
        let Some(target) = self.map.node(access.address) else {
            figures.other.add(weight);
            return Effect::None;
        };
        let node = &figures.nodes[target];
        node.accesses[access.kind as usize].add(weight);
        let initiator = self.arguments.machine.cpus[access.vcpu];
        let latency_ps = self.costs.memory_ps(initiator, target, access.kind);
        if self.is_plain() {
            node.misses[access.kind as usize].add(weight);
            node.cost_ps.add(weight * latency_ps);
            figures.cost_ps.add(weight * latency_ps);
            figures.time_ps.add(weight * latency_ps);
            return Effect::None;
        }
        match &self.vcpus[access.vcpu].pipeline {
            Some(pipeline) => {
                self.through_core(access, &mut pipeline.lock(), (target, latency_ps), elsewhere)
            }
            None => self.modelled(access, figures, target, latency_ps),
        }
    }

    /// Position of the node that an address lies on.
    pub fn node_of(&self, address: u64) -> Option<usize> {
        self.map.node(address)
    }

    /// A vCPU's own time: on one scale with the others', as far as they run.
    pub fn time_ps(&self, vcpu: usize) -> u64 {
        if self.is_plain() { self.busy_ps(vcpu) } else { self.vcpus[vcpu].time_ps.get() }
    }

    /// A vCPU's thread has slept.
    pub fn slept(&self, vcpu: usize, slept: Duration) {
        self.vcpus[vcpu].debt.lock().slept(slept);
    }

    /// A guest's marker: what it changed, and how far the clock of the vCPU that says it
    /// must go on.
    pub fn mark(&self, vcpu: usize, marker: Marker) -> (Change, i64) {
        let change = self.gate.mark(self.numbered(vcpu, marker));
        if change == Change::Opened {
            self.forget();
        }
        let behind_ns = if change == Change::None { 0 } else { self.align() };
        // Before counting began, nobody's own clock was anything but QEMU's.
        (change, if change == Change::Opened { 0 } else { behind_ns })
    }

    /// The name of a phase, if the guest gave it one.
    pub fn phase_name(&self, phase: usize) -> Option<String> {
        self.names.lock().of(phase).map(str::to_owned)
    }

    /// The marker, with the phase's number instead of its name.
    fn numbered(&self, vcpu: usize, marker: Marker) -> Marker {
        match marker {
            Marker::Letter(letter) => self.names.lock().spell(vcpu, letter),
            Marker::NamedPhase => {
                let entered = |phase| self.counters.is_entered(phase);
                let number = self.names.lock().number(vcpu, entered);
                return Marker::Phase(u8::try_from(number).unwrap_or(0));
            }
            _ => {}
        }
        marker
    }

    /// Gives the vCPU its turn, if it has none, and ends it in time.
    #[inline]
    fn take_turn(&self, vcpu: usize, time_ps: u64) -> Step {
        let before = self.turns.vcpu();
        let mut clock_ns = 0;
        if before != vcpu {
            let came_to_ps = self.vcpus[before].time_ps.get();
            clock_ns = nanoseconds(came_to_ps, time_ps);
            self.turns.pass(came_to_ps, vcpu, time_ps);
        }
        let over = self.turns.is_over(time_ps);
        if over {
            self.turns.pass(time_ps, vcpu, time_ps);
        }
        Step { over, clock_ns }
    }

    /// Whether nothing but counting is asked for, which needs no state of the vCPU.
    #[inline]
    fn is_plain(&self) -> bool {
        self.arguments.mode == Mode::Count
            && self.hit_ps.is_empty()
            && self.bandwidth.is_none()
            && self.load.is_none()
            && self.arguments.machine.core.is_none()
            && self.arguments.machine.tlb.is_none()
    }

    fn figures(&self, vcpu: usize) -> &VcpuFigures {
        self.counters.of(self.gate.phase(), vcpu)
    }

    /// Caches and queues saw nothing of what ran while nothing counted.
    fn forget(&self) {
        for vcpu in &self.vcpus {
            vcpu.caches.iter().for_each(Cache::clear);
            vcpu.tlbs.iter().for_each(Tlbs::clear);
        }
        for group in &self.shared {
            group.lock().iter().for_each(Cache::clear);
        }
        let packed = self.packed.iter().filter_map(|(_, shared)| shared.as_ref());
        self.one_node.iter().chain(packed).for_each(Regrouped::clear);
        if let Some(bandwidth) = &self.bandwidth {
            bandwidth.lock().clear();
        }
        if let Some(load) = &self.load {
            load.lock().clear();
        }
        if let Some(owners) = &self.owners {
            owners.clear();
        }
    }

    /// All vCPUs' times become the latest one: what follows begins together. How far that
    /// is for the one whose turn it is.
    fn align(&self) -> i64 {
        let present_ps = self.vcpus[self.turns.vcpu()].time_ps.get();
        let latest_ps = self.vcpus.iter().map(|vcpu| vcpu.time_ps.get()).max().unwrap_or(0);
        self.vcpus.iter().for_each(|vcpu| vcpu.time_ps.set(latest_ps));
        self.turns.align(latest_ps);
        nanoseconds(present_ps, latest_ps)
    }
}

/// What a block of a vCPU means for QEMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The vCPU has had its turn.
    pub over: bool,
    /// How far its own clock is from that of the vCPU before it.
    pub clock_ns: i64,
}

/// How far it is from one time to another on a clock of whole nanoseconds.
fn nanoseconds(from_ps: u64, to_ps: u64) -> i64 {
    (to_ps / 1000).wrapping_sub(from_ps / 1000).cast_signed()
}

/// What memory moves at a time, where no cache says it.
const LINE_BYTES: u32 = 64;

mod charge;
mod coherence;
mod past_caches;
mod translation;
mod watch;

#[cfg(test)]
mod tests;
