//! The memory of a program that runs on no machine of its own: which of the model's frames its
//! pages get, by first touch and policy as Linux places them (numa(7), set_mempolicy(2)).

mod pool;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use crate::machine::Machine;
use pool::Pool;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4 << 10;
/// Pages in a huge page, of 2 MiB.
pub const HUGE_PAGES: u64 = 512;

/// On which nodes pages come to lie when they are first touched. Nodes by position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Where the thread runs that touches them.
    #[default]
    Local,
    /// There, or where there is room.
    Preferred(usize),
    /// The nearest of these to the thread that touches them.
    Bind(Vec<usize>),
    /// In turn over these, by the page's number.
    Interleave(Vec<usize>),
}

/// A page that has been touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// First address of its frame in the machine's memory.
    pub frame: u64,
    /// Position of the node that the frame lies on.
    pub node: usize,
    /// Whether the program itself said where it lies.
    pub bound: bool,
    /// Position of the node that has the page table with its entry: that of the thread which was the
    /// first in the 2 MiB around.
    pub table: usize,
}

/// A program's address space on a machine.
#[derive(Debug)]
pub struct Space {
    pools: Vec<Pool>,
    /// For each node all nodes, nearest first.
    nearest: Vec<Vec<usize>>,
    /// Where pages go of which nobody says anything.
    first: Placement,
    pages: BTreeMap<u64, Page>,
    /// End and placement of the ranges of pages that have their own, by start.
    own: BTreeMap<u64, (u64, Placement)>,
}

impl Space {
    /// An empty address space on the machine, whose pages go there unless the program says where.
    pub fn new(machine: &Machine, first: Placement) -> Self {
        let by_latency = |row: &Vec<f64>| {
            let mut nodes: Vec<usize> = (0..row.len()).collect();
            nodes.sort_by(|&a, &b| row[a].total_cmp(&row[b]));
            nodes
        };
        Self {
            pools: machine.nodes.iter().map(|node| Pool::new(&node.ranges)).collect(),
            nearest: machine.latency_ns.iter().map(by_latency).collect(),
            first,
            pages: BTreeMap::new(),
            own: BTreeMap::new(),
        }
    }

    /// The page of this number, which a thread on node `home` touches; `placement` is what the
    /// thread has said, for pages without their own. If the kernel may give a huge page (`huge`) it
    /// does where none of its pages has been touched. `None` when the machine's memory is used up.
    pub fn touch(
        &mut self,
        number: u64,
        home: usize,
        placement: Option<&Placement>,
        huge: bool,
    ) -> Option<Page> {
        if let Some(&page) = self.pages.get(&number) {
            return Some(page);
        }
        let said = self.placement_of(number).or(placement).cloned();
        let bound = said.is_some();
        let placement = said.unwrap_or_else(|| self.first.clone());
        let place = |of: &mut Self, huge| of.place(number, home, &placement, huge);
        if huge
            && self.node_of_block(number).is_none()
            && let Some(first) = place(self, true)
        {
            let begin = block(number).start;
            let page = |at: u64| Page { frame: first.frame + at * PAGE_BYTES, bound, ..first };
            self.pages.extend((0..HUGE_PAGES).map(|at| (begin + at, page(at))));
            return Some(page(number - begin));
        }
        let table = self.in_block(number).map_or(home, |page| page.table);
        let page = Page { bound, table, ..place(self, false)? };
        self.pages.insert(number, page);
        Some(page)
    }

    /// The node of what has been touched of the 2 MiB that a page lies in: of their first page, if
    /// nodes differ.
    pub fn node_of_block(&self, number: u64) -> Option<usize> {
        self.in_block(number).map(|page| page.node)
    }

    fn in_block(&self, number: u64) -> Option<&Page> {
        self.pages.range(block(number)).next().map(|(_, page)| page)
    }

    fn placement_of(&self, number: u64) -> Option<&Placement> {
        let (_, (end, placement)) = self.own.range(..=number).next_back()?;
        (number < *end).then_some(placement)
    }

