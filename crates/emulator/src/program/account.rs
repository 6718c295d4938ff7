//! What a thread did to the regions, and how long it waited for what.

use numalab_memory_model::counters::Kind;
use numalab_memory_model::outcome::{Outcome, Source};

use super::page_use::PageUse;

/// Accesses that are remembered of each kind: twice as many as lines are on their way to a core of today.
const RECENT: usize = 32;
/// Parts in which the waiting for bandwidth is kept of an access.
const PARTS: u64 = 1 << 10;

/// What a thread did to a region's pages on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Loads and stores.
    pub accesses: [u64; 2],
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
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    done_ps: u64,
    slot: usize,
    source: Source,
    on_one_node: bool,
    /// Its page and the thread's node, if it reached memory.
    page: Option<(&'static PageUse, usize)>,
    /// How much of its cost was for bandwidth.
    queue_parts: u64,
}

/// The latest accesses of a kind, in turn.
#[derive(Debug, Default)]
struct Latest {
    all: [Recent; RECENT],
    count: usize,
}

impl Latest {
    fn add(&mut self, recent: Recent) {
        self.all[self.count % RECENT] = recent;
        self.count += 1;
    }

    fn last(&self) -> Option<Recent> {
        self.count.checked_sub(1).map(|last| self.all[last % RECENT])
    }

    /// The first of those that were done at a time: a line on its way is asked for several times, and
    /// the first one waits for what it comes from.
    fn done_at(&self, done_ps: u64) -> Option<Recent> {
        let from = self.count.saturating_sub(RECENT);
        (from..self.count).map(|at| self.all[at % RECENT]).find(|of| of.done_ps == done_ps)
    }
}

/// Of one thread, for each region and node, which together are a slot.
#[derive(Debug, Default)]
pub struct Account {
    done: Vec<Done>,
    latest: Latest,
    /// Those whose line came from memory or another core: many accesses to lines that a core has may
    /// follow before it waits for one of these.
    from_afar: Latest,
}

impl Account {
    /// Counts an access, and what was waited around it. A core goes on until it needs a value: what is
    /// waited from then on is for the access that brings it.
    #[inline]
    pub fn add(&mut self, touch: Touch, outcome: &Outcome) {
        if outcome.waited_ps > outcome.own_wait_ps {
            self.waits(outcome.resumed_ps, outcome.waited_ps - outcome.own_wait_ps);
        }
        if self.done.len() <= touch.slot {
            self.done.resize(touch.slot + 1, Done::default());
        }
        let done = &mut self.done[touch.slot];
        done.accesses[touch.kind as usize] += 1;
        done.misses += u64::from(outcome.missed);
        let lost = outcome.source == Source::Cache && !outcome.own_cache && !outcome.on_one_node;
        done.uncached += u64::from(lost);
        let recent = self.keep(touch, outcome);
        self.charge(recent, outcome.own_wait_ps);
    }

    /// So many loads and stores were made that waited for nothing of their own.
    #[inline]
    pub fn count(&mut self, slot: usize, [loads, stores]: [u64; 2]) {
        let done = &mut self.done[slot].accesses;
        (done[0], done[1]) = (done[0] + loads, done[1] + stores);
    }

    /// It waited until a time: for the access that was done then, else for the one before.
    #[inline]
    pub fn waits(&mut self, until_ps: u64, waited_ps: u64) {
        let Some(last) = self.latest.last().filter(|_| waited_ps > 0) else { return };
        let found = self.from_afar.done_at(until_ps).or_else(|| self.latest.done_at(until_ps));
        self.charge(found.unwrap_or(last), waited_ps);
    }

    /// Remembers an access for what is waited for it later.
    fn keep(&mut self, touch: Touch, outcome: &Outcome) -> Recent {
        let is_memory = outcome.source == Source::Memory;
        let recent = Recent {
            done_ps: outcome.done_ps,
            slot: touch.slot,
            source: outcome.source,
            on_one_node: outcome.on_one_node,
            page: is_memory.then_some((touch.used, touch.home)),
            queue_parts: outcome.queue_ps * PARTS / outcome.cost_ps.max(1),
        };
        self.latest.add(recent);
        if outcome.source != Source::Cache {
            self.from_afar.add(recent);
        }
        recent
    }

