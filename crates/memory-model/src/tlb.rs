//! Translations that a vCPU has at hand, and walks of page tables for those that it has not.
//!
//! Page tables are the radix trees of x86-64 and of Arm's 4 KiB granule (Intel SDM 3A, 4.5 and
//! 4.10). Entries of their upper levels are cached (Barr, Cox, Rixner, "Translation Caching: Skip,
//! Don't Walk (the Page Table)", ISCA 2010). The model knows the virtual and the physical address
//! of an access, but not how the guest maps one to the other. So:
//! - A page is as large as both addresses allow: 2 MiB or 1 GiB if they are at the same offset of
//!   one. A small page passes for a larger one by chance, one in 512.
//! - A translation is known by page and frame, without an address space: what a guest flushes
//!   stays.
//! - Table entries are at lines of their own, 8 bytes a page in order of the pages, as in one
//!   address space. They compete with data for the caches.

use alloc::vec::Vec;
use core::ops::Range;

use crate::cache::Cache;
use crate::machine::{PAGE_BITS, Tlb, TlbPart, page_size};
use crate::nested::{HOST_KEY, Nested, behind};
use crate::page_tables::{LEVELS, number};

/// Bits of a page's number in a key of the TLB; the frame's are above them, then the size.
const KEY_PAGE_BITS: u32 = 24;
const KEY_SIZE: u32 = 62;

/// How a vCPU comes to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Translation {
    /// This level of its TLBs has it, counted from 0.
    Hit(usize),
    /// It walks these levels of the page tables.
    Walk {
        /// The first one of which no upper entry is cached, from 0, the highest.
        first: usize,
        /// The one behind the last.
        end: usize,
    },
}

/// One level of TLBs.
#[derive(Debug)]
struct Level {
    parts: Vec<Cache>,
    /// The part that has pages of each size, and the size as which it has them.
    held: [Option<(usize, usize)>; 3],
}

/// Where the nearest level has a translation, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TlbPlace {
    key: u64,
    /// [`NOWHERE`] if it does not.
    part: u8,
}

const NOWHERE: u8 = u8::MAX;

impl Default for TlbPlace {
    fn default() -> Self {
        Self { key: 0, part: NOWHERE }
    }
}

/// The TLBs of one vCPU.
#[derive(Debug)]
pub(crate) struct Tlbs {
    levels: Vec<Level>,
    upper: Option<Cache>,
    /// The host's part, where the guest's memory is on pages of a host.
    nested: Option<Nested>,
}

impl Tlbs {
    /// Empty ones of this shape.
    pub(crate) fn new(tlb: &Tlb) -> Self {
        let mut numbers: Vec<u8> = tlb.parts.iter().map(|part| part.level).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let level = |&number: &u8| {
            let parts: Vec<_> = tlb.parts.iter().filter(|part| part.level == number).collect();
            let caches = parts.iter().map(|part| {
                let (entries, ways) = (u64::from(part.entries), part.ways);
                Cache::of_lines(entries, ways, 0)
            });
            let holds = |size: usize| {
                let holds = |part: &&TlbPart| part.page_bytes.contains(&(1 << PAGE_BITS[size]));
                Some((parts.iter().position(holds)?, size))
            };
            // What holds no pages of a size has them in pieces of the next smaller one.
            let mut held = [0, 1, 2].map(holds);
            (1..3).for_each(|size| held[size] = held[size].or(held[size - 1]));
            Level { parts: caches.collect(), held }
        };
        let entries = tlb.upper_entries;
        let upper = (entries > 0).then(|| Cache::of_lines(u64::from(entries), entries, 0));
        let nested = tlb.host_page_bytes.and_then(page_size).map(Nested::new);
        Self { levels: numbers.iter().map(level).collect(), upper, nested }
    }

    /// Whether the nearest level still has a translation that it had, which is the most recent one then.
    #[inline]
    pub(crate) fn has(&self, place: &TlbPlace) -> bool {
        let part = self.levels[0].parts.get(usize::from(place.part));
        part.is_some_and(|part| part.access_held(place.key))
    }

    /// The same of the translation of an address.
    #[inline]
    pub(crate) fn hits(&self, page: u64, frame: u64) -> bool {
        let nearest = &self.levels[0];
        let held = nearest.held[self.held_size(size_of(page, frame))];
        held.is_some_and(|(part, size)| nearest.parts[part].access_held(key(page, frame, size)))
    }

