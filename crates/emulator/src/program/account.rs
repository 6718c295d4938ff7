//! A thread's accesses to regions, and its waits for them.

use numalab_memory_model::counters::Kind;
use numalab_memory_model::outcome::{Outcome, Source};

use super::page_use::PageUse;

/// Number of recent accesses kept of each kind: twice the number of lines that current cores have
/// in flight; one bit of a word for each.
const RECENT: usize = u32::BITS as usize;
/// Resolution of an access's share of waiting for bandwidth.
const PARTS: u64 = 1 << 10;

/// A thread's accesses to a region's pages on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Loads and stores.
    pub accesses: [u64; 2],
    /// Accesses that reached memory.
    pub misses: u64,
    /// Time waited for all accesses, in ps.
    pub waited_ps: u64,
    /// The part of `waited_ps` for accesses that reached memory.
    pub memory_ps: u64,
    /// The part of `waited_ps` for bandwidth.
    pub queue_ps: u64,
    /// The part of `memory_ps` that caches would save if all threads were on one node.
    pub cached_ps: u64,
    /// The part of `waited_ps` for lines from caches of other cpus of the thread's node.
    pub near_ps: u64,
    /// The part of `waited_ps` for lines from caches of other nodes.
    pub far_ps: u64,
    /// Number of accesses that hit a shared cache but would miss if all threads were on one node.
    pub uncached: u64,
}

/// An access that was made.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// Region and node.
    pub slot: usize,
    pub kind: Kind,
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
    /// The accessed page and the thread's node, if the access reached memory.
    page: Option<(&'static PageUse, usize)>,
    /// The share of the access's cost that was for bandwidth, in [`PARTS`].
    queue_parts: u64,
}

/// Ring buffer of the latest accesses of a kind.
#[derive(Debug, Default)]
struct Latest {
    all: [Recent; RECENT],
    /// Completion times of the accesses, searched at every wait; 0 for none.
    done_ps: [u64; RECENT],
    count: usize,
}

impl Latest {
    fn add(&mut self, recent: Recent) {
        self.all[self.count % RECENT] = recent;
        self.done_ps[self.count % RECENT] = recent.done_ps;
        self.count += 1;
    }

    fn last(&self) -> Option<Recent> {
        self.count.checked_sub(1).map(|last| self.all[last % RECENT])
    }

    /// Returns the earliest access that completes at this time: a line in flight is requested
    /// several times, and the first request decides where it comes from.
    fn done_at(&self, done_ps: u64) -> Option<Recent> {
        let times = self.done_ps.iter().enumerate();
        let found = times.fold(0_u32, |all, (at, ps)| all | u32::from(*ps == done_ps) << at);
        // The next access will replace the oldest.
        let from = self.count % RECENT;
        let first = found.rotate_right(u32::try_from(from).unwrap_or(0)).trailing_zeros() as usize;
        (found != 0 && done_ps != 0).then(|| self.all[(from + first) % RECENT])
    }
}

/// One thread's figures by slot, which is a region and a node.
#[derive(Debug, Default)]
pub struct Account {
    done: Vec<Done>,
    latest: Latest,
    /// Accesses with lines from memory or another core: many hits may follow before the thread
    /// waits for one of these.
    from_afar: Latest,
    /// Number of stretches, besides the current one, that it stands for and in which waits are
    /// unknown.
    others: u64,
}

impl Account {
    /// Counts an access and the waits around it. A core continues until it needs a value: later
    /// waits are charged to the access that brings it.
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

    /// Counts each wait from now on for this number of stretches.
    pub fn counts_for(&mut self, stretches: u64) {
        self.others = stretches.saturating_sub(1);
    }

    /// Returns a wait, multiplied by the number of stretches that it stands for.
    pub fn in_all_ps(&self, ps: u64) -> u64 {
        ps * (1 + self.others)
    }

    /// Counts loads and stores that did not wait.
    #[inline]
    pub fn count(&mut self, slot: usize, [loads, stores]: [u64; 2]) {
        let done = &mut self.done[slot].accesses;
        (done[0], done[1]) = (done[0] + loads, done[1] + stores);
    }

    /// Charges a wait to the access that completes at its end, or else to the previous one.
    #[inline]
    pub fn waits(&mut self, until_ps: u64, waited_ps: u64) {
        let Some(last) = self.latest.last().filter(|_| waited_ps > 0) else { return };
        let found = self.from_afar.done_at(until_ps).or_else(|| self.latest.done_at(until_ps));
        self.charge(found.unwrap_or(last), waited_ps);
    }

    /// Keeps an access, so that later waits can be charged to it.
    fn keep(&mut self, touch: Touch, outcome: &Outcome) -> Recent {
        let is_memory = outcome.source == Source::Memory;
        let recent = Recent {
            done_ps: outcome.done_ps,
            slot: touch.slot,
            source: outcome.source,
            on_one_node: outcome.on_one_node,
            page: is_memory.then_some((touch.used, touch.home)),
            // A share rather than a time, because only a part of the access's cost may be waited
            // for: a prefetched line is in flight before its access, which then costs less than the
            // queue.
            queue_parts: (outcome.queue_ps * PARTS / outcome.cost_ps.max(1)).min(PARTS),
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
        let ps = self.in_all_ps(ps);
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

    /// Returns all figures, by slot.
    pub fn all(&self) -> &[Done] {
        &self.done
    }

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
            Page { frame: 0, node: 0, bound: false, table: 0, is_shared: false },
            0,
        )));
        Touch { slot, kind, used, home: 1 }
    }

    #[test]
    fn a_wait_is_charged_to_the_access_that_completes_at_its_end() {
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
        // A hit that needs no value, then one with an address that the miss provides.
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
    fn a_wait_for_a_line_that_was_prefetched_is_for_bandwidth_at_most_as_a_whole() {
        let mut account = Account::default();
        let went = Outcome {
            waited_ps: 40,
            own_wait_ps: 40,
            source: Source::Memory,
            missed: true,
            cost_ps: 50,
            queue_ps: 800,
            ..Outcome::default()
        };
        account.add(touch(1, Kind::Load), &went);
        assert_eq!((account.of(1).memory_ps, account.of(1).queue_ps), (40, 40));
    }

    #[test]
    fn a_wait_is_charged_to_a_miss_after_many_hits() {
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
    fn waits_in_a_sampled_stretch_are_scaled_to_the_stretches_it_represents() {
        let mut account = Account::default();
        let went = Outcome { waited_ps: 10, own_wait_ps: 10, ..Outcome::default() };
        account.add(touch(0, Kind::Load), &went);
        account.counts_for(16);
        account.add(touch(0, Kind::Load), &went);
        assert_eq!((account.of(0).waited_ps, account.of(0).accesses), (170, [2, 0]));
    }

    #[test]
    fn waits_are_split_by_source_and_by_the_cache_of_one_node() {
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
