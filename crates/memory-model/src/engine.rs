//! The model: receives events of vCPUs, counts them, and returns their cost in time.
//!
//! It is independent of QEMU. Threads of different vCPUs may call it concurrently.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use spin::Mutex;

use crate::address::{AddressMap, Addressing};
use crate::arguments::{Arguments, Mode};
use crate::bandwidth::{Queue, queues};
use crate::cache::Cache;
use crate::channels::Channels;
use crate::cost::{Costs, ps};
use crate::counters::{Counters, Kind};
pub use crate::elsewhere::{Shadow, There};
use crate::gate::{Change, Gate};
use crate::load::{Meter, meters};
use crate::machine::{CacheLevel, Scope};
use crate::marker::Marker;
use crate::owners::Owners;
use crate::phase_names::PhaseNames;
use crate::regrouped::Regrouped;
use crate::sample::Sampler;
use crate::seats::Seats;
use crate::tlb::Tlbs;
use crate::turn::{Front, Turns};
use crate::vcpu::Vcpu;

mod active;
mod charge;
mod coherence;
mod faults;
mod hierarchy;
mod paced;
mod quick;
mod translation;
mod watch;

pub use crate::vcpu::Place;
pub use active::{Active, Begun, Step};
pub use quick::{By, Hit};

/// Time per instruction if QEMU does not report it.
pub const PS_PER_INSTRUCTION: u64 = 1000;
/// Unit of transfers from memory on machines without caches.
const LINE_BYTES: u32 = 64;

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The address that QEMU reports.
    pub address: u64,
    /// The address that the guest's program used.
    pub virtual_address: u64,
    /// Load or store.
    pub kind: Kind,
    /// Number of bytes.
    pub bytes: u8,
    /// Index of its instruction in the block, from 0.
    pub position: u32,
    /// Position of the node of the page table that maps it, if known.
    pub table: Option<usize>,
}

/// The model of a machine.
#[derive(Debug)]
pub struct Engine {
    /// The arguments of the model.
    pub arguments: Arguments,
    /// The counts so far.
    pub counters: Counters,
    /// Decides whether accesses count now.
    pub gate: Gate,
    names: Mutex<PhaseNames>,
    map: AddressMap,
    costs: Costs,
    sampler: Sampler,
    vcpus: Vec<Vcpu>,
    /// Shared caches by L3 group, nearest first.
    shared: Vec<Mutex<Vec<Cache>>>,
    /// The shared caches as with all threads on one node, if that placement is simulated.
    one_node: Option<Regrouped>,
    /// The seats of threads that fill node after node, and the shared caches under that placement,
    /// if it is simulated.
    packed: Option<(Seats, Option<Regrouped>)>,
    groups: Vec<usize>,
    hit_ps: Vec<u64>,
    /// Cost of a hit in each level of the TLBs.
    tlb_hit_ps: Vec<u64>,
    /// Time of a walk in addition to its accesses to page table entries.
    walk_ps: u64,
    /// Accesses to the host's tables per entry of a walk that is not simulated.
    assumed_nested: u64,
    bandwidth: Option<Channels<Queue>>,
    load: Option<Channels<Meter>>,
    owners: Option<Owners>,
    /// `None` if the caller keeps vCPUs aligned in time.
    front: Option<Front>,
    turns: Turns,
    /// An instruction's time by QEMU's clock, and on the modelled machine.
    ps_each: u64,
    ps_own: u64,
    line_shift: u32,
    /// True if accesses are only counted, which needs no vCPU state.
    is_plain: bool,
    now: fn() -> Duration,
}

