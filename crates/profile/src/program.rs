//! All observations of a program.

use std::collections::{BTreeMap, HashMap, HashSet};

use numalab_host::perf::{Operation, SampleRecord, ServedBy};
use numalab_record::StretchAccesses;

use crate::code::Codes;
use crate::pages::{Pages, Use};
use crate::space::Space;
use crate::threads::Threads;
use crate::timeline::Timeline;

/// The meaning of a sample or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Access,
    /// A first touch only, if accesses come from another source.
    Touch,
}

/// Counts of a thread's accesses to a region's pages on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub loads: u64,
    pub stores: u64,
    /// Accesses that may be loads or stores.
    pub either: u64,
    /// Accesses that reached memory.
    pub misses: u64,
    /// Sum of the latencies of loads, in cycles.
    pub latency_cycles: u64,
}

/// The key of a tally: who accessed what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TallyKey {
    pub region: usize,
    pub thread: u32,
    pub cpu_node: u32,
    /// The memory's node, if known.
    pub memory_node: Option<u32>,
}

/// The key of first touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Touch {
    pub region: usize,
    pub thread: u32,
    pub cpu_node: u32,
    /// Index of the call chain.
    pub code: usize,
}

/// Use of an address range, for sources that do not see single accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeUse {
    /// Used pages, summed over all polls.
    pub used: u64,
    /// Written pages among these; `None` if unknown.
    pub written: Option<u64>,
}

/// An access to a page with an unknown node.
#[derive(Clone, Copy, Debug)]
struct Pending {
    time_ns: u64,
    page: u64,
    region: usize,
    thread: u32,
    cpu_node: u32,
    code: usize,
    how: Use,
    reached_memory: bool,
    latency_cycles: u64,
    counted: Counted,
    /// The node of the page before the access, if known.
    before: Option<u32>,
}

/// A program that a process runs, or ran.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub process: u32,
    pub name: String,
    /// The program that the process called exec for.
    pub became: Option<String>,
    /// The time at which it was first seen, in ns.
    pub begun_ns: u64,
    pub space: Space,
    pub codes: Codes,
    pub threads: Threads,
    pub pages: Pages,
    pub timeline: Timeline,
    pub tallies: HashMap<TallyKey, Tally>,
    /// Number of accesses, and of remote ones among them, by region and call chain.
    pub accessed_at: HashMap<(usize, usize), (u64, u64)>,
    /// Numbers of pages by their first touch.
    pub touches: HashMap<Touch, u64>,
    /// Used ranges by region, first address and end.
    pub ranges: HashMap<(usize, u64, u64), RangeUse>,
    /// True if uses of several regions are known only together.
    pub is_divided: bool,
    /// Pages by region and node at the last poll.
    pub resident: BTreeMap<usize, BTreeMap<u32, u64>>,
    /// Accesses to pages with an unknown node.
    pub unplaced: u64,
    /// Faults on pages that were present before.
    pub faults_again: u64,
    pending: Vec<Pending>,
    page_bytes: u64,
}

impl Program {
    pub(crate) fn new(process: u32, name: String, begun_ns: u64, page_bytes: u64) -> Self {
        Self {
            process,
            name,
            became: None,
            begun_ns,
            space: Space::default(),
            codes: Codes::default(),
            threads: Threads::default(),
            pages: Pages::default(),
            timeline: Timeline::new(begun_ns),
            tallies: HashMap::new(),
            accessed_at: HashMap::new(),
            touches: HashMap::new(),
            ranges: HashMap::new(),
            is_divided: false,
            resident: BTreeMap::new(),
            unplaced: 0,
            faults_again: 0,
            pending: Vec::new(),
            page_bytes,
        }
    }

    /// Records a sample or a fault on a cpu of this node.
    pub(crate) fn sample(&mut self, sample: &SampleRecord, cpu_node: u32, counted: Counted) {
        if let Some(pointer) = sample.stack_pointer {
            self.space.stack(pointer, sample.thread);
        }
        self.threads.seen(sample.thread, cpu_node);
        let how = match sample.access.map(|access| access.operation) {
            None => Use::Either,
            Some(Some(Operation::Load)) => Use::Load,
            Some(Some(Operation::Store)) => Use::Store,
            // The instruction accesses no memory.
            Some(None) => return,
        };
        if sample.address == 0 {
            return;
        }
        let region = self.space.found(sample.address, self.page_bytes);
        let page = sample.address / self.page_bytes * self.page_bytes;
        let code = self.codes.index_of(&sample.calls, &self.space);
        let (thread, is_fault) = (sample.thread, sample.access.is_none());
        let before = self.pages.node(page, region);
        let is_new = self.pages.page(page, region).is_none_or(|(page, is_new)| {
            if counted == Counted::Access {
                page.used(how, thread, cpu_node);
            }
            is_new
        });
        if is_fault && is_new {
            *self.touches.entry(Touch { region, thread, cpu_node, code }).or_default() += 1;
        }
        self.faults_again += u64::from(is_fault && !is_new);
        self.pending.push(Pending {
            time_ns: sample.time_ns,
            page,
            region,
            thread,
            cpu_node,
            code,
            how,
            reached_memory: sample.access.is_some_and(|of| of.served_by == ServedBy::Memory),
            latency_cycles: sample.latency_cycles,
            counted,
            before,
        });
    }

