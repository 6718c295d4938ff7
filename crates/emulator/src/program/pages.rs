//! A program's pages, and the figures of freed ones.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use numalab_memory_model::machine::MOST_NODES;
use numalab_memory_model::space::Page;
use numalab_record::Sharing;

use super::page_use::{PageUse, Seen};

/// Inverse of the maximum share of stores among the accesses to a page that is worth a copy on each
/// node that uses it.
const READ_MOSTLY: u64 = 100;

/// Key of pages that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alike {
    pub region: usize,
    /// Position of the node that the pages are on.
    pub node: usize,
    /// True if the program chose their node.
    pub bound: bool,
    /// Position of the node that waits most for the pages.
    pub main_node: usize,
    pub sharing: Sharing,
}

/// Figures of pages that are counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub pages: u64,
    pub accesses: u64,
    /// Time waited for their memory by position of the cpu's node, in ps.
    pub memory_ps: [u64; MOST_NODES],
}

/// Pages by number.
#[derive(Debug, Default)]
pub struct Pages {
    living: HashMap<u64, &'static PageUse>,
    /// Records of freed pages, for reuse.
    free: Vec<&'static PageUse>,
    gone: BTreeMap<Alike, Sum>,
}

impl Pages {
    /// Returns the page with this number, if it has been touched.
    pub fn get(&self, number: u64) -> Option<&'static PageUse> {
        self.living.get(&number).copied()
    }

    /// Adds a page at its first touch. The page's record is never freed, because threads cache
    /// references; it is reused for another page later.
    pub fn add(&mut self, number: u64, region: usize, page: Page, seat: usize) -> &'static PageUse {
        let record = self.free.pop();
        let record = record.inspect(|record| record.renew(region, page, seat));
        let record =
            record.unwrap_or_else(|| Box::leak(Box::new(PageUse::new(region, page, seat))));
        self.living.insert(number, record);
        record
    }

    /// Removes pages that the program freed.
    pub fn remove(&mut self, numbers: Range<u64>) {
        // Programs unmap ranges far larger than the part that they touched, so the shorter of the
        // two is walked.
        let many = numbers.end - numbers.start > self.living.len() as u64;
        let gone: Vec<u64> = match many {
            true => self.living.keys().copied().filter(|number| numbers.contains(number)).collect(),
            false => numbers.collect(),
        };
        for number in gone {
            if let Some(record) = self.living.remove(&number) {
                add(&mut self.gone, &record.seen());
                self.free.push(record);
            }
        }
    }

    /// Renumbers pages that mremap(2) moved.
    pub fn rename(&mut self, from: Range<u64>, to: u64) {
        let moved = |number: u64| Some((to + (number - from.start), self.living.remove(&number)?));
        let moved: Vec<_> = from.clone().filter_map(moved).collect();
        self.living.extend(moved);
    }

    /// Starts over in a new process, with the parent's pages, none of which it has used; `page`
    /// looks up each one's location.
    pub fn start_over(&mut self, mut page: impl FnMut(u64) -> Option<Page>) {
        self.gone.clear();
        for (number, record) in &self.living {
            if let Some(page) = page(*number) {
                record.inherit(page);
            }
        }
    }

    /// Returns the figures of all pages, present and freed, by kind.
    pub fn alike(&self) -> BTreeMap<Alike, Sum> {
        let mut sums = self.gone.clone();
        self.living.values().for_each(|record| add(&mut sums, &record.seen()));
        sums
    }

    /// Returns the present pages, by region and number.
    pub fn by_region(&self) -> HashMap<usize, BTreeMap<u64, Seen>> {
        let mut regions: HashMap<usize, BTreeMap<u64, Seen>> = HashMap::new();
        for (number, record) in &self.living {
            let seen = record.seen();
            if seen.accesses.iter().all(|accesses| *accesses == 0) {
                continue;
            }
            regions.entry(seen.region).or_default().insert(*number, seen);
        }
        regions
    }
}

fn add(sums: &mut BTreeMap<Alike, Sum>, seen: &Seen) {
    let all: u64 = seen.accesses.iter().sum();
    if all == 0 {
        // Inherited from the parent, and not used by this process.
        return;
    }
    // By the time waited for memory; by accesses if no time was waited.
    let weight = |node: &usize| (seen.memory_ps[*node], seen.accesses[*node]);
    // For equal weights `max_by_key` takes the last node, which is the first in reverse.
    let main_node = (0..MOST_NODES).rev().max_by_key(weight).unwrap_or(0);
    let sharing = match (seen.threads, seen.nodes) {
        (..=1, _) => Sharing::Private,
        (_, ..=1) => Sharing::OneNode,
        // Earlier stores are those of the thread that filled the page.
        _ if seen.shared[1] * READ_MOSTLY <= seen.shared.iter().sum::<u64>() => Sharing::Read,
        _ => Sharing::Written,
    };
    let Seen { region, node, bound, .. } = *seen;
    let sum = sums.entry(Alike { region, node, bound, main_node, sharing });
    let sum = sum.or_default();
    sum.pages += 1;
    sum.accesses += all;
    sum.memory_ps.iter_mut().zip(seen.memory_ps).for_each(|(sum, ps)| *sum += ps);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Page = Page { frame: 0, node: 0, bound: false, table: 0, is_shared: false };
    /// Makes a number of accesses by the seat's thread, on a node.
    fn access(page: &PageUse, (seat, home): (usize, usize), accesses: [u64; 2]) {
        page.uses(seat, home);
        page.count(home, accesses);
    }

    #[test]
    fn pages_are_distinguished_by_their_users() {
        let mut pages = Pages::default();
        access(pages.add(1, 0, HOME, 0), (0, 0), [0, 1]);
        let table = pages.add(2, 0, HOME, 0);
        access(table, (0, 0), [0, 1]);
        (0..200).for_each(|turn| access(table, (turn % 4, turn % 2), [1, 0]));
        let filled = pages.add(4, 1, HOME, 0);
        access(filled, (0, 0), [0, 4096]);
        (0..20).for_each(|_| access(filled, (1, 1), [1, 1]));
        let shared = pages.add(3, 0, HOME, 0);
        (0..200).for_each(|turn| access(shared, (turn % 4, turn % 2), [0, 1]));
        shared.waited(1, 70);
        let found: Vec<_> = pages.alike().into_iter().collect();
        let sharing: Vec<_> = found.iter().map(|(alike, _)| alike.sharing).collect();
        let expected = [Sharing::Private, Sharing::Read, Sharing::Written, Sharing::Written];
        assert_eq!(sharing, expected);
        assert_eq!((found[2].0.main_node, found[2].1.memory_ps[1]), (1, 70));
    }

    #[test]
    fn freed_pages_are_counted_and_their_records_reused() {
        let mut pages = Pages::default();
        for round in 0..5 {
            access(pages.add(9, 7, HOME, 0), (0, round % 2), [1, 0]);
            pages.remove(0..1 << 40);
        }
        assert_eq!(pages.free.len(), 1);
        assert_eq!(pages.alike().values().map(|sum| sum.pages).sum::<u64>(), 5);
        pages.add(9, 7, HOME, 0);
        pages.rename(8..12, 108);
        assert!(pages.get(9).is_none() && pages.get(109).is_some());
    }
}
