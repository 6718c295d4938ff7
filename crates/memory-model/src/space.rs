//! The address space of a program without a separate emulated machine: assigns frames of the model
//! to its pages, by first touch and policy like Linux (numa(7), set_mempolicy(2)).

mod pool;
mod zeros;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::machine::Machine;
use crate::tlb::is_huge;
use pool::Pool;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4 << 10;
/// Pages in a huge page of 2 MiB.
pub const HUGE_PAGES: u64 = 512;

/// The placement of pages when they are first touched. Nodes are given by position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The node of the thread that touches them.
    #[default]
    Local,
    /// This node, or another one if it is full.
    Preferred(usize),
    /// The nearest of these nodes to the thread that touches them.
    Bind(Vec<usize>),
    /// These nodes in turn, by the page's number.
    Interleave(Vec<usize>),
}

/// A page that has been touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// First address of the page's frame in the machine's memory.
    pub frame: u64,
    /// Position of the node.
    pub node: usize,
    /// True if the program chose the node by a policy.
    pub bound: bool,
    /// Position of the node of the page table with the page's entry: that of the thread that first
    /// touched the surrounding 2 MiB.
    pub table: usize,
    /// True if the kernel copies the page at the next store, because a file or another process
    /// shares it.
    pub is_shared: bool,
}

/// A program's address space on a machine.
#[derive(Debug)]
pub struct Space {
    pools: Vec<Pool>,
    /// For each node all nodes, nearest first.
    nearest: Vec<Vec<usize>>,
    /// The placement of pages without a policy.
    first: Placement,
    pages: BTreeMap<u64, Page>,
    /// For pages that were only read, and so map the page of zeros: the node of their page table.
    zeroed: BTreeMap<u64, usize>,
    /// The page of zeros, once it has been used; [`zeros::PAGES`] on cores whose nearest cache holds a line
    /// under one address only.
    zeros: Vec<Option<Page>>,
    /// End and placement of the ranges of pages with a policy, by start.
    own: BTreeMap<u64, (u64, Placement)>,
}

impl Space {
    /// Creates an empty address space on the machine; `first` is the placement of pages without a
    /// policy.
    pub fn new(machine: &Machine, first: Placement) -> Self {
        // A node without cpus may be nearer to another node than to itself.
        let by_latency = |(from, row): (usize, &Vec<f64>)| {
            let mut nodes: Vec<usize> = (0..row.len()).collect();
            nodes.sort_by(|&a, &b| (a != from).cmp(&(b != from)).then(row[a].total_cmp(&row[b])));
            nodes
        };
        let timing = machine.core.and_then(|core| core.timing);
        let tells_apart = timing.is_some_and(|timing| timing.family.tells_addresses_apart());
        Self {
            pools: machine.nodes.iter().map(|node| Pool::new(&node.ranges)).collect(),
            nearest: machine.latency_ns.iter().enumerate().map(by_latency).collect(),
            first,
            pages: BTreeMap::new(),
            zeroed: BTreeMap::new(),
            zeros: vec![None; if tells_apart { zeros::PAGES } else { 1 }],
            own: BTreeMap::new(),
        }
    }