    /// Translates an address; all levels have the translation then. Where the nearest one has it, too.
    pub(crate) fn translate(&self, page: u64, frame: u64) -> (Translation, TlbPlace) {
        let size = size_of(page, frame);
        let held = self.held_size(size);
        let mut nearest = TlbPlace::default();
        let has = |(at, level): (usize, &Level)| {
            let Some((part, size)) = level.held[held] else { return false };
            let key = key(page, frame, size);
            if at == 0 {
                nearest = TlbPlace { key, part: u8::try_from(part).unwrap_or(NOWHERE) };
            }
            level.parts[part].access(key)
        };
        let translation = match self.levels.iter().enumerate().position(has) {
            Some(level) => Translation::Hit(level),
            None => self.walk(page, LEVELS - size),
        };
        (translation, nearest)
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.levels.iter().flat_map(|level| &level.parts).for_each(Cache::clear);
        self.upper.iter().for_each(Cache::clear);
        self.nested.iter().for_each(Nested::clear);
    }

    /// The host's pages are of this size from now on, if there is a host.
    pub(crate) fn set_host_pages(&mut self, size: usize) {
        if let Some(nested) = &mut self.nested {
            nested.size = size;
            self.clear();
        }
    }

    /// Bytes of the host's pages.
    pub(crate) fn host_page_bytes(&self) -> Option<u64> {
        self.nested.as_ref().map(|nested| 1 << PAGE_BITS[nested.size])
    }

    /// Whether there is a host with page tables.
    pub(crate) fn is_nested(&self) -> bool {
        self.nested.is_some()
    }

    /// The host's levels that are read to translate the guest-physical address of a table's entry: none
    /// if the nested TLB has it.
    pub(crate) fn to_table(&self, address: u64) -> Range<usize> {
        match &self.nested {
            Some(nested) if !nested.has_table(address) => self.host_walk(address, nested.end()),
            _ => 0..0,
        }
    }

    /// The same for an address of data, at the end of a walk.
    pub(crate) fn to_data(&self, address: u64) -> Range<usize> {
        self.nested.as_ref().map_or(0..0, |nested| self.host_walk(address, nested.end()))
    }

    fn host_walk(&self, address: u64, end: usize) -> Range<usize> {
        let Some(upper) = &self.upper else { return behind(None, end) };
        let key = |level: usize| HOST_KEY | number(address, level) << 2 | level as u64;
        let known = (0..end - 1).rev().find(|&level| upper.holds(key(level)));
        let levels = behind(known, end);
        (levels.start.saturating_sub(1)..end - 1).for_each(|level| {
            upper.access(key(level));
        });
        levels
    }

    /// The size as which TLBs have a page of a guest: that of the host's, if that is smaller.
    #[inline]
    fn held_size(&self, size: usize) -> usize {
        self.nested.as_ref().map_or(size, |nested| size.min(nested.size))
    }

    /// The walk to a page whose entry is in the last of so many levels.
    fn walk(&self, page: u64, end: usize) -> Translation {
        let Some(upper) = &self.upper else { return Translation::Walk { first: 0, end } };
        let key = |level: usize| number(page, level) << 2 | level as u64;
        let known = (0..end - 1).rev().find(|&level| upper.holds(key(level)));
        let first = known.map_or(0, |level| level + 1);
        (first.saturating_sub(1)..end - 1).for_each(|level| {
            upper.access(key(level));
        });
        Translation::Walk { first, end }
    }
}

/// The largest size of page that both addresses allow.
#[inline]
fn size_of(page: u64, frame: u64) -> usize {
    let differs = page ^ frame;
    let allowed = |bits: u32| differs & ((1 << bits) - 1) == 0;
    (1..3).take_while(|&size| allowed(PAGE_BITS[size])).count()
}

/// Whether the addresses allow a page of 2 MiB or more.
pub(crate) fn is_huge(page: u64, frame: u64) -> bool {
    size_of(page, frame) > 0
}

