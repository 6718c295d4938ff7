//! Other users of a shared cache, such as other guests of a host, known only by the lines that they
//! evict. They share its ways by LRU: a line stays while the guest's newer lines and the others'
//! newer lines leave room. An unused line is evicted after some time. Measured on a Zen 4 with an
//! L3 shared with other virtual machines: of 2 MiB that were unused for 1, 2, 3, 5 and 8 ms, 95,
//! 69, 61, 24 and 4 % were still there.

use alloc::vec::Vec;

use crate::counters::Figure;
use crate::machine::CacheLevel;

/// The shortest and the longest life of an unused line, as fractions of the mean.
pub const LIVES: [f64; 2] = [0.3, 1.7];
/// Number of different lives.
const STEPS: u64 = 64;

/// The last uses of a cache's lines, and the time after which others evict them.
#[derive(Debug)]
pub(crate) struct Others {
    /// Time of the last use of each way of each set.
    used_ps: Vec<Figure>,
    ways: usize,
    /// The mean life of a line without newer ones of the guest in its set.
    life_ps: f64,
}

impl Others {
    /// Creates the other users of a validated level; `None` if there are none.
    pub fn of(level: &CacheLevel) -> Option<Self> {
        let ways = u64::from(level.ways.max(1));
        let lines = level.size_bytes / u64::from(level.line_bytes.max(1)) / ways * ways;
        (level.life_ns > 0.0).then(|| Self {
            used_ps: Figure::zeros(usize::try_from(lines.max(ways)).unwrap_or(usize::MAX)),
            ways: usize::try_from(ways).unwrap_or(usize::MAX),
            life_ps: level.life_ns * 1000.0,
        })
    }

    /// Records a use of the line in this way of the set that begins at `first`, and moves it to the
    /// first way; returns true if others have evicted it since its last use.
    pub fn took(&self, first: usize, way: usize, now_ps: u64) -> bool {
        let used = &self.used_ps[first..=first + way];
        let used_ps = used[way].get();
        (0..way).rev().for_each(|newer| used[newer + 1].set(used[newer].get()));
        used[0].set(now_ps);
        let room = 1.0 - way as f64 / self.ways as f64;
        now_ps.saturating_sub(used_ps) as f64 > self.life_ps * life(used_ps, first) * room
    }

    /// Removes the line in this way of the set that begins at `first`.
    pub fn lose(&self, first: usize, way: usize) {
        let used = &self.used_ps[first..first + self.ways];
        (way + 1..self.ways).for_each(|older| used[older - 1].set(used[older].get()));
    }

    /// Replaces all times by those of a cache of the same shape.
    pub fn copy(&self, from: &Self) {
        self.used_ps.iter().zip(&from.used_ps).for_each(|(used, from)| used.set(from.get()));
    }
}

/// Returns the life of a line that was last used at this time, as a fraction of the mean.
fn life(used_ps: u64, first: usize) -> f64 {
    let hash = (used_ps ^ (first as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let [shortest, longest] = LIVES;
    shortest + (longest - shortest) * (hash % STEPS) as f64 / STEPS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::machine::Scope;

    /// Returns a cache of 4 MiB with lines that live for a millisecond.
    fn cache() -> Cache {
        Cache::new(&CacheLevel {
            level: 3,
            size_bytes: 4 << 20,
            ways: 16,
            line_bytes: 64,
            scope: Scope::Group,
            latency_ns: 0.0,
            life_ns: 1e6,
        })
    }

    #[test]
    fn a_copy_knows_when_its_lines_were_used() {
        let (used, copy) = (cache(), cache());
        used.request(0x1000, false, 5_000_000_000);
        copy.copy(&used);
        assert!(copy.request(0x1000, false, 5_000_000_001).held);
    }

    #[test]
    fn lines_that_are_not_used_for_a_time_are_gone_sooner_or_later() {
        let held = |us: u64| {
            let cache = cache();
            (0..4096).for_each(|line| _ = cache.request(line * 64, false, line));
            let holds = |line: &u64| cache.request(line * 64, false, line + us * 1_000_000).held;
            (0..4096).filter(holds).count() as f64 / 4096.0
        };
        let [at_once, half, late] = [250, 1000, 1750].map(held);
        assert_eq!([at_once, late], [1.0, 0.0]);
        assert!((0.4..0.6).contains(&half), "{half}");
    }

    #[test]
    fn lines_are_gone_sooner_where_newer_ones_of_the_guest_take_room() {
        // Half of the cache, which leaves the oldest line of each set 9 of 16 ways.
        let held = |lines: std::ops::Range<u64>| {
            let cache = cache();
            (0..1 << 15).for_each(|line| _ = cache.request(line * 64, false, line));
            let holds = |line: &u64| cache.request(line * 64, false, line + 600_000_000).held;
            lines.filter(holds).count() as f64 / 4096.0
        };
        let [oldest, newest] = [0..4096, (1 << 15) - 4096..1 << 15].map(held);
        assert!((0.4..0.5).contains(&oldest) && newest > 0.7, "{oldest} and {newest}");
    }

    #[test]
    fn a_modified_line_that_others_evicted_was_written_then() {
        let cache = cache();
        cache.request(64, true, 0);
        let reply = cache.request(64, false, 5_000_000_000);
        assert_eq!((reply.held, reply.evicted), (false, Some(64)));
        assert_eq!(cache.request(64, false, 15_000_000_000).evicted, None);
        cache.lose(64);
        assert!(!cache.holds(64));
    }
}
