//! What each thread did to the regions, and how long it waited for what.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use numalab_memory_model::counters::{Figure, Kind};
use numalab_memory_model::engine::{Engine, Reached};
use numalab_memory_model::outcome::{Outcome, Source};

use super::page_use::PageUse;

/// Accesses that may still be waited for: twice as many as lines are on their way to a core of today.
const RECENT: usize = 32;
/// Place of [`Done::uncached`] among the figures.
const UNCACHED: usize = 9;
/// Parts in which the waiting for bandwidth is kept of an access.
const PARTS: u64 = 1 << 10;

/// What a thread did to a region's pages on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Those that reached memory.
    pub misses: u64,
    /// Time waited for all of them, in ps.
    pub waited_ps: u64,
    /// Of that, for those that reached memory.
    pub memory_ps: u64,
    /// Of that, for bandwidth.
    pub queue_ps: u64,
    /// Of `memory_ps`, what caches would have had if all threads were on one node.
    pub cached_ps: u64,
    /// Of `waited_ps`, for lines from caches of other cpus of the thread's node.
    pub near_ps: u64,
    /// The same of other nodes.
    pub far_ps: u64,
    /// Those that a shared cache had, and would not if all threads were on one node.
    pub uncached: u64,
}

/// How long a thread has waited in all, and what of its accesses to a node reached memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// In ps.
    pub waited_ps: u64,
    /// Of its accesses to the node.
    pub reached: Reached,
}

impl Waits {
    /// Of the thread at a place, now.
    #[inline]
    pub fn of(engine: &Engine, place: usize, node: usize) -> Self {
        Self { waited_ps: engine.waited_ps(place), reached: engine.reached(place, node) }
    }
}

/// An access that was made.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// Region and node.
    pub slot: usize,
    /// Load or store.
    pub kind: Kind,
    /// The page.
    pub used: &'static PageUse,
    /// Position of the thread's node.
    pub home: usize,
}

/// An access that may still be waited for.
#[derive(Debug, Default)]
struct Recent {
    done_ps: Figure,
    slot: Figure,
    /// Its page if it reached memory.
    page: AtomicPtr<PageUse>,
    /// How much of its cost was for bandwidth.
    queue: Figure,
    source: Figure,
    on_one_node: Figure,
}

type Figures = [Figure; 10];

/// Of one thread, for each region and node, which together are a slot.
#[derive(Debug, Default)]
pub struct Accesses {
    figures: OnceLock<Box<[Figures]>>,
    /// The latest accesses, in turn.
    recent: [Recent; RECENT],
    count: Figure,
    waited_ps: Figure,
}

impl Accesses {
    /// Counts an access, between what was waited and had come before and behind it. A core goes on
    /// until it needs a value: what is waited from then on is for the access that brings it.
    #[inline]
    pub fn add(&self, touch: Touch, slots: usize, waits: [Waits; 2], outcomes: [Outcome; 2]) {
        let make = || (0..slots).map(|_| Default::default()).collect::<Vec<_>>().into();
        let figures: &[Figures] = self.figures.get_or_init(make);
        let ([before, behind], [came, went]) = (waits, outcomes);
        let gap_ps = before.waited_ps.saturating_sub(self.waited_ps.get());
        self.charge_until(figures, touch.home, came.resumed_ps, gap_ps);
        let within_ps = behind.waited_ps.saturating_sub(before.waited_ps);
        let own_ps = went.own_wait_ps.min(within_ps);
        self.charge_until(figures, touch.home, went.resumed_ps, within_ps - own_ps);
        self.waited_ps.set(behind.waited_ps);
        let [loads, stores, misses, ..] = &figures[touch.slot];
        match touch.kind {
            Kind::Load => loads.add(1),
            Kind::Store => stores.add(1),
        }
        let missed = behind.reached.misses.saturating_sub(before.reached.misses);
        misses.add(missed);
        if went.source == Source::Cache && !went.own_cache && !went.on_one_node {
            figures[touch.slot][UNCACHED].add(1);
        }
        let recent = self.keep(touch, [before, behind], went);
        Self::charge(figures, touch.home, recent, own_ps);
    }

    /// Remembers an access for what is waited for it later.
    #[inline]
    fn keep(&self, touch: Touch, [before, behind]: [Waits; 2], went: Outcome) -> &Recent {
        let count = self.count.get();
        self.count.set(count + 1);
        let recent = &self.recent[usize::try_from(count).unwrap_or(0) % RECENT];
        let cost_ps = behind.reached.cost_ps.saturating_sub(before.reached.cost_ps);
        let queue_ps = behind.reached.queue_ps.saturating_sub(before.reached.queue_ps);
        let page = match went.source {
            Source::Memory => std::ptr::from_ref(touch.used).cast_mut(),
            _ => std::ptr::null_mut(),
        };
        recent.done_ps.set(went.done_ps);
        recent.slot.set(touch.slot as u64);
        recent.page.store(page, Relaxed);
        recent.queue.set(queue_ps * PARTS / cost_ps.max(1));
        recent.source.set(went.source as u64);
        recent.on_one_node.set(u64::from(went.on_one_node));
        recent
    }

