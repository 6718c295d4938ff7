//! The cpus of nodes, from lists that may be wrapped at any column.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, NodeId, NodeSet};

use super::words::{malformed, place};
use crate::assembly::Assembly;
use crate::error::ReadError;

/// The fewest columns at which mails, terminals and pagers cut lines.
const NARROWEST: usize = 60;

#[derive(Debug, Default)]
pub(super) struct Lists(BTreeMap<NodeId, List>);

#[derive(Debug, Default)]
struct List {
    /// The number of the first line, and its text.
    begin: (usize, String),
    words: Vec<String>,
    /// The words that begin a line, but not the first line.
    wraps: Vec<usize>,
}

/// Lists that seem to lack cpus at the ends of their lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The cpus that no list has.
    pub missing: CpuSet,
    /// The length of the longest lines.
    pub column: usize,
    /// True if every missing cpu follows the end of a list: cpus that are offline are usually between
    /// others.
    pub is_sure: bool,
}

impl Lists {
    /// Begins the list of a node, with the words of its first line.
    pub(super) fn begin(&mut self, node: NodeId, number: usize, line: &str, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        self.0.insert(node, List { begin: (number, line.to_owned()), words, wraps: Vec::new() });
    }

    /// Continues the list of a node.
    pub(super) fn go_on(&mut self, node: NodeId, words: &[&str]) {
        let list = self.0.entry(node).or_default();
        list.wraps.push(list.words.len());
        list.words.extend(words.iter().map(|word| (*word).to_owned()));
    }

    /// Returns the nodes that have a list, which may be empty.
    pub(super) fn nodes(&self) -> NodeSet {
        self.0.keys().copied().collect()
    }

    /// Returns true if no list has a cpu.
    pub(super) fn are_empty(&self) -> bool {
        self.0.values().all(|list| list.words.is_empty())
    }

    /// Returns the cpus below the largest one that no list has, if lines of equal length suggest that a
    /// pager or a window cut them. Wrapped lists and those with their number of cpus are whole.
    pub(super) fn cut(&self) -> Option<Cut> {
        let end = |list: &List| list.begin.1.trim_end().chars().count();
        let column = self.0.values().map(end).max()?;
        // A space at the end of a line is lost with the rest.
        let at_end: Vec<&List> = self.0.values().filter(|list| end(list) + 1 >= column).collect();
        if at_end.len() < 2 || self.0.values().any(|list| list.is_whole()) {
            return None;
        }
        let mut listed = CpuSet::new();
        let read = |list: &List| list.read().unwrap_or_default();
        self.0.values().for_each(|list| listed.extend_from(&read(list)));
        let last = listed.iter().last()?;
        let missing = (0..last.0).map(CpuId).collect::<CpuSet>().difference(&listed);
        let first_lost = missing.first()?;
        // A cut takes the end of a list, so all that it took are above the cpus that are left.
        let lists_left = at_end.iter().filter_map(|list| read(list).iter().last());
        let is_sure = column >= NARROWEST && lists_left.min().is_some_and(|left| left < first_lost);
        Some(Cut { missing, column, is_sure })
    }

    /// Places the cpus of all nodes.
    ///
    /// # Errors
    /// [`ReadError::Syntax`] for a word that is not a list of cpus, for a list that is not in order,
    /// and for a wrapped list with cpus of another node: where a wrap broke a number is then
    /// unclear.
    pub(super) fn place(self, assembly: &mut Assembly) -> Result<(), ReadError> {
        let mut read = Vec::new();
        for (node, list) in &self.0 {
            read.push((*node, list, list.read()?));
        }
        for (node, list, cpus) in &read {
            let is_shared = |(other, _, theirs): &(NodeId, &List, CpuSet)| {
                other != node && theirs != cpus && !theirs.intersection(cpus).is_empty()
            };
            if !list.wraps.is_empty() && read.iter().any(is_shared) {
                return Err(list.broken());
            }
            assembly.place(cpus, *node, &place(list.begin.0));
        }
        Ok(())
    }
}

impl List {
    /// Returns true if nothing can be missing at the end of the first line.
    fn is_whole(&self) -> bool {
        !self.wraps.is_empty() || self.words.iter().any(|word| word.starts_with('('))
    }

    fn read(&self) -> Result<CpuSet, ReadError> {
        let (number, line) = &self.begin;
        let (mut all, mut last) = (CpuSet::new(), None);
        for word in self.rejoined() {
            // With --cpu-compress the number of cpus follows in parentheses.
            if word.starts_with('(') {
                continue;
            }
            let expected = "cpus such as `0 1 2` or `0-2, 8 (4)`";
            let cpus: CpuSet = word
                .trim_end_matches(',')
                .parse()
                .map_err(|_| malformed(*number, line, expected))?;
            if !cpus.is_empty() && last >= cpus.first() {
                return Err(self.broken());
            }
            last = cpus.iter().last().or(last);
            all.extend_from(&cpus);
        }
        Ok(all)
    }

    /// Returns the words, joining numbers that a wrap has broken: numactl prints cpus in order, so
    /// a number at a wrap that is not above the previous one is part of a number.
    fn rejoined(&self) -> Vec<String> {
        let mut words = self.words.clone();
        for &wrap in self.wraps.iter().rev() {
            let number = |index: usize| words.get(index).and_then(|word| word.parse::<u32>().ok());
            let [earlier, before, after] =
                [2, 1, 0].map(|back| wrap.checked_sub(back).and_then(number));
            let Some((before, after)) = before.zip(after) else { continue };
            if after <= before || earlier.is_some_and(|earlier| before <= earlier) {
                let rest = words.remove(wrap);
                words[wrap - 1] += &rest;
            }
        }
        words
    }

    fn broken(&self) -> ReadError {
        let expected = "each cpu once and in order, as numactl prints them; a number may be broken at the end of a line";
        malformed(self.begin.0, &self.begin.1, expected)
    }
}
