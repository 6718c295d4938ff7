//! Translations of addresses: hits in TLBs, and walks whose steps are accesses to page tables.

use alloc::vec::Vec;
use core::ops::Range;

use super::Access;
use super::hierarchy::Hierarchy;
use crate::cost::ps;
use crate::counters::Kind;
use crate::machine::{Machine, Tlb, page_size};
use crate::page_tables::{LEVELS, entry, host_entry, table};
use crate::tlb::{TlbPlace, Tlbs, Translation};

impl Hierarchy<'_> {
    /// Returns the time to translate the address of an access that begins at `time_ps`, and the
    /// place of the translation afterwards.
    #[inline(always)]
    pub fn translation_ps(
        &self,
        tlbs: Option<&Tlbs>,
        access: &Access,
        time_ps: u64,
    ) -> (u64, TlbPlace) {
        tlbs.map_or_else(Default::default, |tlbs| self.translated_by_ps(tlbs, access, time_ps))
    }

    fn translated_by_ps(&self, tlbs: &Tlbs, access: &Access, time_ps: u64) -> (u64, TlbPlace) {
        let (translation, place) = tlbs.translate(access.virtual_address, access.address);
        let taken_ps = match translation {
            Translation::Hit(level) => self.engine.tlb_hit_ps[level],
            Translation::Walk { first, end } => self.walk_ps(tlbs, access, time_ps, first..end),
        };
        if taken_ps > 0 {
            self.figures.translation_ps.add(taken_ps);
        }
        (taken_ps, place)
    }

    fn walk_ps(&self, tlbs: &Tlbs, access: &Access, time_ps: u64, levels: Range<usize>) -> u64 {
        let references = &self.figures.references;
        let before = references.get();
        self.figures.walks.add(1);
        references.add(levels.len() as u64);
        // A walk begins only after the farthest TLB has missed.
        let asked_ps = self.engine.tlb_hit_ps.last().copied().unwrap_or(0) + self.engine.walk_ps;
        let of = access.virtual_address;
        let walked_ps = levels.fold(asked_ps, |walked_ps, level| {
            let of_host = || table(of, level);
            let walked_ps = match tlbs.is_nested() {
                true => {
                    self.host_ps(access, of_host(), tlbs.to_table(of_host()), time_ps, walked_ps)
                }
                false => walked_ps,
            };
            walked_ps + self.entry_ps(access, entry(of, level), time_ps + walked_ps)
        });
        let to_data = tlbs.to_data(access.address);
        let walked_ps = self.host_ps(access, access.address, to_data, time_ps, walked_ps);
        tlbs.walked(references.get() - before);
        walked_ps
    }

    /// Adds to the time of a walk the reads of these levels of the host's tables, for a
    /// guest-physical address.
    fn host_ps(
        &self,
        access: &Access,
        address: u64,
        levels: Range<usize>,
        time_ps: u64,
        walked_ps: u64,
    ) -> u64 {
        self.figures.references.add(levels.len() as u64);
        levels.fold(walked_ps, |walked_ps, level| {
            walked_ps + self.entry_ps(access, host_entry(address, level), time_ps + walked_ps)
        })
    }

    /// Returns the time to read a table's entry at this address for an access.
    fn entry_ps(&self, access: &Access, address: u64, time_ps: u64) -> u64 {
        if let Some(found) = self.looks_up(address, Kind::Load, time_ps).level {
            return self.engine.hit_ps[found];
        }
        let tlb = self.engine.arguments.machine.tlb.as_ref();
        let said = tlb.and_then(|tlb| tlb.tables_node).or(access.table);
        let target = said.unwrap_or(self.home);
        let queue_ps = self.queued(time_ps, target, self.engine.moved(Kind::Load));
        let memory_ps = self.engine.costs.memory_ps(self.home, target, Kind::Load);
        memory_ps.saturating_add(self.engine.costs.other_page_ps).saturating_add(queue_ps)
    }

    /// Returns the time of a translation without simulating accesses to page tables: entries are
    /// assumed to be in the vCPU's farthest private cache, because huge pages have few entries.
    pub fn assumed_ps(&self, translation: Translation) -> u64 {
        let engine = self.engine;
        match translation {
            Translation::Hit(level) => engine.tlb_hit_ps[level],
            Translation::Walk { first, end } => {
                let last = self.caches.len().checked_sub(1);
                let entry_ps = last.map_or(0, |last| engine.hit_ps[last]);
                let asked_ps = engine.tlb_hit_ps.last().copied().unwrap_or(0);
                let entries = (end - first) as u64 * (1 + engine.assumed_nested);
                asked_ps + engine.walk_ps + entries * entry_ps
            }
        }
    }
}

