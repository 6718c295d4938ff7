//! The page walkers of a core, which limit the number of concurrent walks.

use alloc::vec::Vec;

use crate::cost::ps;
use crate::machine::Tlb;

/// The page walkers of a core.
#[derive(Clone, Debug)]
pub struct Walkers {
    /// Time at which each walker is free.
    free_ps: Vec<u64>,
    /// Latency of a hit in the farthest TLB, which needs no walker.
    hit_ps: u64,
    /// The last pages that the nearest TLB lacked, with the times at which their translations are known.
    under_way: [(u64, u64); UNDER_WAY],
    next: usize,
}

/// Number of translations that may be under way.
const UNDER_WAY: usize = 8;

impl Walkers {
    /// Returns the walkers of a core with these TLBs; none without address translation.
    pub fn of(tlb: Option<&Tlb>) -> Self {
        let levels = tlb.iter().flat_map(|tlb| &tlb.parts).map(|part| part.level);
        let last = levels.max().unwrap_or(0);
        let parts = tlb.iter().flat_map(|tlb| &tlb.parts);
        let hits = parts.filter(|part| part.level == last).map(|part| ps(part.latency_ns));
        Self {
            free_ps: [0].repeat(tlb.map_or(0, |tlb| tlb.walkers) as usize),
            hit_ps: hits.max().unwrap_or(0),
            under_way: [(u64::MAX, 0); UNDER_WAY],
            next: 0,
        }
    }

    /// Returns true if a translation that takes this long needs no walker.
    #[inline]
    pub fn is_hit(&self, takes_ps: u64) -> bool {
        takes_ps <= self.hit_ps
    }

    /// Records the time at which the translation of a page is known.
    #[inline]
    pub fn knows(&mut self, page: u64, done_ps: u64) {
        self.under_way[self.next] = (page, done_ps);
        self.next = (self.next + 1) % UNDER_WAY;
    }

    /// Returns the time from `issue_ps` on at which the translation of a page is known that the nearest TLB
    /// has or another access has asked for.
    #[inline]
    pub fn known_ps(&self, page: u64, issue_ps: u64) -> u64 {
        let of_page = self.under_way.iter().filter(|(of, _)| *of == page);
        of_page.fold(issue_ps, |known_ps, (_, done_ps)| known_ps.max(*done_ps))
    }

    /// Returns the end of a translation that could begin at `issue_ps` and takes this long. TLB
    /// hits are pipelined; anything longer is a walk.
    #[inline]
    pub fn translated_ps(&mut self, issue_ps: u64, takes_ps: u64) -> u64 {
        if self.is_hit(takes_ps) {
            return issue_ps + takes_ps;
        }
        let Some(first) = self.free_ps.iter_mut().min() else { return issue_ps + takes_ps };
        *first = (issue_ps + self.hit_ps).max(*first) + takes_ps - self.hit_ps;
        *first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::TlbPart;

    fn walkers(count: u32) -> Walkers {
        let part = |level, latency_ns| TlbPart {
            level,
            page_bytes: [4096].to_vec(),
            entries: 16,
            ways: 4,
            latency_ns,
        };
        Walkers::of(Some(&Tlb {
            parts: [part(2, 0.02), part(1, 0.0)].to_vec(),
            upper_entries: 0,
            walkers: count,
            walk_ns: 0.0,
            host_page_bytes: None,
            tables_node: None,
        }))
    }

    #[test]
    fn walks_wait_for_a_walker_and_hits_do_not() {
        let mut two = walkers(2);
        let ends = [0, 1, 2, 300].map(|issue_ps| two.translated_ps(issue_ps, 120));
        assert_eq!(ends, [120, 121, 220, 420]);
        let mut one = walkers(1);
        assert_eq!(one.translated_ps(0, 120), 120);
        assert_eq!([0, 20].map(|takes_ps| one.translated_ps(50, takes_ps)), [50, 70]);
        assert_eq!(Walkers::of(None).translated_ps(50, 120), 170, "without walkers none waits");
    }

    #[test]
    fn an_access_waits_for_the_translation_that_another_one_to_its_page_has_asked_for() {
        let mut walkers = walkers(1);
        walkers.knows(7, 500);
        assert_eq!(
            [(7, 100), (7, 600), (8, 100)].map(|(of, at)| walkers.known_ps(of, at)),
            [500, 600, 100]
        );
    }
}
