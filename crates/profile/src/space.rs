//! The address space of a process: areas as they are mapped now, and the regions that they belong
//! to, which are kept after unmapping.

use std::collections::BTreeMap;

use numalab_host::perf::MapRecord;
use numalab_host::proc::MapsLine;

/// The kernel's name of memory without a file in its events.
const NO_FILE: &str = "//anon";
/// The name of such memory in records, also used by the memory emulator.
const ANONYMOUS: &str = "[anonymous]";

/// A contiguous part of memory with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// The file, `[heap]`, `[stack]`, `[anonymous]`.
    pub name: String,
    /// The thread whose stack it is, if it has no file.
    stack_of: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    end: u64,
    region: usize,
    /// Offset in its file, in bytes.
    offset: u64,
    /// The time at which it was mapped, by `CLOCK_MONOTONIC`, in ns.
    since_ns: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    areas: BTreeMap<u64, Area>,
    regions: Vec<Region>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub region: usize,
    pub offset: u64,
}

impl Space {
    /// Returns all regions ever seen, in order of discovery.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Returns the place of an address, if it is in a known area.
    pub(crate) fn at(&self, address: u64) -> Option<Place> {
        let (start, area) = self.areas.range(..=address).next_back()?;
        let within = address < area.end;
        within.then(|| Place { region: area.region, offset: area.offset + (address - start) })
    }

    /// Returns the region of an address; unknown memory becomes a new region of one page.
    pub(crate) fn found(&mut self, address: u64, page_bytes: u64) -> usize {
        if let Some(place) = self.at(address) {
            return place.region;
        }
        let start = address / page_bytes * page_bytes;
        self.map((start, start + page_bytes), 0, "", 0);
        self.at(address).map_or(0, |place| place.region)
    }

    /// Returns the mapped parts of a range with their regions.
    pub(crate) fn parts(&self, start: u64, end: u64) -> Vec<(u64, u64, usize)> {
        let part = |(at, area): (u64, Area)| (at.max(start), area.end.min(end), area.region);
        self.overlapping(start, end).into_iter().map(part).collect()
    }

    pub(crate) fn take(&mut self, record: &MapRecord) {
        let range = (record.start, record.end);
        self.map(range, record.offset, &record.name, record.time_ns);
    }

    /// Corrects the areas from the current mappings, since events do not report unmapping, moving
    /// or growth. Earlier events must have been processed: the kernel merges neighbours, which only
    /// their events distinguish.
    pub(crate) fn set(&mut self, lines: &[MapsLine], at_ns: u64) {
        for line in lines {
            self.map((line.start, line.end), line.offset, &line.name, at_ns);
        }
        let is_newer = |area: &Area| area.since_ns > at_ns;
        let newer = self.areas.iter().filter(|(_, area)| is_newer(area));
        let mut kept: BTreeMap<u64, Area> = newer.map(|(start, area)| (*start, *area)).collect();
        for line in lines {
            for (start, area) in self.overlapping(line.start, line.end) {
                let (from, end) = (start.max(line.start), area.end.min(line.end));
                let offset = area.offset + (from - start);
                kept.insert(from, Area { end, offset, ..area });
            }
        }
        self.areas = kept;
    }

    /// Records that a thread's stack pointer was here.
    pub(crate) fn stack(&mut self, address: u64, thread: u32) {
        let Some(place) = self.at(address) else { return };
        let region = &mut self.regions[place.region];
        if region.name == ANONYMOUS {
            region.stack_of = region.stack_of.or(Some(thread));
        }
    }

    /// Returns the name of a region. One that contains a thread's stack is named after it only if that
    /// thread is its user: the kernel merges stacks with the memory above them.
    pub(crate) fn name(&self, region: usize, is_used_by: impl Fn(u32) -> bool) -> String {
        let Region { name, stack_of, .. } = &self.regions[region];
        match stack_of.filter(|thread| is_used_by(*thread)) {
            Some(thread) => format!("[stack:{thread}]"),
            None => name.clone(),
        }
    }

