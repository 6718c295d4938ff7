//! The memory system as one vCPU sees it: levels of caches, the directory of lines
//! ([`super::coherence`]), page tables ([`super::translation`]), and the way to each node's memory.
//! Nothing else looks for lines.

use super::{Access, Engine, Mode};
use crate::cache::{Cache, Reply as Looked};
use crate::counters::{Kind, VcpuFigures};
use crate::outcome::Source;
use crate::pipeline::{Line, Miss};
use crate::recent_pages::RecentPages;
use crate::regrouped::Regrouped;
use crate::vcpu::VcpuState;

/// A vCPU's view of the memory system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hierarchy<'a> {
    pub engine: &'a Engine,
    pub vcpu: usize,
    /// Position of the vCPU's node.
    pub home: usize,
    /// Number of the thread on the vCPU, if threads are followed.
    pub thread: Option<usize>,
    pub figures: &'a VcpuFigures,
    pub caches: &'a [Cache],
    /// The nearest cache, and the cost of a hit.
    pub nearest: Option<&'a Cache>,
    pub nearest_ps: u64,
}

/// A line that comes from another vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transfer {
    /// Time from the access's begin on after which the transfer can begin.
    pub after_ps: u64,
    /// Cost of the transfer.
    pub cost_ps: u64,
    /// True if the line was written longer ago than a core runs ahead: no instruction waits for its
    /// value, so it is taken like a line of memory, overlapping with others.
    pub is_old: bool,
    /// True if the line comes from another node.
    pub far: bool,
    /// The lowest bits of the number of the thread that wrote the line.
    pub from: u8,
}

/// The answer to an access: what has its line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reply {
    /// The nearest level of the machine's caches that has the line.
    pub level: Option<usize>,
    /// True if that level is a private cache of the vCPU.
    pub own: bool,
    /// True if a shared cache would have the line with all threads on one node.
    pub on_one_node: bool,
    /// True if a shared cache would have the line with threads that fill node after node.
    pub packed: bool,
    /// True if another vCPU is taking the line, so the next access will not find it.
    pub leaves: bool,
    /// True if the nearest cache evicts a modified line to make room.
    pub goes_back: bool,
    /// The transfer from another vCPU that the access needs.
    pub transfer: Option<Transfer>,
    /// True for a store past the caches. If its line is already on its way to memory, level 0 has it.
    pub past: bool,
}

impl Reply {
    /// The nearest cache has it.
    const NEAREST: Self = Self {
        level: Some(0),
        own: true,
        on_one_node: false,
        packed: false,
        leaves: false,
        goes_back: false,
        transfer: None,
        past: false,
    };

    /// Returns the source of the line, which may already be in flight.
    pub fn source(&self, is_under_way: bool) -> Source {
        match self.transfer {
            Some(Transfer { far: true, .. }) => Source::Far,
            Some(_) => Source::Near,
            None if is_under_way || self.level.is_some() => Source::Cache,
            None => Source::Memory,
        }
    }

    /// Returns the line as a core with this number of private caches gets it, if this level has it.
    #[inline(always)]
    pub fn line(&self, level: Option<usize>, own: usize) -> Line {
        if self.past {
            return Line::Past { begins: self.level.is_none() };
        }
        match (self.transfer, level) {
            (Some(Transfer { is_old: false, after_ps, .. }), _) => Line::Core { after_ps },
            (None, Some(0)) => Line::Nearest,
            (transfer, level) => {
                let miss = Miss::new(level, own, self.goes_back);
                Line::Farther { miss, is_taken: transfer.is_some() }
            }
        }
    }
}

/// The time of a line that the nearest cache does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fetched {
    /// All of it.
    pub takes_ps: u64,
    /// Waiting for bandwidth.
    pub queue_ps: u64,
    /// Cost of leaving the pages that were read last.
    pub page_ps: u64,
}