    /// A free frame, or the first one of a huge page.
    fn place(
        &mut self,
        number: u64,
        home: usize,
        placement: &Placement,
        huge: bool,
    ) -> Option<Page> {
        let turn = if huge { number / HUGE_PAGES } else { number };
        let first = match placement {
            Placement::Local => home,
            Placement::Preferred(node) => *node,
            Placement::Interleave(nodes) => nodes[index(turn % nodes.len() as u64)],
            Placement::Bind(nodes) => {
                *self.nearest[home].iter().find(|node| nodes.contains(node))?
            }
        };
        let Self { pools, nearest, .. } = self;
        let allowed = |node: &&usize| match placement {
            Placement::Bind(nodes) => nodes.contains(node),
            _ => true,
        };
        // No huge page on another node where there are small ones on the first (`defrag`).
        let nodes = if huge { 1 } else { nearest.len() };
        let mut order = nearest[first].iter().filter(allowed).take(nodes);
        order.find_map(|&node| {
            Some(Page { frame: pools[node].take(huge)?, node, bound: true, table: home })
        })
    }

    /// Moves a page to a node, if that has room.
    pub fn move_page(&mut self, number: u64, node: usize) -> Option<Page> {
        let old = *self.pages.get(&number)?;
        let page = Page { frame: self.pools.get_mut(node)?.take(false)?, node, ..old };
        self.pages.insert(number, page);
        self.pools[old.node].free(old.frame);
        Some(page)
    }

    /// Pages that a program gives back: their next touch is a first one.
    pub fn discard(&mut self, numbers: Range<u64>) {
        let gone: Vec<u64> = self.pages.range(numbers).map(|(number, _)| *number).collect();
        for number in gone {
            if let Some(page) = self.pages.remove(&number) {
                self.pools[page.node].free(page.frame);
            }
        }
    }

    /// A mapping that is gone: its pages, and what was said of them.
    pub fn unmap(&mut self, numbers: Range<u64>) {
        self.forget_placement(&numbers);
        self.discard(numbers);
    }

    /// Gives a range of pages its own placement, or none; `moves` takes those that lie elsewhere
    /// there, as `MPOL_MF_MOVE` does, for a caller on node `home`.
    pub fn set_placement(
        &mut self,
        numbers: Range<u64>,
        placement: Option<Placement>,
        moves: bool,
        home: usize,
    ) {
        self.forget_placement(&numbers);
        if let Some(placement) = placement {
            if moves {
                self.conform(&numbers, &placement, home);
            }
            self.own.insert(numbers.start, (numbers.end, placement));
        }
    }

    fn conform(&mut self, numbers: &Range<u64>, placement: &Placement, home: usize) {
        let conforms = |number: u64, page: &Page| match placement {
            Placement::Local => page.node == home,
            Placement::Preferred(node) => page.node == *node,
            Placement::Bind(nodes) => nodes.contains(&page.node),
            Placement::Interleave(nodes) => nodes[index(number % nodes.len() as u64)] == page.node,
        };
        let there = self.pages.range(numbers.clone());
        let elsewhere = there.filter(|(number, page)| !conforms(**number, page));
        let elsewhere: Vec<(u64, Page)> =
            elsewhere.map(|(number, page)| (*number, *page)).collect();
        for (number, old) in elsewhere {
            if let Some(new) = self.place(number, home, placement, false) {
                self.pools[old.node].free(old.frame);
                self.pages.insert(number, Page { table: old.table, ..new });
            }
        }
    }

    /// Pages of a mapping that the kernel moved in the address space: they keep their frames.
    pub fn remap(&mut self, from: Range<u64>, to: u64) {
        let gone: Vec<u64> = self.pages.range(from.clone()).map(|(number, _)| *number).collect();
        let moved = gone.iter().filter_map(|number| Some((*number, self.pages.remove(number)?)));
        let moved: Vec<(u64, Page)> = moved.collect();
        let placement = self.placement_of(from.start).cloned();
        let end = to + (from.end - from.start);
        self.unmap(to..end);
        self.pages.extend(moved.iter().map(|(number, page)| (to + (number - from.start), *page)));
        if let Some(placement) = placement {
            self.own.insert(to, (end, placement));
        }
        self.forget_placement(&from);
    }

    /// Bytes of touched pages by position of the node.
    #[cfg(test)]
    fn bytes_by_node(&self) -> Vec<u64> {
        let mut bytes = alloc::vec![0; self.pools.len()];
        for page in self.pages.values() {
            bytes[page.node] += PAGE_BYTES;
        }
        bytes
    }

