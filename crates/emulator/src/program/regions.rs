//! A program's mappings by kind, with the accesses of each thread.

use std::fs;
use std::ops::Range;

use super::huge::{Advice, Huge};

/// Number of regions that are distinguished; later ones are counted together.
pub const MOST: usize = 1024;
const OTHERS: usize = MOST - 1;
/// Number of regions up to which growth from each code place makes a separate one.
const MOST_GROWN: usize = MOST / 4;
/// Number of first-touch places in the code that are distinguished per region.
const MOST_TOUCHES: usize = 16;

pub const STACK: &str = "[stack]";
pub const HEAP: &str = "[heap]";
pub const ANONYMOUS: &str = "[anonymous]";

/// A range of addresses that a program uses as a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// The first address when the region was made.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// The mapped file, or `[heap]`, `[stack]`, `[anonymous]`.
    pub name: String,
    /// Return addresses of the calls that made it, innermost first.
    pub made_by: Vec<u64>,
    /// Threads that touched the region's pages first.
    pub touches: Vec<FirstTouches>,
    /// If true, other processes may share the pages (`MAP_SHARED`).
    pub shared: bool,
}

impl Region {
    /// Returns true for memory of this process without a file, which is zero until it is written.
    pub fn is_private_memory(&self) -> bool {
        !self.shared && [ANONYMOUS, HEAP, STACK].contains(&self.name.as_str())
    }
}

/// Prefixes of names that look like files' but stand for memory.
const NO_FILES: [&str; 3] = ["/dev/shm/", "/dev/zero", "/memfd:"];

impl Region {
    /// Returns true for a mapped file, the pages of which are in memory before they are used.
    pub fn is_file(&self) -> bool {
        self.name.starts_with('/') && !NO_FILES.iter().any(|name| self.name.starts_with(name))
    }
}

/// Pages that one thread touched first at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstTouches {
    pub seat: usize,
    /// Address of the instruction.
    pub instruction: u64,
    /// Return addresses of its callers, innermost first.
    pub callers: Vec<u64>,
    pub pages: u64,
}

/// Regions in order of creation. Unmapped ones stay, for their figures.
#[derive(Debug, Default)]
pub struct Regions {
    known: Vec<Region>,
    /// The regions that are mapped now, by start: end and number.
    living: std::collections::BTreeMap<u64, (u64, usize)>,
    huge: Advice,
}

impl Regions {
    /// Returns the region of an address. An unknown one is looked up in the process's list of
    /// mappings and named by `name`, from the known regions and its file.
    pub fn of(&mut self, address: u64, name: impl FnOnce(&[Region], &str) -> String) -> usize {
        if let Some(number) = self.living_at(address) {
            return number;
        }
        let (start, end, path) = mapping(address).unwrap_or((address, address + 1, String::new()));
        let name = name(&self.known, &path);
        self.add(start, end, name, Vec::new())
    }

    /// Records the first touch of a page.
    pub fn touched(
        &mut self,
        region: usize,
        seat: usize,
        instruction: u64,
        callers: impl FnOnce() -> Vec<u64>,
    ) {
        let touches = &mut self.known[region].touches;
        let callers = callers();
        let caller = callers.first().copied();
        let alike = |of: &&mut FirstTouches| {
            (of.seat, of.instruction, of.callers.first().copied()) == (seat, instruction, caller)
        };
        if let Some(known) = touches.iter_mut().find(alike) {
            known.pages += 1;
        } else if touches.len() < MOST_TOUCHES {
            touches.push(FirstTouches { seat, instruction, callers, pages: 1 });
        } else if let Some(last) = touches.last_mut() {
            last.pages += 1;
        }
    }

    /// Returns the rule for huge pages at an address.
    pub fn huge(&self, address: u64) -> Huge {
        let below = self.living.range(..=address).next_back();
        let Some((&start, &(end, number))) = below else { return Huge::Never };
        match [ANONYMOUS, HEAP].contains(&self.known[number].name.as_str()) {
            true => self.huge.of(address, &(start..end)),
            false => Huge::Never,
        }
    }

    /// Applies advice about huge pages.
    pub fn say_huge(&mut self, addresses: Range<u64>, huge: bool) {
        self.huge.say(addresses, huge);
    }

    fn living_at(&self, address: u64) -> Option<usize> {
        let (_, &(end, number)) = self.living.range(..=address).next_back()?;
        (address < end).then_some(number)
    }

