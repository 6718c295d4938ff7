//! The TLBs of a vCPU, and walks of page tables for translations that they miss.
//!
//! Page tables are the radix trees of x86-64 and of Arm's 4 KiB granule (Intel SDM 3A, 4.5 and
//! 4.10). Entries of their upper levels are cached (Barr, Cox, Rixner, "Translation Caching: Skip,
//! Don't Walk (the Page Table)", ISCA 2010). The model knows the virtual and the physical address
//! of an access, but not how the guest maps one to the other. Therefore:
//! - A page is as large as both addresses allow: 2 MiB or 1 GiB if they have the same offset in
//!   one. By chance, one small page in 512 counts as a larger one.
//! - Translations are identified by page and frame, without an address space: a guest's flush has
//!   no effect.
//! - Table entries have separate lines, with 8 bytes per page in the order of pages, as in a single
//!   address space. They compete with data for the caches.

use alloc::vec::Vec;
use core::ops::Range;

use crate::counters::Figure;
use crate::machine::{PAGE_BITS, Tlb, TlbPart, page_size};
use crate::nested::{HOST_KEY, Nested, behind};
use crate::page_tables::{LEVELS, number};
use crate::translations::Translations;

/// Number of bits of the page number in a key of the TLB; the frame number is above them, then the
/// size.
const KEY_PAGE_BITS: u32 = 24;
const KEY_SIZE: u32 = 61;

/// The result of a TLB lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Translation {
    /// This level has the translation, counted from 0.
    Hit(usize),
    /// These levels of the page tables are walked.
    Walk {
        /// The highest level without a cached upper entry, counted from 0 at the root.
        first: usize,
        /// The level after the last.
        end: usize,
    },
}

#[derive(Debug)]
struct Level {
    parts: Vec<Translations>,
    /// For each page size, the part that holds such pages, and the size of its entries for them.
    held: [Option<(usize, usize)>; 3],
}

/// The place of a translation in the nearest level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TlbPlace {
    key: u64,
    /// The part of the level; [`NOWHERE`] if no part holds such pages.
    part: u8,
}

const NOWHERE: u8 = u8::MAX;

impl Default for TlbPlace {
    fn default() -> Self {
        Self { key: 0, part: NOWHERE }
    }
}

#[derive(Debug)]
pub(crate) struct Tlbs {
    levels: Vec<Level>,
    upper: Option<Translations>,
    /// The host's tables, if the guest's memory is on modelled host pages.
    nested: Option<Nested>,
    /// The largest number of entries that a walk has read since all translations were removed.
    longest: Figure,
}

impl Tlbs {
    /// Creates empty TLBs of this shape.
    pub(crate) fn new(tlb: &Tlb) -> Self {
        let mut numbers: Vec<u8> = tlb.parts.iter().map(|part| part.level).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let level = |&number: &u8| {
            let parts: Vec<_> = tlb.parts.iter().filter(|part| part.level == number).collect();
            let arrays = parts.iter().map(|part| Translations::new(part.entries, part.ways));
            let holds = |size: usize| {
                let holds = |part: &&TlbPart| part.page_bytes.contains(&(1 << PAGE_BITS[size]));
                Some((parts.iter().position(holds)?, size))
            };
            // A level without pages of a size holds them in pieces of the next smaller one.
            let mut held = [0, 1, 2].map(holds);
            (1..3).for_each(|size| held[size] = held[size].or(held[size - 1]));
            Level { parts: arrays.collect(), held }
        };
        let entries = tlb.upper_entries;
        let upper = (entries > 0).then(|| Translations::new(entries, entries));
        let nested = tlb.host_page_bytes.and_then(page_size).map(Nested::new);
        Self {
            levels: numbers.iter().map(level).collect(),
            upper,
            nested,
            longest: Figure::default(),
        }
    }

    /// Checks that the nearest level still has a translation; if so, makes it the most recent one.
    #[inline]
    pub(crate) fn has(&self, place: &TlbPlace) -> bool {
        let part = self.levels[0].parts.get(usize::from(place.part));
        part.is_some_and(|part| part.access_held(place.key))
    }

    /// Checks that the nearest level has the translation of an address; if so, makes it the most
    /// recent one.
    #[inline]
    pub(crate) fn hits(&self, page: u64, frame: u64) -> bool {
        let nearest = &self.levels[0];
        let held = nearest.held[self.held_size(size_of(page, frame))];
        held.is_some_and(|(part, size)| nearest.parts[part].access_held(key(page, frame, size)))
    }

    /// Translates an address; returns the result and the translation's place in the nearest level.
    /// All levels have the translation afterwards.
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

    /// Removes all translations.
    pub(crate) fn clear(&self) {
        self.levels.iter().flat_map(|level| &level.parts).for_each(Translations::clear);
        self.upper.iter().for_each(Translations::clear);
        self.nested.iter().for_each(Nested::clear);
        self.longest.set(0);
    }

    /// Records the number of entries that a walk has read.
    pub(crate) fn walked(&self, entries: u64) {
        self.longest.set(self.longest.get().max(entries));
    }

    /// Returns the largest number of entries that one walk has read since all translations were
    /// removed.
    pub(crate) fn longest_walk(&self) -> u64 {
        self.longest.get()
    }

    /// Sets the size of the host's pages, if there is a host, and removes all translations.
    pub(crate) fn set_host_pages(&mut self, size: usize) {
        if let Some(nested) = &mut self.nested {
            nested.size = size;
            self.clear();
        }
    }

    /// Returns the size in bytes of the host's pages.
    pub(crate) fn host_page_bytes(&self) -> Option<u64> {
        self.nested.as_ref().map(|nested| 1 << PAGE_BITS[nested.size])
    }

    /// Returns true if there is a host with page tables.
    pub(crate) fn is_nested(&self) -> bool {
        self.nested.is_some()
    }

    /// Returns the host's levels that are read to translate the guest-physical address of a table's
    /// entry: none if the nested TLB has it.
    pub(crate) fn to_table(&self, address: u64) -> Range<usize> {
        match &self.nested {
            Some(nested) if !nested.has_table(address) => self.host_walk(address, nested.end()),
            _ => 0..0,
        }
    }

    /// Returns the host's levels that are read to translate the guest-physical address of data, at
    /// the end of a walk.
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

    /// Returns the size of the entries for a guest's page: at most that of the host's pages.
    #[inline]
    fn held_size(&self, size: usize) -> usize {
        self.nested.as_ref().map_or(size, |nested| size.min(nested.size))
    }

    /// Returns the walk to a page whose entry is in the last of `end` levels; the upper entries
    /// that it reads are cached afterwards.
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

/// Returns the largest page size that both addresses allow.
#[inline]
fn size_of(page: u64, frame: u64) -> usize {
    let differs = page ^ frame;
    let allowed = |bits: u32| differs & ((1 << bits) - 1) == 0;
    (1..3).take_while(|&size| allowed(PAGE_BITS[size])).count()
}

/// Returns true if the addresses allow a page of 2 MiB or more.
pub(crate) fn is_huge(page: u64, frame: u64) -> bool {
    size_of(page, frame) > 0
}

/// Returns the key of a translation. The page number is in the lowest bits, which select the set.
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
    /// A frame with another offset in a large page than any page below.
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
    fn a_large_page_takes_one_entry_of_the_large_page_array() {
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
