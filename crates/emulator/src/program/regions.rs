//! A program's mappings, by what they are, and who accessed which of them.

use std::fs;
use std::sync::OnceLock;

use numalab_memory_model::counters::{Figure, Kind};
use serde::Serialize;

/// Regions that are told apart; later ones are counted together.
pub const MOST: usize = 1024;
const OTHERS: usize = MOST - 1;

/// A range of addresses that a program uses as one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Region {
    /// The first address, as it was when it was made.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// The file that is mapped, or `[heap]`, `[stack]`, `[anonymous]`.
    pub name: String,
}

/// The regions in the order in which they came. Those that are gone stay, for their figures.
#[derive(Debug, Default)]
pub struct Regions {
    known: Vec<Region>,
    /// Those that are there now, by start: end, number.
    living: std::collections::BTreeMap<u64, (u64, usize)>,
}

impl Regions {
    /// The region of an address; one that is not known yet is looked up in the process's own
    /// list of mappings, and named by those that are known and its file.
    pub fn of(&mut self, address: u64, name: impl FnOnce(&[Region], &str) -> String) -> usize {
        if let Some(number) = self.living_at(address) {
            return number;
        }
        let (start, end, path) = mapping(address).unwrap_or((address, address + 1, String::new()));
        let name = name(&self.known, &path);
        self.add(start, end, name)
    }

    fn living_at(&self, address: u64) -> Option<usize> {
        let (_, &(end, number)) = self.living.range(..=address).next_back()?;
        (address < end).then_some(number)
    }

    /// A new region in place of what was there.
    pub fn add(&mut self, start: u64, end: u64, name: String) -> usize {
        self.remove(start, end);
        let number = self.known.len().min(OTHERS);
        match number {
            OTHERS => self.known.resize_with(MOST, || Region {
                start: 0,
                end: 0,
                name: "[mappings made later]".to_owned(),
            }),
            _ => self.known.push(Region { start, end, name }),
        }
        self.living.insert(start, (end, number));
        number
    }

    /// The region that begins there is as long as this now.
    pub fn resize(&mut self, start: u64, end: u64) {
        let Some(living) = self.living.get_mut(&start) else { return };
        living.0 = end;
        if let Some(region) = self.known.get_mut(living.1) {
            region.end = region.end.max(end);
        }
    }

    /// Where a region that begins there ends.
    pub fn is_living(&self, start: u64) -> bool {
        self.living.contains_key(&start)
    }

    /// What is mapped there is gone.
    pub fn remove(&mut self, start: u64, end: u64) {
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

    /// All regions that ever were.
    pub fn all(&self) -> &[Region] {
        &self.known
    }
}

/// Start, end and file of the mapping that an address is in (proc_pid_maps(5)).
fn mapping(address: u64) -> Option<(u64, u64, String)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|word| u64::from_str_radix(word, 16).ok());
        let (start, end) = (start?, end?);
        let path = words.nth(4).unwrap_or_default().trim().to_owned();
        (start <= address && address < end).then_some((start, end, path))
    })
}

/// What a thread did to the regions: of each and each node, which together are a slot, loads,
/// stores and how long it waited for them, in ps.
#[derive(Debug, Default)]
pub struct Accesses {
    figures: OnceLock<Box<[[Figure; 3]]>>,
    /// The slot of the access before, and how long the thread had waited when it was made.
    last: Figure,
    waited_ps: Figure,
}

impl Accesses {
    /// Counts an access, `waited_ps` being how long the thread had waited in all before and behind
    /// it. What it waited since the access before was for that one: a core goes on until it needs
    /// a value.
    #[inline]
    pub fn add(&self, slot: usize, slots: usize, kind: Kind, waited_ps: [u64; 2]) {
        let make = || (0..slots).map(|_| Default::default()).collect::<Vec<_>>().into();
        let figures = self.figures.get_or_init(make);
        let [before_ps, behind_ps] = waited_ps;
        let last = usize::try_from(self.last.get()).unwrap_or(0);
        figures[last][2].add(before_ps.saturating_sub(self.waited_ps.get()));
        let [loads, stores, waited] = &figures[slot];
        match kind {
            Kind::Load => loads.add(1),
            Kind::Store => stores.add(1),
        }
        waited.add(behind_ps.saturating_sub(before_ps));
        self.last.set(slot as u64);
        self.waited_ps.set(behind_ps);
    }

    /// Loads, stores and ps waited of a slot.
    pub fn of(&self, slot: usize) -> [u64; 3] {
        let figures = self.figures.get().map(|figures| &figures[slot]);
        figures.map_or([0; 3], |figures| [0, 1, 2].map(|at: usize| figures[at].get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_that_is_mapped_over_in_its_middle_lives_on_at_both_ends() {
        let mut regions = Regions::default();
        let outer = regions.add(0x1000, 0x9000, "outer".to_owned());
        let inner = regions.add(0x3000, 0x4000, "inner".to_owned());
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
    fn an_address_is_found_in_the_process_s_own_list() {
        let here = mapping as *const () as u64;
        let (start, end, path) = mapping(here).unwrap();
        assert!(start <= here && here < end && path.contains("numalab_emulator"), "{path}");
        assert!(mapping(1).is_none());
    }

    #[test]
    fn what_is_waited_for_between_two_accesses_was_for_the_first() {
        let accesses = Accesses::default();
        accesses.add(1, 4, Kind::Load, [0, 10]);
        accesses.add(3, 4, Kind::Store, [100, 105]);
        assert_eq!(
            [0, 1, 2, 3].map(|slot| accesses.of(slot)),
            [[0, 0, 0], [1, 0, 100], [0, 0, 0], [0, 1, 5],]
        );
    }

    #[test]
    fn regions_beyond_the_limit_are_counted_together() {
        let mut regions = Regions::default();
        let start = |at: usize| 0x1000 * (at as u64 + 1);
        for at in 0..MOST + 10 {
            let number = regions.add(start(at), start(at + 1), at.to_string());
            assert_eq!(number, at.min(OTHERS));
        }
        assert_eq!(regions.all().len(), MOST);
    }
}