impl Hierarchy<'_> {
    /// Looks for the line of an access that would begin at `begin_ps`. Inlined: with a call, a miss
    /// takes a quarter longer on the host.
    #[inline(always)]
    pub fn answers(&self, state: &mut VcpuState, access: &Access, begin_ps: u64) -> Reply {
        let found = self.looks_up(access.address, access.kind, begin_ps);
        if self.leaves(state, access, begin_ps, found.own) {
            return Reply { leaves: true, ..Reply::NEAREST };
        }
        Reply { transfer: self.transfer(state, access, begin_ps, found.own), ..found }
    }

    /// Looks up an address in the caches. All of them have its line afterwards, and modified lines
    /// that they evict are written back.
    #[inline]
    pub fn looks_up(&self, address: u64, kind: Kind, time_ps: u64) -> Reply {
        let stores = kind == Kind::Store;
        let requests = |(level, cache): (usize, &Cache)| {
            let Looked { held, evicted } = cache.request(address, stores && level == 0, time_ps);
            evicted.iter().for_each(|line| self.goes_back(level + 1, *line, time_ps));
            (held, evicted.is_some())
        };
        let (held, goes_back) = self.nearest.map_or((false, false), |cache| requests((0, cache)));
        if held {
            return Reply::NEAREST;
        }
        let mut others = self.caches.iter().enumerate().skip(1);
        let level = others.find(|of| requests(*of).0).map(|(level, _)| level);
        if level.is_some() {
            return Reply { level, own: true, goes_back, ..Reply::default() };
        }
        let engine = self.engine;
        let group = engine.groups[self.vcpu];
        // Found here, unless the caches are like the machine's.
        let would_have = |regrouped: Option<&Regrouped>| {
            let (thread, of) = self.thread.zip(regrouped)?;
            let is_alike = of.is_alike(thread, group, &engine.shared);
            Some((!is_alike).then(|| of.access(thread, address, time_ps)))
        };
        let on_one_node = would_have(engine.one_node.as_ref());
        let packed = engine.packed.as_ref().and_then(|(_, shared)| shared.as_ref());
        let packed = would_have(packed);
        let own = self.caches.len();
        let level = if own == engine.hit_ps.len() {
            None
        } else {
            let shared = engine.shared[group].lock();
            let requests = |(at, cache): (usize, &Cache)| {
                let Looked { held, evicted } =
                    cache.request(address, stores && own + at == 0, time_ps);
                let farther = shared.iter().skip(at + 1);
                let evicted = evicted.and_then(|line| taken_back(farther, line, time_ps));
                evicted.iter().for_each(|line| self.written_back(*line, time_ps));
                held
            };
            shared.iter().enumerate().position(requests).map(|at| own + at)
        };
        let [on_one_node, packed] = [on_one_node, packed]
            .map(|found| found.is_some_and(|found| found.unwrap_or(level.is_some())));
        // If all threads are on one node anyway, its shared caches have the same content as the
        // actual ones.
        let on_one_node = on_one_node || (engine.one_node.is_none() && level.is_some());
        Reply { level, on_one_node, packed, goes_back, ..Reply::default() }
    }

    /// Moves a modified line that a cache evicts to the caches from this level on, or to memory.
    fn goes_back(&self, level: usize, line: u64, time_ps: u64) {
        let own = self.caches.len();
        let Some(line) = taken_back(self.caches.iter().skip(level), line, time_ps) else { return };
        let shared = self.engine.shared[self.engine.groups[self.vcpu]].lock();
        let line = taken_back(shared.iter().skip(level.saturating_sub(own)), line, time_ps);
        drop(shared);
        line.iter().for_each(|line| self.written_back(*line, time_ps));
    }

    /// Writes a line to memory, without waiting for it.
    fn written_back(&self, line: u64, time_ps: u64) {
        if let Some(node) = self.engine.map.node(line) {
            self.figures.nodes[node].written_back.add(1);
            self.queued(time_ps, node, [0, 1 << self.engine.line_shift]);
        }
    }

    /// Fetches the line of an access from the place that the reply names, or sends it past the caches
    /// to memory; counts a miss if it is one.
    #[inline]
    pub fn fetches(
        &self,
        recent_pages: &mut RecentPages,
        access: &Access,
        (reply, target): (&Reply, usize),
        begin_ps: u64,
    ) -> Fetched {
        let engine = self.engine;
        match (reply.transfer, reply.level) {
            (Some(Transfer { cost_ps, .. }), _) => {
                return Fetched { takes_ps: cost_ps, ..Fetched::default() };
            }
            (None, Some(_)) if reply.past => return Fetched::default(),
            (None, Some(level)) => {
                return Fetched { takes_ps: engine.hit_ps[level], ..Fetched::default() };
            }
            (None, None) => {}
        }
        let line_bytes = 1 << engine.line_shift;
        let moved = if reply.past { [0, line_bytes] } else { engine.moved(access.kind) };
        let queue_ps = self.queued(begin_ps, target, moved);
        let other_page_ps = if reply.past { 0 } else { engine.costs.other_page_ps };
        let leaves = other_page_ps > 0 && recent_pages.enters(access.address);
        let page_ps = if leaves { other_page_ps } else { 0 };
        let memory_ps = engine.costs.memory_ps(self.home, target, access.kind);
        let takes_ps = memory_ps.saturating_add(queue_ps).saturating_add(page_ps);
        let node = &self.figures.nodes[target];
        node.misses[access.kind as usize].add(1);
        node.cost_ps.add(takes_ps);
        node.queue_ps.add(queue_ps);
        Fetched { takes_ps, queue_ps, page_ps }
    }

    /// Returns the additional time of a line because of other traffic: waiting for bandwidth, or
    /// higher latency under load.
    pub fn queued(&self, own_ps: u64, target: usize, bytes: [u64; 2]) -> u64 {
        let engine = self.engine;
        if engine.bandwidth.is_none() && engine.load.is_none() {
            return 0;
        }
        let host_ps = || u64::try_from((engine.now)().as_nanos()).unwrap_or(0).saturating_mul(1000);
        let time_ps = match engine.arguments.mode {
            Mode::Sleep => host_ps(),
            Mode::Count | Mode::Virtual => own_ps,
        };
        let line = 1_u32 << engine.line_shift;
        let way = (self.home, target);
        let bandwidth = engine.bandwidth.as_ref();
        let wait_ps =
            bandwidth.map_or(0, |of| of.most(way, |queue| queue.wait_ps(self.vcpu, time_ps, line)));
        let load = engine.load.as_ref();
        let rise_ps = load.map_or(0, |of| of.most(way, |meter| meter.rise_ps(time_ps, bytes)));
        wait_ps.saturating_add(rise_ps)
    }

    /// Removes a line that is stored past the caches from all that see the store; modified data goes
    /// to memory first.
    pub fn removes(&self, state: &mut VcpuState, access: &Access, now_ps: u64) {
        let (engine, address) = (self.engine, access.address);
        let mut modified = Cache::lose_all(self.caches, address);
        let group = engine.groups[self.vcpu];
        if let Some(thread) = self.thread {
            let packed = engine.packed.as_ref().and_then(|(_, shared)| shared.as_ref());
            let regrouped = engine.one_node.iter().chain(packed);
            regrouped
                .filter(|shared| !shared.is_alike(thread, group, &engine.shared))
                .for_each(|shared| shared.lose(thread, address));
        }
        modified |= Cache::lose_all(engine.shared[group].lock().iter(), address);
        if let Some(owners) = &engine.owners {
            state.look(address, access.kind);
            if owners.forget(address >> engine.line_shift, self.vcpu) {
                let others = (0..engine.vcpus.len()).filter(|&other| other != self.vcpu);
                others.for_each(|other| modified |= engine.take_away(address, self.vcpu, other));
            }
        }
        if modified {
            self.written_back(address, now_ps);
        }
    }
}

/// Inserts a modified line into the first of these caches, which may evict another one, and so on;
/// returns the line that the last one evicts.
fn taken_back<'a>(
    mut caches: impl Iterator<Item = &'a Cache>,
    line: u64,
    time_ps: u64,
) -> Option<u64> {
    caches.try_fold(line, |line, cache| cache.request(line, true, time_ps).evicted)
}

impl Engine {
    /// Returns the place of an address's line in the directory; 0 without one.
    #[inline]
    pub(super) fn place_number(&self, address: u64) -> u32 {
        self.owners.as_ref().map_or(0, |owners| owners.place_number(address >> self.line_shift))
    }

    /// Returns the bytes read and written by an access that misses the caches, if there are any: a
    /// cache reads the line that a store misses.
    pub(super) fn moved(&self, kind: Kind) -> [u64; 2] {
        let reads = kind == Kind::Load || !self.arguments.machine.caches.is_empty();
        [reads, !reads].map(|moves| u64::from(moves) << self.line_shift)
    }
}
