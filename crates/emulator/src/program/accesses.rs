//! What each thread did to the regions, and how long it waited for what.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use numalab_memory_model::counters::{Figure, Kind};
use numalab_memory_model::engine::{Engine, Reached};

use super::page_use::PageUse;

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

/// Of one thread, for each region and node, which together are a slot.
#[derive(Debug, Default)]
pub struct Accesses {
    figures: OnceLock<Box<[[Figure; 6]]>>,
    /// The slot of the access before, its page if it reached memory, and how much of its cost was
    /// for bandwidth.
    last: Figure,
    last_page: AtomicPtr<PageUse>,
    last_queue: Figure,
    waited_ps: Figure,
}

impl Accesses {
    /// Counts an access, between what was waited before and behind it. What the thread waited since
    /// the access before was for that one: a core goes on until it needs a value.
    #[inline]
    pub fn add(&self, touch: Touch, slots: usize, [before, behind]: [Waits; 2]) {
        let make = || (0..slots).map(|_| Default::default()).collect::<Vec<_>>().into();
        let figures: &[[Figure; 6]] = self.figures.get_or_init(make);
        self.charge(figures, touch.home, before.waited_ps.saturating_sub(self.waited_ps.get()));
        let [loads, stores, misses, ..] = &figures[touch.slot];
        match touch.kind {
            Kind::Load => loads.add(1),
            Kind::Store => stores.add(1),
        }
        let missed = behind.reached.misses.saturating_sub(before.reached.misses);
        misses.add(missed);
        let page = if missed > 0 {
            std::ptr::from_ref(touch.used).cast_mut()
        } else {
            std::ptr::null_mut()
        };
        let cost_ps = behind.reached.cost_ps.saturating_sub(before.reached.cost_ps);
        let queue_ps = behind.reached.queue_ps.saturating_sub(before.reached.queue_ps);
        self.last.set(touch.slot as u64);
        self.last_page.store(page, Relaxed);
        self.last_queue.set(queue_ps * PARTS / cost_ps.max(1));
        self.waited_ps.set(behind.waited_ps);
        self.charge(figures, touch.home, behind.waited_ps.saturating_sub(before.waited_ps));
    }

    /// Waiting for the access before.
    #[inline]
    fn charge(&self, figures: &[[Figure; 6]], home: usize, ps: u64) {
        if ps == 0 {
            return;
        }
        let [_, _, _, waited, memory, queue] =
            &figures[usize::try_from(self.last.get()).unwrap_or(0)];
        waited.add(ps);
        let page = self.last_page.load(Relaxed);
        if !page.is_null() {
            memory.add(ps);
            queue.add(ps * self.last_queue.get() / PARTS);
            // SAFETY: records of pages live for good.
            unsafe { &*page }.waited(home, ps);
        }
    }

    /// What was done to a slot.
    pub fn of(&self, slot: usize) -> Done {
        let Some(figures) = self.figures.get() else { return Done::default() };
        let [loads, stores, misses, waited_ps, memory_ps, queue_ps] =
            figures[slot].each_ref().map(Figure::get);
        Done { loads, stores, misses, waited_ps, memory_ps, queue_ps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_between_two_accesses_was_for_the_first() {
        let accesses = Accesses::default();
        let used: &PageUse = Box::leak(Box::new(PageUse::new(0, 0)));
        let waits = |waited_ps, misses, cost_ps, queue_ps| Waits {
            waited_ps,
            reached: Reached { misses, cost_ps, queue_ps },
        };
        let touch = |slot, kind| Touch { slot, kind, used, home: 1 };
        accesses.add(touch(1, Kind::Load), 4, [waits(0, 0, 0, 0), waits(10, 1, 100, 50)]);
        accesses.add(touch(3, Kind::Store), 4, [waits(100, 1, 100, 50), waits(105, 1, 100, 50)]);
        let first = Done {
            loads: 1,
            misses: 1,
            waited_ps: 100,
            memory_ps: 100,
            queue_ps: 50,
            ..Done::default()
        };
        assert_eq!(accesses.of(1), first);
        assert_eq!(accesses.of(3), Done { stores: 1, waited_ps: 5, ..Done::default() });
        assert_eq!(used.seen().memory_ps[1], 100);
    }
}