    fn map(&mut self, (start, end): (u64, u64), offset: u64, name: &str, since_ns: u64) {
        let name = if name.is_empty() || name == NO_FILE { ANONYMOUS } else { name };
        if name == ANONYMOUS {
            // The kernel merges neighbours, and reports changes of protection as mappings too.
            // Known areas therefore stay as they are, and a gap within a file's memory belongs to
            // the file (its zero-initialised data).
            for (from, to) in self.unknown(start, end) {
                let region = self.grown_stack(from, to).unwrap_or_else(|| self.add(from, to, name));
                self.areas.insert(from, Area { end: to, region, offset: 0, since_ns });
            }
            return;
        }
        let region = match self.regions.iter().rposition(|known| known.name == name) {
            Some(at) => {
                let known = &mut self.regions[at];
                (known.start, known.end) = (known.start.min(start), known.end.max(end));
                at
            }
            None => self.add(start, end, name),
        };
        self.clear(start, end);
        self.areas.insert(start, Area { end, region, offset, since_ns });
    }

    fn add(&mut self, start: u64, end: u64, name: &str) -> usize {
        self.regions.push(Region { start, end, name: name.to_owned(), stack_of: None });
        self.regions.len() - 1
    }

    /// Returns the stack that has grown down to here.
    fn grown_stack(&mut self, start: u64, end: u64) -> Option<usize> {
        let area = self.areas.get(&end)?;
        let region = area.region;
        let known = &mut self.regions[region];
        if known.name != "[stack]" {
            return None;
        }
        known.start = known.start.min(start);
        Some(region)
    }

    fn overlapping(&self, start: u64, end: u64) -> Vec<(u64, Area)> {
        let before = self.areas.range(..start).next_back().filter(|(_, area)| area.end > start);
        let within = self.areas.range(start..end);
        before.into_iter().chain(within).map(|(at, area)| (*at, *area)).collect()
    }

    fn unknown(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let (mut gaps, mut from) = (Vec::new(), start);
        for (at, area) in self.overlapping(start, end) {
            if at > from {
                gaps.push((from, at));
            }
            from = from.max(area.end);
        }
        if from < end {
            gaps.push((from, end));
        }
        gaps
    }