    fn charge(&mut self, recent: Recent, ps: u64) {
        if ps == 0 {
            return;
        }
        let done = &mut self.done[recent.slot];
        done.waited_ps += ps;
        match (recent.page, recent.source) {
            (Some((page, home)), _) => {
                done.memory_ps += ps;
                done.queue_ps += ps * recent.queue_parts / PARTS;
                done.cached_ps += ps * u64::from(recent.on_one_node);
                page.waited(home, ps);
            }
            (None, Source::Near) => done.near_ps += ps,
            (None, Source::Far) => done.far_ps += ps,
            (None, Source::Cache | Source::Memory) => {}
        }
    }

    /// What was done, by slot.
    pub fn all(&self) -> &[Done] {
        &self.done
    }

    /// What was done to a slot.
    pub fn of(&self, slot: usize) -> Done {
        self.done.get(slot).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_memory_model::space::Page;

    fn touch(slot: usize, kind: Kind) -> Touch {
        let used: &PageUse = Box::leak(Box::new(PageUse::new(
            0,
            Page { frame: 0, node: 0, bound: false, table: 0 },
            0,
        )));
        Touch { slot, kind, used, home: 1 }
    }

    #[test]
    fn what_is_waited_for_is_the_access_that_was_done_when_the_waiting_ended() {
        let mut account = Account::default();
        let miss = touch(1, Kind::Load);
        let went = Outcome {
            done_ps: 700,
            source: Source::Memory,
            missed: true,
            cost_ps: 100,
            queue_ps: 50,
            ..Outcome::default()
        };
        account.add(miss, &went);
        // A hit that needed no value, and then one whose address the miss brings.
        let hit = Outcome { done_ps: 650, own_cache: true, ..Outcome::default() };
        account.add(touch(2, Kind::Load), &hit);
        let needs = Outcome { waited_ps: 100, resumed_ps: 700, done_ps: 701, ..hit };
        account.add(touch(3, Kind::Store), &needs);
        let first = Done {
            accesses: [1, 0],
            misses: 1,
            waited_ps: 100,
            memory_ps: 100,
            queue_ps: 50,
            ..Done::default()
        };
        assert_eq!(account.of(1), first);
        assert_eq!(account.of(2), Done { accesses: [1, 0], ..Done::default() });
        assert_eq!(account.of(3), Done { accesses: [0, 1], ..Done::default() });
        assert_eq!(miss.used.seen().memory_ps[1], 100);
        account.waits(700, 7);
        assert_eq!(account.of(1).waited_ps, 107, "before a block too");
    }

    #[test]
    fn a_miss_is_waited_for_after_many_accesses_to_lines_that_the_core_has() {
        let mut account = Account::default();
        let miss = Outcome { done_ps: 9000, source: Source::Memory, ..Outcome::default() };
        account.add(touch(1, Kind::Store), &miss);
        for done_ps in 0..500 {
            let hit = Outcome { done_ps, own_cache: true, ..Outcome::default() };
            account.add(touch(2, Kind::Store), &hit);
        }
        account.waits(9000, 40);
        account.waits(1, 3);
        assert_eq!((account.of(1).memory_ps, account.of(2).waited_ps), (40, 3));
    }

    #[test]
    fn waits_are_told_apart_by_where_lines_come_from_and_what_one_node_would_have() {
        let mut account = Account::default();
        let mut go = |source, on_one_node| {
            let went = Outcome {
                waited_ps: 10,
                own_wait_ps: 10,
                source,
                on_one_node,
                ..Outcome::default()
            };
            account.add(touch(0, Kind::Load), &went);
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
        let done = account.of(0);
        assert_eq!((done.waited_ps, done.memory_ps, done.cached_ps), (60, 20, 10));
        assert_eq!((done.near_ps, done.far_ps, done.uncached), (10, 10, 1));
    }
}
