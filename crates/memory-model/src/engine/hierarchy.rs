//! The levels of caches: those that have a line, and what they evict.

use super::Active;
use crate::cache::{Cache, Reply};
use crate::counters::Kind;
use crate::regrouped::Regrouped;

/// The caches that have a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InCaches {
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
}

impl InCaches {
    /// The nearest cache has it.
    pub const NEAREST: Self = Self {
        level: Some(0),
        own: true,
        on_one_node: false,
        packed: false,
        leaves: false,
        goes_back: false,
    };
}

impl Active<'_> {
    /// Looks up an address in the caches. All of them have its line afterwards, and modified lines
    /// that they evict are written back.
    #[inline]
    pub(super) fn hit(&self, address: u64, kind: Kind, time_ps: u64) -> InCaches {
        let stores = kind == Kind::Store;
        let requests = |(level, cache): (usize, &Cache)| {
            let Reply { held, evicted } = cache.request(address, stores && level == 0, time_ps);
            evicted.iter().for_each(|line| self.goes_back(level + 1, *line, time_ps));
            (held, evicted.is_some())
        };
        let (held, goes_back) = self.nearest.map_or((false, false), |cache| requests((0, cache)));
        if held {
            return InCaches::NEAREST;
        }
        let mut others = self.caches.iter().enumerate().skip(1);
        let level = others.find(|of| requests(*of).0).map(|(level, _)| level);
        if level.is_some() {
            return InCaches { level, own: true, goes_back, ..InCaches::default() };
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
                let Reply { held, evicted } =
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
        InCaches { level, own: false, on_one_node, packed, leaves: false, goes_back }
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
    pub(super) fn written_back(&self, line: u64, time_ps: u64) {
        if let Some(node) = self.engine.map.node(line) {
            self.figures.nodes[node].written_back.add(1);
            self.queued(time_ps, node, [0, 1 << self.engine.line_shift]);
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