    /// Touches the page of this number from a thread on node `home`; `placement` is the thread's
    /// policy, for pages without their own. If the kernel may use a huge page (`huge`), it does so
    /// if none of its pages has been touched. Returns `None` if the machine's memory is exhausted.
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
            self.forget_zeros(block(number));
            let page = |at: u64| Page { frame: first.frame + at * PAGE_BYTES, bound, ..first };
            self.pages.extend((0..HUGE_PAGES).map(|at| (begin + at, page(at))));
            return Some(page(number - begin));
        }
        let table = self.table_of(number).unwrap_or(home);
        let page = Page { bound, table, ..place(self, false)? };
        self.zeroed.remove(&number);
        self.pages.insert(number, page);
        Some(page)
    }

    /// Sets whether the kernel copies a page at the next store.
    pub fn shares(&mut self, number: u64, is_shared: bool) {
        self.pages.entry(number).and_modify(|page| page.is_shared = is_shared);
    }

    /// Shares all pages with a child of the process.
    pub fn forks(&mut self) {
        self.pages.values_mut().for_each(|page| page.is_shared = true);
    }

    /// Returns true if a page has been touched and the kernel copies it at the next store.
    pub fn is_shared(&self, number: u64) -> bool {
        self.pages.get(&number).is_some_and(|page| page.is_shared)
    }

    /// Returns true if all pages in the 2 MiB around a page have been touched.
    pub fn has_block(&self, number: u64) -> bool {
        self.pages.range(block(number)).count() as u64 == HUGE_PAGES
    }

    /// Returns the node of the page table with a page's entry.
    fn table_of(&self, number: u64) -> Option<usize> {
        let zeroed = || self.zeroed.range(block(number)).next().map(|(_, table)| *table);
        self.in_block(number).map(|page| page.table).or_else(zeroed)
    }

    /// Returns the node of the touched pages in the 2 MiB around a page; if they differ, the node
    /// of the first one.
    pub fn node_of_block(&self, number: u64) -> Option<usize> {
        self.in_block(number).map(|page| page.node)
    }

    /// Returns the node that a huge page would be on if it took the place of the touched pages in the
    /// 2 MiB around a page, for a thread with this policy.
    pub fn node_of_huge(&self, number: u64, placement: Option<&Placement>) -> Option<usize> {
        let node = self.node_of_block(number)?;
        let said = self.placement_of(number).or(placement).unwrap_or(&self.first);
        // Small pages take turns within the block, huge ones from block to block.
        let Placement::Interleave(nodes) = said else { return Some(node) };
        Some(turn_of(number / HUGE_PAGES, nodes))
    }

    fn in_block(&self, number: u64) -> Option<&Page> {
        self.pages.range(block(number)).next().map(|(_, page)| page)
    }

    /// Returns the policy of a page's range, if it has one.
    pub fn placement_of(&self, number: u64) -> Option<&Placement> {
        let (_, (end, placement)) = self.own.range(..=number).next_back()?;
        (number < *end).then_some(placement)
    }

    /// Allocates a free frame, or the first one of a huge page.
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
            Placement::Interleave(nodes) => turn_of(turn, nodes),
            Placement::Bind(nodes) => {
                *self.nearest[home].iter().find(|node| nodes.contains(node))?
            }
        };
        let Self { pools, nearest, .. } = self;
        let allowed = |node: &&usize| match placement {
            Placement::Bind(nodes) => nodes.contains(node),
            _ => true,
        };
        // A huge page is never taken from another node while the first has small ones (`defrag`).
        let nodes = if huge { 1 } else { nearest.len() };
        let mut order = nearest[first].iter().filter(allowed).take(nodes);
        order.find_map(|&node| {
            let frame = pools[node].take(huge)?;
            Some(Page { frame, node, bound: true, table: home, is_shared: false })
        })
    }

    /// Frees pages; their next touch is a first touch. Returns the number of small pages that
    /// belonged to the process alone.
    pub fn discard(&mut self, numbers: Range<u64>) -> u64 {
        self.forget_zeros(numbers.clone());
        let gone: Vec<u64> = self.pages.range(numbers).map(|(number, _)| *number).collect();
        let mut own = 0;
        for number in gone {
            if let Some(page) = self.pages.remove(&number) {
                self.pools[page.node].free(page.frame);
                let is_huge = is_huge(number * PAGE_BYTES, page.frame);
                own += u64::from(!page.is_shared && !is_huge);
            }
        }
        own
    }

    /// Returns the touched pages of a range that are no part of huge pages, by number.
    pub fn small_pages(&self, numbers: Range<u64>) -> impl Iterator<Item = (u64, &Page)> {
        let touched = self.pages.range(numbers).map(|(number, page)| (*number, page));
        touched.filter(|(number, page)| !is_huge(number * PAGE_BYTES, page.frame))
    }

    /// Removes a mapping with its pages and their policy; returns the same as [`Self::discard`].
    pub fn unmap(&mut self, numbers: Range<u64>) -> u64 {
        self.forget_placement(&numbers);
        self.discard(numbers)
    }

    /// Sets or removes the policy of a range of pages; `moves` migrates pages on other nodes, like
    /// `MPOL_MF_MOVE`, for a caller on node `home`.
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
        let astray: Vec<(u64, Page)> = self.astray(numbers, placement, home).collect();
        for (number, old) in astray {
            if let Some(new) = self.place(number, home, placement, false) {
                self.replace(number, old, new);
            }
        }
    }

    /// Returns true if any of these pages is on a node that a policy does not allow, for a caller on node
    /// `home`.
    pub fn strays(&self, numbers: &Range<u64>, placement: &Placement, home: usize) -> bool {
        self.astray(numbers, placement, home).next().is_some()
    }

    fn astray(
        &self,
        numbers: &Range<u64>,
        placement: &Placement,
        home: usize,
    ) -> impl Iterator<Item = (u64, Page)> {
        let conforms = move |page: &Page| match placement {
            Placement::Local => page.node == home,
            Placement::Preferred(node) => page.node == *node,
            // Like the kernel, leaves interleaved pages on any of the nodes.
            Placement::Bind(nodes) | Placement::Interleave(nodes) => nodes.contains(&page.node),
        };
        let there = self.pages.range(numbers.clone());
        let astray = there.filter(move |(_, page)| !conforms(page));
        astray.map(|(number, page)| (*number, *page))
    }

    /// Returns the position of a page's node, if it has been touched.
    pub fn node_of(&self, number: u64) -> Option<usize> {
        self.pages.get(&number).map(|page| page.node)
    }

    /// Returns the pages on a node.
    pub fn on_node(&self, node: usize) -> Vec<u64> {
        let there = self.pages.iter().filter(|(_, page)| page.node == node);
        there.map(|(number, _)| *number).collect()
    }

    /// Migrates a page to a node like move_pages(2), regardless of its policy; returns its node
    /// afterwards, or `None` if it has not been touched or there is no room.
    pub fn migrate(&mut self, number: u64, node: usize) -> Option<usize> {
        let old = *self.pages.get(&number)?;
        if old.node != node {
            let new = self.place(number, node, &Placement::Bind(alloc::vec![node]), false)?;
            self.replace(number, old, new);
        }
        Some(node)
    }

    fn replace(&mut self, number: u64, old: Page, new: Page) {
        self.pools[old.node].free(old.frame);
        self.pages.insert(number, Page { table: old.table, is_shared: old.is_shared, ..new });
    }

    /// Moves pages in the address space like mremap(2): they keep their frames.
    pub fn remap(&mut self, from: Range<u64>, to: u64) {
        let read = self.zeroed(from.clone());
        let read = read.iter().filter_map(|number| Some((*number, self.zeroed.remove(number)?)));
        let read: Vec<(u64, usize)> = read.collect();
        let gone: Vec<u64> = self.pages.range(from.clone()).map(|(number, _)| *number).collect();
        let moved = gone.iter().filter_map(|number| Some((*number, self.pages.remove(number)?)));
        let moved: Vec<(u64, Page)> = moved.collect();
        let placement = self.placement_of(from.start).cloned();
        let end = to + (from.end - from.start);
        _ = self.unmap(to..end);
        self.pages.extend(moved.iter().map(|(number, page)| (to + (number - from.start), *page)));
        self.zeroed.extend(read.iter().map(|(number, table)| (to + (number - from.start), *table)));
        if let Some(placement) = placement {
            self.own.insert(to, (end, placement));
        }
        self.forget_placement(&from);
    }

    /// Returns the bytes of touched pages by position of the node.
    #[cfg(test)]
    fn bytes_by_node(&self) -> Vec<u64> {
        let mut bytes = alloc::vec![0; self.pools.len()];
        for page in self.pages.values() {
            bytes[page.node] += PAGE_BYTES;
        }
        bytes
    }

    /// Removes a range from those with a policy.
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

/// Returns the pages of the aligned 2 MiB block that contains a page.
pub fn block(number: u64) -> Range<u64> {
    let start = number / HUGE_PAGES * HUGE_PAGES;
    start..start + HUGE_PAGES
}

/// Returns the node whose turn it is for the page of this number.
fn turn_of(number: u64, nodes: &[usize]) -> usize {
    nodes[usize::try_from(number % nodes.len() as u64).unwrap_or(0)]
}

#[cfg(test)]
mod tests;