/// Returns the accesses to a host's tables for each entry of a walk that is not followed: those that
/// translate the entry's own address.
pub(super) fn assumed_nested(machine: &Machine) -> u64 {
    let pages = machine.tlb.as_ref().and_then(|tlb| tlb.host_page_bytes).and_then(page_size);
    pages.map_or(0, |size| (LEVELS - size) as u64)
}

/// Returns the cost of a hit in each level, nearest first.
pub(super) fn hits_ps(tlb: &Tlb) -> Vec<u64> {
    let mut levels: Vec<(u8, u64)> =
        tlb.parts.iter().map(|part| (part.level, ps(part.latency_ns))).collect();
    // The slowest array of a level determines its cost.
    levels.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    levels.dedup_by_key(|(level, _)| *level);
    levels.into_iter().map(|(_, hit_ps)| hit_ps).collect()
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::address::Addressing;
    use crate::arguments::Arguments;
    use crate::engine::{Engine, PS_PER_INSTRUCTION};
    use crate::machine::{Core, TlbPart};
    use crate::marker::Marker;
    use crate::pipeline::flow::Flow;
    use crate::pipeline::speeds::Speeds;
    use crate::pipeline::x86::decode;

    const PAGE: u64 = 4096;
    const MIB: u64 = 1 << 20;

    /// Returns TLBs of 16 and 64 pages of 4 KiB; a hit in the second takes 3 ns.
    fn small_tlb() -> Tlb {
        let part = |level, entries, latency_ns| TlbPart {
            level,
            page_bytes: alloc::vec![PAGE],
            entries,
            ways: 4,
            latency_ns,
        };
        let parts = alloc::vec![part(1, 16, 0.0), part(2, 64, 3.0)];
        Tlb {
            parts,
            upper_entries: 16,
            walkers: 2,
            walk_ns: 0.0,
            host_page_bytes: None,
            tables_node: None,
        }
    }

    fn engine(more: &str, tlb: Tlb) -> Engine {
        let text = format!("cpus=0.1,memory=64M.64M,latency=100.250/250.100,mode=virtual{more}");
        let mut arguments = Arguments::parse(text.split(','), |_| unreachable!()).unwrap();
        arguments.machine.tlb = Some(tlb);
        Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO)
    }

    /// Returns the time in ns of a load by this block that visits each of a number of pages in
    /// turn, repeatedly; no frame allows a huge page.
    fn load_ns(engine: &Engine, pages: u64, block: &'static Flow) -> f64 {
        let mut begin_ps = 0;
        for round in 0..4 {
            if round == 3 {
                begin_ps = engine.time_ps(0);
            }
            for page in 0..pages {
                // Each page uses another line, so that the lines do not all fall into one set of a
                // cache.
                let address = MIB + page * PAGE + page % 64 * 64;
                let virtual_address = (address + PAGE) | 1 << 40;
                engine.block_of(0, block);
                let access = load(address, virtual_address);
                engine.enter(0).access(access);
            }
        }
        (engine.time_ps(0) - begin_ps) as f64 / 1000.0 / pages as f64
    }

    fn load(address: u64, virtual_address: u64) -> Access {
        Access { address, virtual_address, kind: Kind::Load, bytes: 8, position: 0, table: None }
    }

    /// Returns a block of `mov (%rax),%rax`.
    fn chase() -> &'static Flow {
        Box::leak(Box::new(Flow::new([decode(&[0x48, 0x8b, 0x00])], &Speeds::of(&Core::TYPICAL))))
    }

    /// Returns a block of `add (%rax),%rdx; add $64,%rax`.
    fn stream() -> &'static Flow {
        let code: [&[u8]; 2] = [&[0x48, 0x03, 0x10], &[0x48, 0x83, 0xc0, 0x40]];
        Box::leak(Box::new(Flow::new(code.into_iter().map(decode), &Speeds::of(&Core::TYPICAL))))
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 0.5, "{found} ns, expected {expected}");
    }

    #[test]
    fn a_chase_costs_translations_by_its_number_of_pages() {
        for stages in ["", ",stages=core"] {
            let load_ns = |pages| load_ns(&engine(stages, small_tlb()), pages, chase());
            near(load_ns(16), 100.0);
            near(load_ns(64), 103.0);
            // Beyond both levels the page's own entry is read from memory.
            near(load_ns(256), 203.0);
        }
    }

    #[test]
    fn a_walk_reads_page_tables_through_the_caches_from_their_node() {
        let away = Tlb { tables_node: Some(1), ..small_tlb() };
        near(load_ns(&engine("", away.clone()), 256, chase()), 353.0);
        // 64 lines of tables stay in a cache of 1 MiB; 512 pages do too.
        let caches = ",caches=1:4K:4:64:cpu:1+2:1M:16:64:cpu:5";
        let without = Engine::new(
            Arguments::parse(
                format!("cpus=0.1,memory=64M.64M,latency=100.250/250.100,mode=virtual{caches}")
                    .split(','),
                |_| unreachable!(),
            )
            .unwrap(),
            Addressing::Physical,
            PS_PER_INSTRUCTION,
            || Duration::ZERO,
        );
        near(load_ns(&without, 512, chase()), 5.0);
        let walked = load_ns(&engine(caches, away.clone()), 512, chase());
        // Eight entries share a line, so one in eight comes from the second cache.
        near(walked, 5.0 + 3.0 + (5.0 + 7.0 * 1.0) / 8.0);
        let longer = load_ns(&engine(caches, Tlb { walk_ns: 9.0, ..away }), 512, chase());
        near(longer, walked + 9.0);
    }

    #[test]
    fn a_table_is_read_from_the_node_that_has_it() {
        let engine = engine("", small_tlb());
        let load_ps = |page: u64, table| {
            let begin_ps = engine.time_ps(0);
            let access = load(MIB + page * PAGE, (MIB + (page + 1) * PAGE) | 1 << 40);
            engine.enter(0).access(Access { table, ..access });
            engine.time_ps(0) - begin_ps
        };
        // The first walk reads the upper levels as well.
        load_ps(0, None);
        let taken_ns = [None, Some(0), Some(1)]
            .map(|table| load_ps(1 + table.map_or(0, |at| at as u64 + 1), table) / 1000);
        assert_eq!(taken_ns, [203, 203, 353]);
    }

    #[test]
    fn walks_of_independent_loads_overlap_as_far_as_there_are_walkers() {
        let with = |walkers| {
            let engine = engine(",stages=core", Tlb { walkers, ..small_tlb() });
            load_ns(&engine, 256, stream())
        };
        // Hits in the second level, before each walk, need no walker.
        near(with(1), 100.0);
        near(with(2), 50.0);
        near(with(4), 25.0);
    }

    #[test]
    fn walks_are_counted_and_their_cost_is_the_translations() {
        let engine = engine("", small_tlb());
        load_ns(&engine, 256, chase());
        let figures = engine.counters.of(0, 0);
        assert_eq!(figures.walks.get(), 4 * 256);
        let memory_ps = figures.nodes[0].cost_ps.get();
        assert_eq!(memory_ps, 4 * 256 * 100_000);
        assert_eq!(figures.cost_ps.get(), memory_ps + figures.translation_ps.get());
    }

    /// Returns the references of the first walk, and of walks of 256 further pages, from an address
    /// that allows guest pages of this size.
    fn references(tlb: Tlb, guest: u32, host: u8) -> (u64, u64) {
        let engine = engine("", tlb);
        engine.mark(0, Marker::HostPages(host));
        // Page and frame have the same offset in a page of this size, but not in a larger one.
        let beyond = (1 << guest) | 1 << 40;
        let walk = |page: u64| {
            let access = load(MIB + page * PAGE, (MIB + page * PAGE).wrapping_add(beyond));
            engine.enter(0).access(access);
            engine.counters.of(0, 0).references.get()
        };
        let first = walk(0);
        (first, (1..=256).map(walk).last().unwrap_or(0) - first)
    }

    #[test]
    fn a_walk_of_a_guest_on_a_host_takes_24_references_and_fewer_on_larger_pages() {
        let host = Tlb { host_page_bytes: Some(PAGE), upper_entries: 0, ..small_tlb() };
        let of = |guest, size| references(host.clone(), guest, size).0;
        assert_eq!([of(12, 0), of(12, 1), of(12, 2)], [24, 19, 14]);
        assert_eq!([of(21, 0), of(21, 1), of(21, 2)], [19, 15, 11]);
        assert_eq!(
            of(12, 0),
            references(small_tlb_in_a_guest(0), 12, 0).0,
            "the first is the whole walk"
        );
    }

    fn small_tlb_in_a_guest(upper_entries: u32) -> Tlb {
        Tlb { host_page_bytes: Some(PAGE), upper_entries, ..small_tlb() }
    }

    #[test]
    fn walks_that_follow_find_the_upper_entries_and_the_guests_tables() {
        let engine = engine("", small_tlb_in_a_guest(32));
        let walk = |page: u64| {
            engine.enter(0).access(load(MIB + page * PAGE, (MIB + (page + 1) * PAGE) | 1 << 40));
            engine.longest_walk(0)
        };
        assert_eq!([0, 1, 2].map(walk), [24; 3], "the longest is the first");
        engine.mark(0, Marker::HostPages(1));
        assert_eq!(engine.longest_walk(0), 0);
        assert_eq!(walk(3), 19);
        let (_, later) = references(small_tlb_in_a_guest(32), 12, 0);
        // The guest's last entry and the host's for the data.
        assert!((512..540).contains(&later), "{later} references of 256 walks");
    }

    #[test]
    fn a_host_of_small_pages_takes_a_guests_large_ones_apart() {
        let tlb = || {
            let mut tlb = small_tlb_in_a_guest(16);
            tlb.parts.iter_mut().for_each(|part| part.page_bytes.push(2 << 20));
            tlb
        };
        let walks = |host| {
            let engine = engine("", tlb());
            engine.mark(0, Marker::HostPages(host));
            (0..256).for_each(|page| {
                engine.enter(0).access(load(page * PAGE, (page * PAGE) | (1 << 40)));
            });
            engine.counters.of(0, 0).walks.get()
        };
        assert_eq!([walks(0), walks(1), walks(2)], [256, 1, 1]);
    }

    #[test]
    fn a_machine_without_a_host_takes_no_notice_of_its_pages() {
        assert_eq!(references(small_tlb(), 12, 0).0, 4);
        assert_eq!(references(small_tlb(), 12, 2).0, 4);
    }

    #[test]
    fn large_pages_need_no_walks_where_small_ones_do() {
        let mut tlb = small_tlb();
        tlb.parts[0].page_bytes.push(2 << 20);
        let engine = engine("", tlb);
        for turn in 0..512 {
            let address = turn * PAGE % (32 * MIB);
            engine.block(0, 1);
            let virtual_address = address | 1 << 40;
            let access = load(address, virtual_address);
            engine.enter(0).access(access);
        }
        assert_eq!(engine.counters.of(0, 0).walks.get(), 1);
    }
}