    /// Adds a region, replacing any existing one.
    pub fn add(&mut self, start: u64, end: u64, name: String, made_by: Vec<u64>) -> usize {
        self.remove(start, end);
        let number = self.known.len().min(OTHERS);
        match number {
            OTHERS => self.known.resize_with(MOST, || Region {
                name: "[mappings made later]".to_owned(),
                ..Region::default()
            }),
            _ => self.known.push(Region { start, end, name, made_by, ..Region::default() }),
        }
        self.living.insert(start, (end, number));
        number
    }

    /// Sets whether other processes may share a mapped region's pages.
    pub fn is_mapped(&mut self, number: usize, shared: bool) {
        self.known[number].shared = shared && number != OTHERS;
    }

    /// Forgets all first touches, in a new process.
    pub fn start_over(&mut self) {
        self.known.iter_mut().for_each(|region| region.touches.clear());
    }

    /// Grows the region made by calls from the same place; growth from another place makes a
    /// separate region, as long as there are not too many.
    pub fn grow(&mut self, from: u64, to: u64, name: &str, made_by: Vec<u64>) {
        let last = from.checked_sub(1).and_then(|last| self.living_at(last));
        let last = last.filter(|&number| {
            let region = &self.known[number];
            let same = region.made_by.first() == made_by.first() || self.known.len() > MOST_GROWN;
            region.name == name && same
        });
        let Some(number) = last else {
            self.add(from, to, name.to_owned(), made_by);
            return;
        };
        if let Some((_, living)) = self.living.range_mut(..from).next_back() {
            living.0 = to;
        }
        self.known[number].end = self.known[number].end.max(to);
    }

    /// Moves a region to other addresses.
    pub fn moved(&mut self, number: usize, from: (u64, u64), to: (u64, u64)) {
        self.remove(from.0, from.1);
        self.remove(to.0, to.1);
        self.living.insert(to.0, (to.1, number));
        if number != OTHERS {
            (self.known[number].start, self.known[number].end) = to;
        }
    }

    /// Removes all mappings in a range.
    pub fn remove(&mut self, start: u64, end: u64) {
        self.huge.forget(&(start..end));
        let met = self.living.range(..end).filter(|(_, living)| living.0 > start);
        let met: Vec<(u64, (u64, usize))> = met.map(|(start, living)| (*start, *living)).collect();
        for (from, (to, number)) in met {
            self.living.remove(&from);
            if from < start {
                self.living.insert(from, (start, number));
            }
            if to > end {
                self.living.insert(end, (to, number));
            }
        }
    }

    /// Returns all regions, present and unmapped.
    pub fn all(&self) -> &[Region] {
        &self.known
    }
}

/// Returns start, end and file of the mapping of an address (proc_pid_maps(5)).
fn mapping(address: u64) -> Option<(u64, u64, String)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (addresses, path) = line_of(line)?;
        let holds = addresses.contains(&address);
        holds.then(|| (addresses.start, addresses.end, path.to_owned()))
    })
}

/// Parses a line of the process's list of mappings.
fn line_of(line: &str) -> Option<(Range<u64>, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|word| u64::from_str_radix(word, 16).ok());
    Some((start?..end?, words.nth(4).unwrap_or_default().trim()))
}

/// The address ranges that the process has mapped, in order.
#[derive(Debug)]
pub struct Mapped(Vec<Range<u64>>);

impl Mapped {
    /// Reads the process's list of mappings.
    pub fn now() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self(maps.lines().filter_map(|line| Some(line_of(line)?.0)).collect())
    }

    /// Returns true if all addresses of a range are mapped.
    pub fn has(&self, range: &Range<u64>) -> bool {
        let first = self.0.partition_point(|of| of.end <= range.start);
        let covered = self.0[first..].iter().try_fold(range.start, |to, of| {
            if to >= range.end || of.start > to { Err(to) } else { Ok(of.end) }
        });
        covered.unwrap_or_else(|to| to) >= range.end
    }
}

/// Returns the number of the program's mappings, which are below those of QEMU.
pub fn mappings() -> u64 {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let qemu = fs::read_link("/proc/self/exe").unwrap_or_default();
    below(&maps, &qemu.to_string_lossy())
}