    /// Cuts a range out of those that have their own placement.
    fn forget_placement(&mut self, numbers: &Range<u64>) {
        let met: Vec<u64> = self
            .own
            .range(..numbers.end)
            .filter(|(_, (end, _))| *end > numbers.start)
            .map(|(start, _)| *start)
            .collect();
        for start in met {
            let Some((end, placement)) = self.own.remove(&start) else { continue };
            if start < numbers.start {
                self.own.insert(start, (numbers.start, placement.clone()));
            }
            if end > numbers.end {
                self.own.insert(numbers.end, (end, placement));
            }
        }
    }
}

/// The pages of the 2 MiB that a page lies in.
fn block(number: u64) -> Range<u64> {
    let start = number / HUGE_PAGES * HUGE_PAGES;
    start..start + HUGE_PAGES
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::machine_of;
    use alloc::vec;
    use proptest::prelude::*;

    /// Three nodes of 64 KiB each; node 1 is nearer to node 2 than node 0 is.
    fn space() -> Space {
        Space::new(
            &machine_of("cpus=0.1.2,memory=64K.64K.64K,distances=10.20.30/20.10.20/30.20.10"),
            Placement::Local,
        )
    }

    fn node(space: &mut Space, number: u64, home: usize, placement: &Placement) -> Option<usize> {
        space.touch(number, home, Some(placement), false).map(|page| page.node)
    }

    #[test]
    fn a_page_lies_where_it_was_first_touched_and_stays_there() {
        let mut space = space();
        assert_eq!(node(&mut space, 7, 2, &Placement::Local), Some(2));
        assert_eq!(node(&mut space, 7, 0, &Placement::Local), Some(2));
        space.discard(7..8);
        assert_eq!(node(&mut space, 7, 0, &Placement::Local), Some(0));
    }

    #[test]
    fn the_table_of_2_mib_lies_with_who_touches_them_first_wherever_pages_do() {
        let mut space = space();
        space.set_placement(0..8, Some(Placement::Bind(vec![2])), false, 0);
        let mut table = |number, home| {
            let page = space.touch(number, home, None, false).expect("there is room");
            (page.node, page.table)
        };
        assert_eq!([table(3, 1), table(20, 0), table(HUGE_PAGES, 0)], [(2, 1), (0, 1), (0, 0)]);
        let moved = space.move_page(20, 2).expect("there is room");
        assert_eq!((moved.node, moved.table), (2, 1));
    }

    #[test]
    fn a_range_has_a_placement_before_the_thread_has() {
        let mut space = space();
        space.set_placement(10..20, Some(Placement::Interleave(vec![0, 2])), false, 0);
        let nodes = |space: &mut Space, numbers: Range<u64>| -> Vec<_> {
            numbers.map(|number| node(space, number, 1, &Placement::Preferred(1))).collect()
        };
        assert_eq!(nodes(&mut space, 9..13), [Some(1), Some(0), Some(2), Some(0)]);
        space.set_placement(14..16, None, false, 0);
        assert_eq!(nodes(&mut space, 13..17), [Some(2), Some(1), Some(1), Some(0)]);
        space.unmap(0..64);
        assert_eq!(nodes(&mut space, 10..11), [Some(1)]);
    }

    #[test]
    fn a_huge_page_is_all_on_the_node_of_its_first_touch_if_none_of_it_was_touched_before() {
        let machine = "cpus=0.1,memory=8M.8M,distances=10.20/20.10";
        let mut space = Space::new(&machine_of(machine), Placement::Local);
        let first = space.touch(3 * HUGE_PAGES + 7, 1, None, true).expect("there is room");
        let last = space.touch(4 * HUGE_PAGES - 1, 0, None, false).expect("it is there");
        assert_eq!((first.node, last.node), (1, 1));
        assert_eq!(last.frame - first.frame, (HUGE_PAGES - 8) * PAGE_BYTES);
        assert_eq!((first.frame - 7 * PAGE_BYTES) % (HUGE_PAGES * PAGE_BYTES), 0);
        let alone = space.touch(0, 0, None, false).expect("there is room");
        let beside = space.touch(1, 1, None, true).expect("there is room");
        assert_eq!((alone.node, beside.node), (0, 1));
        space.discard(3 * HUGE_PAGES..4 * HUGE_PAGES);
        assert_eq!(space.bytes_by_node(), [PAGE_BYTES, PAGE_BYTES]);
    }

    #[test]
    fn a_bound_page_never_lies_elsewhere_and_others_fall_back_to_the_nearest() {
        let mut space = space();
        let bound = Placement::Bind(vec![0, 1]);
        // 16 pages a node: the nearer of the two, then the other, then none.
        let nodes: Vec<_> = (0..33).map(|number| node(&mut space, number, 2, &bound)).collect();
        assert!(nodes[..16].iter().all(|node| *node == Some(1)), "{nodes:?}");
        assert!(nodes[16..32].iter().all(|node| *node == Some(0)), "{nodes:?}");
        assert_eq!(nodes[32], None);
        assert_eq!(node(&mut space, 40, 0, &Placement::Local), Some(2));
    }

    #[test]
    fn a_page_is_bound_if_the_program_said_where_it_lies() {
        let mut space = space();
        let bound = |space: &mut Space, number, said: Option<&Placement>| {
            space.touch(number, 0, said, false).map(|page| page.bound)
        };
        assert_eq!(bound(&mut space, 1, None), Some(false));
        assert_eq!(bound(&mut space, 2, Some(&Placement::Local)), Some(true));
        space.set_placement(1..4, Some(Placement::Bind(vec![1])), true, 0);
        assert_eq!([1, 3].map(|number| bound(&mut space, number, None)), [Some(true); 2]);
        space.move_page(3, 2);
        assert_eq!(bound(&mut space, 3, None), Some(true));
    }

    #[test]
    fn pages_move_when_they_are_told_to() {
        let mut space = space();
        (0..4)
            .for_each(|number| assert_eq!(node(&mut space, number, 0, &Placement::Local), Some(0)));
        space.set_placement(0..4, Some(Placement::Bind(vec![2])), false, 0);
        assert_eq!(space.bytes_by_node(), [4 * PAGE_BYTES, 0, 0]);
        space.set_placement(0..4, Some(Placement::Bind(vec![2])), true, 0);
        assert_eq!(space.bytes_by_node(), [0, 0, 4 * PAGE_BYTES]);
    }

    #[test]
    fn a_page_moves_alone() {
        let mut space = space();
        space.touch(1, 0, Some(&Placement::Local), false);
        space.touch(2, 0, Some(&Placement::Local), false);
        assert_eq!(space.move_page(2, 1).map(|page| page.node), Some(1));
        assert_eq!(space.bytes_by_node(), [PAGE_BYTES, PAGE_BYTES, 0]);
    }

    #[test]
    fn a_moved_mapping_keeps_its_frames_and_its_placement() {
        let mut space = space();
        space.set_placement(0..2, Some(Placement::Preferred(2)), false, 0);
        let before = space.touch(0, 0, Some(&Placement::Local), false);
        space.remap(0..2, 100);
        assert_eq!(space.touch(100, 1, Some(&Placement::Local), false), before);
        assert_eq!(node(&mut space, 101, 0, &Placement::Local), Some(2));
        assert_eq!(node(&mut space, 0, 1, &Placement::Local), Some(1));
    }

    proptest! {
        #[test]
        fn no_frame_is_two_pages_at_a_time(steps in prop::collection::vec((0_u64..80, 0_usize..3, 0_u8..6), 1..200)) {
            let mut space = space();
            for (number, home, what) in steps {
                match what {
                    0 => space.discard(number..number + 3),
                    1 => space.unmap(number..number + 9),
                    2 => space.set_placement(number..number + 5, Some(Placement::Bind(vec![home])), true, home),
                    3 => space.remap(number..number + 4, 200 + number),
                    _ => drop(space.touch(number, home, Some(&Placement::Local), false)),
                }
                let mut frames: Vec<u64> = space.pages.values().map(|page| page.frame).collect();
                let pages = frames.len();
                frames.sort_unstable();
                frames.dedup();
                prop_assert_eq!(frames.len(), pages);
                prop_assert!(pages <= 48);
            }
        }
    }
}