    /// Waiting that ended at a time: for the access that was done then, else for the one before.
    #[inline]
    fn charge_until(&self, figures: &[Figures], home: usize, until_ps: u64, ps: u64) {
        let count = self.count.get();
        if ps == 0 || count == 0 {
            return;
        }
        let at = |back: u64| &self.recent[usize::try_from(count - back).unwrap_or(0) % RECENT];
        let backs = 1..=count.min(RECENT as u64);
        // A line on its way is asked for several times: the first one waits for what it comes from.
        let mut ended = backs.map(at).filter(|recent| recent.done_ps.get() == until_ps);
        let first = ended.next();
        let from_afar = |recent: &&Recent| recent.source.get() != Source::Cache as u64;
        let found = first.filter(from_afar).or_else(|| ended.find(from_afar)).or(first);
        Self::charge(figures, home, found.unwrap_or_else(|| at(1)), ps);
    }

    #[inline]
    fn charge(figures: &[Figures], home: usize, recent: &Recent, ps: u64) {
        if ps == 0 {
            return;
        }
        let [_, _, _, waited, memory, queue, cached, near, far, _] =
            &figures[usize::try_from(recent.slot.get()).unwrap_or(0)];
        waited.add(ps);
        let page = recent.page.load(Relaxed);
        if !page.is_null() {
            memory.add(ps);
            queue.add(ps * recent.queue.get() / PARTS);
            cached.add(ps * recent.on_one_node.get());
            // SAFETY: records of pages live for good.
            unsafe { &*page }.waited(home, ps);
        } else if recent.source.get() == Source::Near as u64 {
            near.add(ps);
        } else if recent.source.get() == Source::Far as u64 {
            far.add(ps);
        }
    }

    /// What was done to a slot.
    pub fn of(&self, slot: usize) -> Done {
        let Some(figures) = self.figures.get() else { return Done::default() };
        let [
            loads,
            stores,
            misses,
            waited_ps,
            memory_ps,
            queue_ps,
            cached_ps,
            near_ps,
            far_ps,
            uncached,
        ] = figures[slot].each_ref().map(Figure::get);
        Done {
            loads,
            stores,
            misses,
            waited_ps,
            memory_ps,
            queue_ps,
            cached_ps,
            near_ps,
            far_ps,
            uncached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_memory_model::space::Page;

    const NEVER: Outcome = Outcome {
        resumed_ps: 0,
        own_wait_ps: 0,
        done_ps: 0,
        source: Source::Cache,
        own_cache: true,
        on_one_node: false,
    };

    fn waits(waited_ps: u64, misses: u64, cost_ps: u64, queue_ps: u64) -> Waits {
        Waits { waited_ps, reached: Reached { misses, cost_ps, queue_ps } }
    }

    fn touch(slot: usize, kind: Kind) -> Touch {
        let used: &PageUse =
            Box::leak(Box::new(PageUse::new(0, Page { frame: 0, node: 0, bound: false }, 0)));
        Touch { slot, kind, used, home: 1 }
    }

    #[test]
    fn what_is_waited_for_is_the_access_that_was_done_when_the_waiting_ended() {
        let accesses = Accesses::default();
        let miss = touch(1, Kind::Load);
        let went = Outcome { done_ps: 700, source: Source::Memory, own_cache: false, ..NEVER };
        accesses.add(miss, 4, [waits(0, 0, 0, 0), waits(0, 1, 100, 50)], [NEVER, went]);
        // A hit that needed no value, and then one whose address the miss brings.
        let hit = Outcome { done_ps: 650, ..NEVER };
        let same = waits(0, 1, 100, 50);
        accesses.add(touch(2, Kind::Load), 4, [same, same], [went, hit]);
        let needs = Outcome { resumed_ps: 700, done_ps: 701, ..NEVER };
        accesses.add(touch(3, Kind::Store), 4, [same, waits(100, 1, 100, 50)], [hit, needs]);
        let first = Done {
            loads: 1,
            misses: 1,
            waited_ps: 100,
            memory_ps: 100,
            queue_ps: 50,
            ..Done::default()
        };
        assert_eq!(accesses.of(1), first);
        assert_eq!(accesses.of(2), Done { loads: 1, ..Done::default() });
        assert_eq!(accesses.of(3), Done { stores: 1, ..Done::default() });
        assert_eq!(miss.used.seen().memory_ps[1], 100);
    }

    #[test]
    fn waits_are_told_apart_by_where_lines_come_from_and_what_one_node_would_have() {
        let accesses = Accesses::default();
        let mut waited_ps = 0;
        let mut go = |source, on_one_node| {
            let before = waits(waited_ps, 0, 0, 0);
            waited_ps += 10;
            let went = Outcome { own_wait_ps: 10, source, own_cache: false, on_one_node, ..NEVER };
            accesses.add(
                touch(0, Kind::Load),
                1,
                [before, waits(waited_ps, 0, 0, 0)],
                [NEVER, went],
            );
        };
        for (source, on_one_node) in [
            (Source::Memory, true),
            (Source::Memory, false),
            (Source::Near, true),
            (Source::Far, true),
            (Source::Cache, true),
            (Source::Cache, false),
        ] {
            go(source, on_one_node);
        }
        let done = accesses.of(0);
        assert_eq!((done.waited_ps, done.memory_ps, done.cached_ps), (60, 20, 10));
        assert_eq!((done.near_ps, done.far_ps, done.uncached), (10, 10, 1));
    }
}