/// Returns the number of mappings before the first one of a file.
fn below(maps: &str, file: &str) -> u64 {
    maps.lines().take_while(|line| !line.ends_with(file)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_overlaid_in_the_middle_keeps_both_ends() {
        let mut regions = Regions::default();
        let outer = regions.add(0x1000, 0x9000, "outer".to_owned(), Vec::new());
        let inner = regions.add(0x3000, 0x4000, "inner".to_owned(), Vec::new());
        let at =
            |regions: &mut Regions, address| regions.of(address, |_, _| "looked up".to_owned());
        assert_eq!(at(&mut regions, 0x2fff), outer);
        assert_eq!(at(&mut regions, 0x3000), inner);
        assert_eq!(at(&mut regions, 0x4000), outer);
        regions.remove(0x0, 0x9000);
        let again = at(&mut regions, 0x2000);
        assert_eq!(regions.all()[again].name, "looked up");
        assert_eq!(regions.all().len(), 3);
    }

    #[test]
    fn finds_an_address_in_the_process_s_mappings() {
        let here = mapping as *const () as u64;
        let (start, end, path) = mapping(here).unwrap();
        assert!(start <= here && here < end && path.contains("numalab_emulator"), "{path}");
        assert!(mapping(1).is_none());
    }

    #[test]
    fn a_range_is_mapped_if_it_has_no_hole() {
        let mapped = Mapped(vec![0x1000..0x3000, 0x3000..0x4000, 0x6000..0x7000]);
        let ranges = [0x1000..0x4000, 0x2fff..0x3001, 0x6fff..0x7000, 0x2000..0x2000];
        assert!(ranges.iter().all(|range| mapped.has(range)));
        let holes = [0x0..0x2000, 0x3000..0x5000, 0x3000..0x7000, 0x6000..0x7001, 0x8000..0x8001];
        assert!(!holes.iter().any(|range| mapped.has(range)));
        assert!(Mapped::now().has(&(line_of as *const () as u64..line_of as *const () as u64 + 1)));
    }

    #[test]
    fn a_programs_mappings_are_those_below_qemu() {
        let maps = "1000-2000 r--p 0 0:1 7 /bin/true\n3000-4000 rw-p 0 0:0 0\n\
                    7000-8000 r-xp 0 0:1 9 /usr/bin/qemu\n9000-a000 rw-p 0 0:0 0\n";
        assert_eq!(below(maps, "/usr/bin/qemu"), 2);
        // The test itself is the lowest program here.
        assert_eq!(mappings(), 0);
    }

    #[test]
    fn a_heap_that_grows_in_one_place_is_one_region() {
        let mut regions = Regions::default();
        regions.grow(0x1000, 0x2000, "[heap]", vec![1]);
        regions.grow(0x2000, 0x3000, "[heap]", vec![1]);
        regions.grow(0x3000, 0x4000, "[heap]", vec![2]);
        let ranges: Vec<_> = regions.all().iter().map(|of| (of.start, of.end)).collect();
        assert_eq!(ranges, [(0x1000, 0x3000), (0x3000, 0x4000)]);
    }

    #[test]
    fn a_region_that_is_moved_stays_itself() {
        let mut regions = Regions::default();
        let number = regions.add(0x1000, 0x2000, "x".to_owned(), vec![5]);
        regions.moved(number, (0x1000, 0x2000), (0x8000, 0xa000));
        assert_eq!(regions.of(0x9fff, |_, _| "looked up".to_owned()), number);
        assert_eq!(regions.all()[number].end, 0xa000);
    }

    #[test]
    fn first_touches_are_counted_by_thread_and_place_in_the_code() {
        let mut regions = Regions::default();
        let number = regions.add(0x1000, 0x9000, "x".to_owned(), Vec::new());
        for page in 0..6 {
            regions.touched(number, page % 2, 0x40, || vec![0x50 + page as u64 / 4, 0x60]);
        }
        let found: Vec<_> =
            regions.all()[number].touches.iter().map(|of| (of.seat, of.pages)).collect();
        assert_eq!(found, [(0, 2), (1, 2), (0, 1), (1, 1)]);
    }

    #[test]
    fn regions_beyond_the_limit_are_counted_together() {
        let mut regions = Regions::default();
        let start = |at: usize| 0x1000 * (at as u64 + 1);
        for at in 0..MOST + 10 {
            let number = regions.add(start(at), start(at + 1), at.to_string(), Vec::new());
            assert_eq!(number, at.min(OTHERS));
        }
        assert_eq!(regions.all().len(), MOST);
    }
}