    /// Records pages of a range that were used between two moments by unknown threads. Several
    /// regions in the range get shares by their resident memory.
    pub(crate) fn used(&mut self, range: (u64, u64), of: RangeUse, times_ns: (u64, u64)) {
        self.space.found(range.0, self.page_bytes);
        let parts = self.resident_parts(range.0, range.1);
        let weight = |(from, to, share): &(u64, u64, f64)| (to - from) as f64 * share.max(1e-9);
        let all: f64 = parts.iter().map(weight).sum();
        self.is_divided |= parts.len() > 1;
        for part in &parts {
            let share = |count: u64| scaled(count, weight(part) / all);
            let written = of.written.map(share);
            self.used_part((part.0, part.1), RangeUse { used: share(of.used), written }, times_ns);
        }
    }

    fn used_part(&mut self, range: (u64, u64), of: RangeUse, times_ns: (u64, u64)) {
        let region = self.space.found(range.0, self.page_bytes);
        let sum = self.ranges.entry((region, range.0, range.1)).or_default();
        sum.used += of.used;
        sum.written = match (sum.written, of.written) {
            (None, written) => written,
            (Some(one), other) => Some(one + other.unwrap_or(0)),
        };
        self.timeline.used(times_ns.0, times_ns.1, region, of.used);
    }

    /// Attributes the accesses since the last call to nodes, by querying the pages with `ask`. A
    /// fault may have moved its page, so for faults the earlier node counts.
    pub(crate) fn settle(&mut self, ask: impl FnOnce(&[u64]) -> Vec<Option<u32>>) {
        let pending = std::mem::take(&mut self.pending);
        let pages: HashSet<u64> = pending.iter().map(|access| access.page).collect();
        let pages: Vec<u64> = pages.into_iter().collect();
        let nodes: HashMap<u64, u32> =
            pages.iter().zip(ask(&pages)).filter_map(|(page, node)| Some((*page, node?))).collect();
        let moved = used_from_several_nodes(&pending);
        for access in pending {
            let now = nodes.get(&access.page).copied();
            let node = match access.how {
                // The page may have moved before it was queried.
                Use::Either if moved.contains(&access.page) => access.before,
                Use::Either => access.before.or(now),
                Use::Load | Use::Store => now.or(access.before),
            };
            if let Some((page, _)) = self.pages.page(access.page, access.region) {
                page.node = now.or(page.node);
                let is_remote = node.is_some_and(|node| node != access.cpu_node);
                page.remote += u64::from(is_remote && access.counted == Counted::Access);
            }
            if access.counted == Counted::Access {
                self.count(&access, node);
            }
        }
    }

    fn count(&mut self, access: &Pending, node: Option<u32>) {
        let Pending { region, thread, cpu_node, .. } = *access;
        let key = TallyKey { region, thread, cpu_node, memory_node: node };
        let tally = self.tallies.entry(key).or_default();
        match access.how {
            Use::Load => tally.loads += 1,
            Use::Store => tally.stores += 1,
            Use::Either => tally.either += 1,
        }
        tally.misses += u64::from(access.reached_memory);
        if access.how == Use::Load {
            tally.latency_cycles += access.latency_cycles;
        }
        self.unplaced += u64::from(node.is_none());
        let is_remote = node.is_some_and(|node| node != cpu_node);
        let (all, remote) = self.accessed_at.entry((region, access.code)).or_default();
        (*all, *remote) = (*all + 1, *remote + u64::from(is_remote));
        let mut accesses = StretchAccesses { region, ..StretchAccesses::default() };
        match node {
            None => accesses.unplaced = 1,
            Some(_) if is_remote => accesses.remote = 1,
            Some(_) => accesses.local = 1,
        }
        self.timeline.add(access.time_ns, accesses);
    }

    /// Returns the mapped parts of a range, each with its resident share.
    pub(crate) fn resident_parts(&self, start: u64, end: u64) -> Vec<(u64, u64, f64)> {
        let regions = self.space.regions();
        let part = |(from, to, region): (u64, u64, usize)| {
            let known = &regions[region];
            let pages: u64 = self.resident.get(&region).map_or(0, |by_node| by_node.values().sum());
            let whole = (known.end - known.start) as f64 / self.page_bytes as f64;
            (from, to, (pages as f64 / whole.max(1.0)).min(1.0))
        };
        self.space.parts(start, end).into_iter().map(part).collect()
    }

    /// Returns all accesses, and those to memory of other nodes.
    pub(crate) fn accesses(&self) -> (u64, u64) {
        let all = |tally: &Tally| tally.loads + tally.stores + tally.either;
        let by_threads: u64 = self.tallies.values().map(all).sum();
        let used: u64 = self.ranges.values().map(|range| range.used).sum();
        let is_remote = |key: &TallyKey| key.memory_node.is_some_and(|node| node != key.cpu_node);
        let remote = self.tallies.iter().filter(|(key, _)| is_remote(key));
        (by_threads + used, remote.map(|(_, tally)| all(tally)).sum())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a count")]
fn scaled(count: u64, share: f64) -> u64 {
    (count as f64 * share).round() as u64
}

/// Returns the pages on which threads of several nodes faulted since the last call: NUMA balancing
/// may have moved them in between.
fn used_from_several_nodes(pending: &[Pending]) -> HashSet<u64> {
    let mut first: HashMap<u64, u32> = HashMap::new();
    let faults = pending.iter().filter(|access| access.how == Use::Either);
    let other = faults
        .filter(|access| *first.entry(access.page).or_insert(access.cpu_node) != access.cpu_node);
    other.map(|access| access.page).collect()
}

#[cfg(test)]
mod tests;