    /// Removes the areas in a range.
    fn clear(&mut self, start: u64, end: u64) {
        for (at, area) in self.overlapping(start, end) {
            self.areas.remove(&at);
            if at < start {
                self.areas.insert(at, Area { end: start, ..area });
            }
            if area.end > end {
                let offset = area.offset + (end - at);
                self.areas.insert(end, Area { offset, ..area });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use numalab_host::proc::maps;
    use proptest::prelude::*;

    use super::*;

    fn map(space: &mut Space, start: u64, end: u64, name: &str) {
        let (process, time_ns, name) = (1, 0, name.to_owned());
        space.take(&MapRecord { time_ns, process, start, end, offset: 0x1000, name });
    }

    fn name_at(space: &Space, address: u64) -> Option<&str> {
        space.at(address).map(|place| &*space.regions()[place.region].name)
    }

    #[test]
    fn memory_that_the_kernel_merges_with_its_neighbour_stays_a_separate_region() {
        let mut space = Space::default();
        map(&mut space, 0x8000, 0xa000, NO_FILE);
        // The next mapping is below; the kernel reports both as one.
        map(&mut space, 0x5000, 0xa000, NO_FILE);
        assert_eq!(space.at(0x9000).unwrap().region, 0);
        assert_eq!(space.at(0x5000).unwrap().region, 1);
        assert_eq!((space.regions()[1].start, space.regions()[1].end), (0x5000, 0x8000));
        map(&mut space, 0x6000, 0x7000, NO_FILE);
        assert_eq!(space.regions().len(), 2, "its protection changed");
    }

    #[test]
    fn parts_of_a_file_and_its_zeroes_are_one_region() {
        let mut space = Space::default();
        map(&mut space, 0x10000, 0x20000, "/lib/a.so");
        map(&mut space, 0x14000, 0x18000, "/lib/a.so");
        map(&mut space, 0x18000, 0x19000, NO_FILE);
        assert_eq!(space.regions().len(), 1);
        assert_eq!(space.at(0x14010), Some(Place { region: 0, offset: 0x1010 }));
        assert_eq!(
            space.at(0x1f000).unwrap().offset,
            0x1000 + 0xf000,
            "behind what was put over it"
        );
    }

    #[test]
    fn a_mapping_replaces_those_below_it() {
        let mut space = Space::default();
        map(&mut space, 0x1000, 0x9000, NO_FILE);
        map(&mut space, 0x3000, 0x5000, "/lib/a.so");
        assert_eq!(name_at(&space, 0x2000), Some(ANONYMOUS));
        assert_eq!(name_at(&space, 0x4fff), Some("/lib/a.so"));
        assert_eq!(name_at(&space, 0x5000), Some(ANONYMOUS));
        assert_eq!(space.parts(0x2000, 0x3800), [(0x2000, 0x3000, 0), (0x3000, 0x3800, 1)]);
    }

    #[test]
    fn an_unmapped_area_is_removed_and_its_region_kept() {
        let mut space = Space::default();
        map(&mut space, 0x1000, 0x9000, NO_FILE);
        let text = "3000-5000 rw-p 00000000 00:00 0 \n7000-8000 rw-p 00000000 00:00 0 [heap]\n";
        space.set(&maps(text).collect::<Vec<_>>(), 0);
        assert_eq!(space.at(0x2000), None);
        assert_eq!(space.at(0x4000).unwrap().region, 0);
        assert_eq!(name_at(&space, 0x7000), Some("[heap]"));
        map(&mut space, 0x1000, 0x2000, NO_FILE);
        assert_eq!(space.at(0x1000).unwrap().region, 2, "other memory at the same place");
        assert_eq!(space.regions().len(), 3);
    }

    #[test]
    fn an_area_mapped_after_a_poll_is_kept() {
        let mut space = Space::default();
        let record = |start, time_ns| MapRecord {
            time_ns,
            process: 1,
            start,
            end: start + 0x1000,
            offset: 0,
            name: NO_FILE.to_owned(),
        };
        space.take(&record(0x1000, 5));
        space.take(&record(0x4000, 20));
        space.set(&[], 10);
        assert_eq!((space.at(0x1000), space.at(0x4000).map(|of| of.region)), (None, Some(1)));
    }

    #[test]
    fn a_stack_grows_downwards_and_stack_pointers_identify_those_of_threads() {
        let mut space = Space::default();
        map(&mut space, 0x7000, 0x9000, "[stack]");
        space.set(&maps("5000-9000 rw-p 00000000 00:00 0 [stack]\n").collect::<Vec<_>>(), 0);
        assert_eq!(name_at(&space, 0x5000), Some("[stack]"));
        map(&mut space, 0x1000, 0x2000, NO_FILE);
        space.stack(0x1800, 41);
        space.stack(0x8000, 40);
        let named = |address: u64, user: u32| {
            space.name(space.at(address).unwrap().region, |thread| thread == user)
        };
        assert_eq!(named(0x1000, 41), "[stack:41]");
        assert_eq!(named(0x1000, 42), ANONYMOUS, "another thread's memory is merged with it");
        assert_eq!(named(0x8000, 40), "[stack]");
    }

    proptest! {
        #[test]
        fn areas_never_overlap_and_every_mapping_is_there(
            maps in prop::collection::vec((0_u64..40, 1_u64..20, 0_usize..4), 1..30),
        ) {
            let names = [NO_FILE, "/a", "/b", "[heap]"];
            let mut space = Space::default();
            for (start, pages, name) in &maps {
                map(&mut space, start << 12, (start + pages) << 12, names[*name]);
                let mut last = 0;
                for (start, area) in &space.areas {
                    prop_assert!(*start >= last && area.end > *start);
                    last = area.end;
                }
                for page in *start..start + pages {
                    let found = name_at(&space, page << 12);
                    prop_assert!(found.is_some());
                    prop_assert!(*name == 0 || found == Some(names[*name]));
                }
            }
        }
    }
}