/// What a TLB knows a translation by, the bits of the page's number lowest: they choose the set.
#[inline]
fn key(page: u64, frame: u64, size: usize) -> u64 {
    let bits = PAGE_BITS[size];
    let page = page >> bits & ((1 << KEY_PAGE_BITS) - 1);
    (size as u64) << KEY_SIZE | (frame >> bits) << KEY_PAGE_BITS | page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_tables::{TABLES_OF_LEVEL, entry};

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    /// A frame that is at another offset of a large page than any page below.
    const FRAME: u64 = 4 * KIB;

    fn tlbs(upper_entries: u32) -> Tlbs {
        let part = |level, entries, ways, page_bytes: &[u64]| TlbPart {
            level,
            page_bytes: page_bytes.to_vec(),
            entries,
            ways,
            latency_ns: 0.0,
        };
        let parts = vec![
            part(2, 64, 4, &[4 * KIB, 2 * MIB]),
            part(1, 8, 2, &[4 * KIB]),
            part(1, 4, 4, &[2 * MIB]),
        ];
        Tlbs::new(&Tlb {
            parts,
            upper_entries,
            walkers: 1,
            walk_ns: 0.0,
            walk_each_ns: 0.0,
            tables_node: None,
            host_page_bytes: None,
        })
    }

    fn small(tlbs: &Tlbs, page: u64) -> Translation {
        tlbs.translate(page * 4 * KIB, page * 4 * KIB + FRAME).0
    }

    #[test]
    fn a_page_is_as_large_as_both_addresses_allow() {
        assert_eq!(size_of(0x7f00_0000_5000, 0x4000_5000), 2);
        assert_eq!(size_of(0x7f00_0020_5000, 0x4000_5000), 1);
        assert_eq!(size_of(0x7f00_0000_5000, 0x4000_6000), 0);
    }

    #[test]
    fn each_level_has_as_many_pages_as_it_has_entries() {
        let tlbs = tlbs(32);
        let walks = |pages: u64| {
            (0..pages)
                .for_each(|page| assert!(matches!(small(&tlbs, page), Translation::Walk { .. })));
        };
        let hits = |pages: u64, level: usize| {
            let hit = |page: &u64| small(&tlbs, *page) == Translation::Hit(level);
            (0..pages).filter(hit).count() as u64
        };
        walks(8);
        assert_eq!(hits(8, 0), 8);
        tlbs.clear();
        walks(64);
        assert_eq!(hits(64, 1), 64, "more than the first level has");
        tlbs.clear();
        walks(65);
        assert!(hits(65, 1) < 64, "more than the second has: least recently used are gone");
    }

    #[test]
    fn a_large_page_takes_one_entry_of_its_own_array() {
        let tlbs = tlbs(32);
        let large = |offset: u64| tlbs.translate(8 * MIB + offset, 4 * MIB + offset).0;
        assert_eq!(large(0), Translation::Walk { first: 0, end: 3 });
        assert_eq!([64, 2 * MIB - 1].map(large), [Translation::Hit(0); 2]);
        (0..8).for_each(|page| assert_ne!(small(&tlbs, page), Translation::Hit(0)));
        assert_eq!(large(0), Translation::Hit(0));
    }

    #[test]
    fn a_level_without_pages_of_a_size_holds_pieces_of_them() {
        let tlbs = tlbs(32);
        let huge = |offset: u64| tlbs.translate(4 * GIB + offset, 8 * GIB + offset).0;
        assert_eq!(huge(0), Translation::Walk { first: 0, end: 2 });
        assert_eq!(huge(MIB), Translation::Hit(0));
        assert_eq!(huge(2 * MIB), Translation::Walk { first: 1, end: 2 });
    }

    #[test]
    fn a_walk_begins_behind_the_lowest_upper_entry_that_is_cached() {
        let caching = tlbs(4);
        let walk = |first| Translation::Walk { first, end: 4 };
        assert_eq!(small(&caching, 0), walk(0));
        assert_eq!(small(&caching, 1), walk(3), "the same table of 4 KiB pages");
        assert_eq!(small(&caching, 512), walk(2), "another one of the same GiB");
        assert_eq!(small(&caching, 1 << 18), walk(1), "another GiB");
        assert_eq!(small(&caching, 1 << 27), walk(0), "another 512 GiB");
        let none = tlbs(0);
        assert_eq!([0, 1].map(|page| small(&none, page)), [walk(0); 2]);
    }

    #[test]
    fn entries_of_neighbouring_pages_share_a_line() {
        assert_eq!(entry(4 * KIB, 3) - entry(0, 3), 8);
        assert_eq!(entry(2 * MIB, 2) - entry(0, 2), 8);
        let levels: Vec<u64> = (0..4).map(|level| entry(GIB, level) >> TABLES_OF_LEVEL).collect();
        assert_eq!(levels, [16, 17, 18, 19]);
    }

    #[test]
    fn pages_of_two_processes_are_two_translations() {
        let tlbs = tlbs(32);
        tlbs.translate(0, FRAME);
        assert!(matches!(tlbs.translate(0, 3 * FRAME).0, Translation::Walk { .. }));
        assert_eq!(tlbs.translate(0, FRAME).0, Translation::Hit(0));
    }
}
