//! The pages that a program has, and what is kept of those that it gave back.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use numalab_memory_model::machine::MOST_NODES;
use numalab_memory_model::space::Page;
use numalab_record::Sharing;

use super::page_use::{PageUse, Seen};

/// Of a page's accesses, stores among several nodes' are this part at most where copies on the
/// nodes would pay.
const READ_MOSTLY: u64 = 100;

/// Pages that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alike {
    /// The region's number.
    pub region: usize,
    /// Position of the node that they lie on.
    pub node: usize,
    /// Whether the program itself said so.
    pub bound: bool,
    /// Position of the node that waits for them most.
    pub main_node: usize,
    /// Who uses them.
    pub sharing: Sharing,
}

/// What was seen of pages that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// So many.
    pub pages: u64,
    /// Accesses to them.
    pub accesses: u64,
    /// Time waited for their memory by position of the cpu's node, in ps.
    pub memory_ps: [u64; MOST_NODES],
}

/// Pages by number.
#[derive(Debug, Default)]
pub struct Pages {
    living: HashMap<u64, &'static PageUse>,
    /// Records of pages that are gone, for pages that come.
    free: Vec<&'static PageUse>,
    gone: BTreeMap<Alike, Sum>,
}

impl Pages {
    /// The page of this number, if it has been touched.
    pub fn get(&self, number: u64) -> Option<&'static PageUse> {
        self.living.get(&number).copied()
    }

    /// A page that is touched for the first time. Its record lives for good, since threads
    /// remember it; it serves another page when this one is gone.
    pub fn add(&mut self, number: u64, region: usize, page: Page, seat: usize) -> &'static PageUse {
        let record = self.free.pop();
        let record = record.inspect(|record| record.renew(region, page, seat));
        let record =
            record.unwrap_or_else(|| Box::leak(Box::new(PageUse::new(region, page, seat))));
        self.living.insert(number, record);
        record
    }

    /// Pages that the program gave back.
    pub fn remove(&mut self, numbers: Range<u64>) {
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

    /// Pages whose addresses changed.
    pub fn rename(&mut self, from: Range<u64>, to: u64) {
        let moved = |number: u64| Some((to + (number - from.start), self.living.remove(&number)?));
        let moved: Vec<_> = from.clone().filter_map(moved).collect();
        self.living.extend(moved);
    }

    /// A process begins with what its parent has, and has used none of it: where each page lies is
    /// looked up by its number.
    pub fn start_over(&mut self, mut page: impl FnMut(u64) -> Option<Page>) {
        self.gone.clear();
        for (number, record) in &self.living {
            if let Some(page) = page(*number) {
                record.inherit(page);
            }
        }
    }

    /// All pages that ever were, together where they are alike.
    pub fn alike(&self) -> BTreeMap<Alike, Sum> {
        let mut sums = self.gone.clone();
        self.living.values().for_each(|record| add(&mut sums, &record.seen()));
        sums
    }

    /// The pages that are there now, by region and number.
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
        // A parent's, which this process did not use.
        return;
    }
    // By what is waited, and where nobody waits by who uses it.
    let weight = |node: &usize| (seen.memory_ps[*node], seen.accesses[*node]);
    let main_node = (0..MOST_NODES).rev().max_by_key(weight).unwrap_or(0);
    let sharing = match (seen.threads, seen.nodes) {
        (..=1, _) => Sharing::Private,
        (_, ..=1) => Sharing::OneNode,
        _ if seen.shared_stores * READ_MOSTLY <= all => Sharing::Read,
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

    const HOME: Page = Page { frame: 0, node: 0, bound: false, table: 0 };
    /// A thread of a seat, on a node, makes so many loads and stores.
    fn access(page: &PageUse, (seat, home): (usize, usize), accesses: [u64; 2]) {
        page.uses(seat, home);
        page.count(home, accesses);
    }

    #[test]
    fn pages_are_told_apart_by_who_uses_them() {
        let mut pages = Pages::default();
        access(pages.add(1, 0, HOME, 0), (0, 0), [0, 1]);
        let table = pages.add(2, 0, HOME, 0);
        access(table, (0, 0), [0, 1]);
        (0..200).for_each(|turn| access(table, (turn % 4, turn % 2), [1, 0]));
        let shared = pages.add(3, 0, HOME, 0);
        (0..200).for_each(|turn| access(shared, (turn % 4, turn % 2), [0, 1]));
        shared.waited(1, 70);
        let found: Vec<_> = pages.alike().into_iter().collect();
        let sharing: Vec<_> = found.iter().map(|(alike, _)| alike.sharing).collect();
        assert_eq!(sharing, [Sharing::Private, Sharing::Read, Sharing::Written]);
        assert_eq!((found[2].0.main_node, found[2].1.memory_ps[1]), (1, 70));
    }

    #[test]
    fn pages_that_are_gone_are_counted_and_their_records_used_again() {
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