impl Engine {
    /// Creates a model of the machine in the arguments. `now` is the host's clock, with any origin:
    /// if vCPUs sleep, accesses queue by it.
    pub fn new(
        arguments: Arguments,
        addressing: Addressing,
        ps_per_instruction: u64,
        now: fn() -> Duration,
    ) -> Self {
        let machine = &arguments.machine;
        let mut levels = machine.caches.clone();
        levels.sort_by_key(|level| level.level);
        let host_page_bytes = machine.tlb.as_ref().and_then(|tlb| tlb.host_page_bytes);
        let frame_bytes = host_page_bytes.unwrap_or(u64::MAX);
        let timing = machine.core.and_then(|core| core.timing);
        let evicts_at_random = timing.is_some_and(|timing| timing.family.evicts_at_random());
        let cache = |level: &CacheLevel| {
            let cache = Cache::scattered(level, frame_bytes);
            let is_farther_own = level.scope == Scope::Cpu && level.level > 1;
            if evicts_at_random && is_farther_own { cache.at_random() } else { cache }
        };
        let caches = |scope| {
            let of_scope = levels.iter().filter(move |level| level.scope == scope);
            of_scope.map(cache).collect::<Vec<_>>()
        };
        let lines = |level: &CacheLevel| level.size_bytes / u64::from(level.line_bytes);
        let of_own = levels.iter().filter(|level| level.scope == Scope::Cpu).map(lines);
        let own_lines = of_own.sum::<u64>() * machine.cpus.len() as u64;
        let groups = machine.groups();
        let group_count = groups.iter().max().map_or(0, |most| most + 1);
        let vcpu = |_: &usize| Vcpu::new(caches(Scope::Cpu), machine.tlb.as_ref(), machine.core);
        let line = levels.first().map_or(LINE_BYTES, |level| level.line_bytes);
        let (bandwidth, load) = (queues(machine), meters(machine));
        let is_modelled = !levels.is_empty()
            || bandwidth.is_some()
            || load.is_some()
            || machine.core.is_some()
            || machine.tlb.is_some()
            || machine.other_page_ns > 0.0;
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
            groups,
            hit_ps: levels.iter().map(|level| ps(level.latency_ns)).collect(),
            tlb_hit_ps: machine.tlb.as_ref().map_or_else(Vec::new, translation::hits_ps),
            walk_ps: machine.tlb.as_ref().map_or(0, |tlb| ps(tlb.walk_ns)),
            assumed_nested: translation::assumed_nested(machine),
            bandwidth,
            load,
            owners: machine.transfers.as_ref().map(|_| Owners::new(own_lines)),
            front: Some(Front::default()),
            turns: Turns::new(machine.cpus.len()),
            ps_each: ps_per_instruction,
            ps_own: machine.core.map_or(ps_per_instruction, |core| ps(core.ns_per_instruction)),
            line_shift: line.trailing_zeros(),
            is_plain: arguments.mode == Mode::Count && !is_modelled,
            now,
            arguments,
        }
    }

    /// Begins a block of instructions on a vCPU.
    #[inline]
    pub fn block(&self, vcpu: usize, instructions: u64) -> Step {
        self.enter(vcpu).block(instructions, None)
    }

    /// Reports whether the vCPU's next access is not sampled.
    #[inline]
    pub fn skips(&self, vcpu: usize) -> bool {
        self.sampler.skips(vcpu)
    }

    /// Reports whether a device's address is memory of a node, as CXL memory is.
    pub fn is_memory(&self, device_address: u64) -> bool {
        self.map.is_memory(device_address)
    }

    /// Counts a vCPU's access to a device.
    pub fn io(&self, vcpu: usize) {
        self.counters.of(self.gate.phase(), vcpu).io.add(self.sampler.weight());
    }

    /// Returns the position of the node with this address.
    pub fn node_of(&self, address: u64) -> Option<usize> {
        self.map.node(address)
    }

    /// Returns a vCPU's own time, on the same scale as that of other running vCPUs.
    pub fn time_ps(&self, vcpu: usize) -> u64 {
        let busy_ps = || self.counters.phases().map(|(_, of)| of[vcpu].time_ps.get()).sum();
        if self.is_plain { busy_ps() } else { self.vcpus[vcpu].time_ps.get() }
    }

    /// Records that a vCPU's thread has slept.
    pub fn slept(&self, vcpu: usize, slept: Duration) {
        self.vcpus[vcpu].state.lock().debt.slept(slept);
    }

    /// Applies a guest's marker; returns its effect, and the nanoseconds by which the clock of the
    /// marking vCPU must advance. No vCPU may be [`Active`] on the calling thread.
    pub fn mark(&self, vcpu: usize, marker: Marker) -> (Change, i64) {
        let settled_ns = self.settles(vcpu);
        let change = self.gate.mark(self.numbered(vcpu, marker));
        if change == Change::Opened {
            self.forget();
        }
        let aligns = change != Change::None && self.front.is_some();
        let behind_ns = if aligns { self.align() } else { 0 };
        // Until counting begins, every vCPU's clock is QEMU's.
        (change, if change == Change::Opened { 0 } else { settled_ns + behind_ns })
    }

    /// Waits for everything that a vCPU has in flight, so that its time covers all its
    /// instructions; returns the nanoseconds by which its clock must advance.
    fn settles(&self, vcpu: usize) -> i64 {
        let mut active = self.enter(vcpu);
        let waited_ps = active.settles();
        match self.arguments.mode {
            Mode::Virtual => active.state.clock_ns(waited_ps.cast_signed()),
            Mode::Count | Mode::Sleep => 0,
        }
    }

    /// Returns the name of a phase, if the guest gave it one.
    pub fn phase_name(&self, phase: usize) -> Option<String> {
        self.names.lock().of(phase).map(str::to_owned)
    }

    /// Returns the marker with the phase's number instead of its name.
    fn numbered(&self, vcpu: usize, marker: Marker) -> Marker {
        match marker {
            Marker::Letter(letter) => self.names.lock().spell(vcpu, letter),
            Marker::NamedPhase => {
                let entered = |phase| self.counters.is_entered(phase);
                let number = self.names.lock().number(vcpu, entered);
                return Marker::Phase(u8::try_from(number).unwrap_or(0));
            }
            Marker::HostPages(size) => self.set_host_pages(usize::from(size)),
            _ => {}
        }
        marker
    }

    /// Sets the size of the host's pages behind the guest's memory.
    fn set_host_pages(&self, size: usize) {
        let tlbs = |vcpu: &Vcpu| {
            vcpu.state.lock().tlbs.iter_mut().for_each(|tlbs| tlbs.set_host_pages(size));
        };
        self.vcpus.iter().for_each(tlbs);
    }

    /// Returns the size in bytes of the host's pages behind the guest's memory; `None` without a
    /// modelled host.
    pub fn host_page_bytes(&self) -> Option<u64> {
        self.vcpus.first()?.state.lock().tlbs.as_ref()?.host_page_bytes()
    }

    /// Returns the largest number of entries that one page walk of a vCPU has read since the size
    /// of the host's pages was set.
    pub fn longest_walk(&self, vcpu: usize) -> u64 {
        let tlbs = self.vcpus.get(vcpu).map(|vcpu| vcpu.state.lock());
        tlbs.and_then(|state| Some(state.tlbs.as_ref()?.longest_walk())).unwrap_or(0)
    }

    /// Gives the vCPU its turn, if it does not have it, and ends the turn when its time has run
    /// out.
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

    /// Clears caches and queues, because they did not see the accesses before counting began.
    fn forget(&self) {
        for vcpu in &self.vcpus {
            vcpu.caches.iter().for_each(Cache::clear);
            vcpu.state.lock().tlbs.iter().for_each(Tlbs::clear);
        }
        for group in &self.shared {
            group.lock().iter().for_each(Cache::clear);
        }
        let packed = self.packed.iter().filter_map(|(_, shared)| shared.as_ref());
        self.one_node.iter().chain(packed).for_each(Regrouped::clear);
        if let Some(bandwidth) = &self.bandwidth {
            bandwidth.each(Queue::clear);
        }
        if let Some(load) = &self.load {
            load.each(Meter::clear);
        }
        if let Some(owners) = &self.owners {
            owners.clear();
        }
    }

    /// Advances all vCPUs to the latest time, so that they continue at the same time; returns the
    /// advance of the vCPU that has its turn, in ns.
    fn align(&self) -> i64 {
        let present_ps = self.vcpus[self.turns.vcpu()].time_ps.get();
        let latest_ps = self.vcpus.iter().map(|vcpu| vcpu.time_ps.get()).max().unwrap_or(0);
        self.vcpus.iter().for_each(|vcpu| vcpu.time_ps.set(latest_ps));
        self.turns.align(latest_ps);
        nanoseconds(present_ps, latest_ps)
    }
}

/// Returns the distance between two times on a clock of whole nanoseconds.
fn nanoseconds(from_ps: u64, to_ps: u64) -> i64 {
    (to_ps / 1000).wrapping_sub(from_ps / 1000).cast_signed()
}

#[cfg(test)]
mod tests;
