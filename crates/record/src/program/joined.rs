//! Joins the processes of a command into one program.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    KernelTime, NodePages, NodeWaits, PagesAlike, Placed, ProgramMemory, ProgramThread, Region,
    RegionAccesses, RegionPart, Sharing, Stretch, StretchAccesses,
};

/// The minimum share of a process's accesses to shared memory that must go to parts also accessed
/// by processes on other nodes for its pages to count as shared.
const SHARED_SHARE: f64 = 0.5;
/// The inverse of the maximum share of stores at which a copy of a page on each node pays off.
const READ_MOSTLY: u64 = 100;

impl ProgramMemory {
    /// Joins the figures of processes that run as one program. Threads are renumbered. Mappings of
    /// the same file and code place at the same addresses become one region: pages that processes
    /// share, and each one's private pages.
    pub fn joined(processes: Vec<Self>) -> Self {
        let is_one = processes.len() == 1;
        let mut all = processes.into_iter();
        let Some(mut whole) = all.next() else { return Self::default() };
        if is_one {
            return whole;
        }
        whole.became = None;
        let mut known: BTreeMap<Key, usize> = BTreeMap::new();
        let mut uses: Vec<Vec<Use>> = Vec::new();
        for (at, region) in whole.regions.iter().enumerate() {
            known.entry(key(region)).or_insert(at);
            uses.push(vec![Use::of(region)]);
        }
        for process in all {
            let process = renumbered(process, &whole.threads);
            let positions: Vec<usize> = process
                .regions
                .into_iter()
                .map(|region| {
                    let at = *known.entry(key(&region)).or_insert(whole.regions.len());
                    if at == whole.regions.len() {
                        uses.push(vec![Use::of(&region)]);
                        whole.regions.push(region);
                    } else {
                        uses[at].push(Use::of(&region));
                        add_region(&mut whole.regions[at], region);
                    }
                    at
                })
                .collect();
            add_timeline(&mut whole.timeline, &process.timeline, &positions);
            whole.threads.extend(process.threads);
            whole.elapsed_ns = whole.elapsed_ns.max(process.elapsed_ns);
            whole.contended_lines.extend(process.contended_lines);
            whole.unplaced += process.unplaced;
            whole.page_faults = KernelTime::sum(whole.page_faults, process.page_faults);
            whole.system_calls = KernelTime::sum(whole.system_calls, process.system_calls);
        }
        for (region, uses) in whole.regions.iter_mut().zip(&uses) {
            if region.shared && are_shared(uses) {
                share(region);
            }
        }
        whole.contended_lines.sort_by_key(|line| std::cmp::Reverse(line.waited_ns()));
        // Each process packed its threads as if it were alone.
        let threads = whole.threads.iter_mut();
        threads.for_each(|thread| thread.elsewhere.retain(|of| of.placed != Placed::Packed));
        whole
    }
}

impl KernelTime {
    fn sum(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let and =
            |a: Self, b: Self| Self { count: a.count + b.count, time_ns: a.time_ns + b.time_ns };
        one.into_iter().chain(other).reduce(and)
    }
}

/// The identity of a region.
type Key = (String, u64, u64, Vec<(String, u64)>);

fn key(region: &Region) -> Key {
    let made = region.made_at.iter().map(|place| (place.object.clone(), place.offset));
    (region.name.clone(), region.start, region.end, made.collect())
}

/// Renumbers the threads of a process whose numbers are already in use.
fn renumbered(mut process: ProgramMemory, others: &[ProgramThread]) -> ProgramMemory {
    let is_taken = |thread: &ProgramThread| others.iter().any(|of| of.thread == thread.thread);
    if !process.threads.iter().any(is_taken) {
        return process;
    }
    let first = others.iter().map(|of| of.thread + 1).max().unwrap_or(0);
    let numbers: BTreeMap<u32, u32> =
        process.threads.iter().map(|thread| thread.thread).zip(first..).collect();
    // A thread that only touched a page has no row.
    let number = |thread: &mut u32| *thread = *numbers.get(thread).unwrap_or(&first);
    process.threads.iter_mut().for_each(|thread| number(&mut thread.thread));
    for region in &mut process.regions {
        region.first_touches.iter_mut().for_each(|touches| number(&mut touches.thread));
        region.accesses.iter_mut().for_each(|accesses| number(&mut accesses.thread));
    }
    for line in &mut process.contended_lines {
        line.threads.iter_mut().for_each(|user| number(&mut user.thread));
    }
    process
}

/// Adds the same mapping of another process: the same pages if they are shared, else further pages.
fn add_region(whole: &mut Region, region: Region) {
    let sum = |one: u64, other: u64| if whole.shared { one.max(other) } else { one + other };
    whole.hot_pages = sum(whole.hot_pages, region.hot_pages);
    for of in region.resident {
        match whole.resident.iter_mut().find(|known| known.memory_node == of.memory_node) {
            Some(known) => known.pages = sum(known.pages, of.pages),
            None => whole.resident.push(of),
        }
    }
    whole.resident.sort_by_key(|of: &NodePages| of.memory_node);
    whole.first_touches.extend(region.first_touches);
    whole.accesses.extend(region.accesses);
    whole.accessed_at.extend(region.accessed_at);
    whole.pages.extend(region.pages);
    match whole.parts.iter().map(|part| part.end).eq(region.parts.iter().map(|part| part.end)) {
        true => whole.parts.iter_mut().zip(&region.parts).for_each(|(part, of)| add_part(part, of)),
        false if whole.parts.is_empty() => whole.parts = region.parts,
        false => {}
    }
}

fn add_part(part: &mut RegionPart, of: &RegionPart) {
    part.memory_node = part.memory_node.or(of.memory_node);
    part.accesses += of.accesses;
    part.remote += of.remote;
    part.stores = part.stores.zip(of.stores).map(|(one, other)| one + other);
}

/// A process's use of a region: by its parts, and from which nodes.
struct Use {
    nodes: BTreeSet<u32>,
    parts: Vec<u64>,
}

impl Use {
    fn of(region: &Region) -> Self {
        let nodes = region.accesses.iter().map(|accesses| accesses.cpu_node).collect();
        Self { nodes, parts: region.parts.iter().map(|part| part.accesses).collect() }
    }
}

/// Returns true if processes access mostly memory that is also accessed from other nodes, judged by
/// the parts of the region.
fn are_shared(uses: &[Use]) -> bool {
    let (mut all, mut shared) = (0, 0);
    for (at, own) in uses.iter().enumerate() {
        for (part, accesses) in own.parts.iter().enumerate() {
            let is_other = |(number, other): (usize, &Use)| {
                number != at
                    && other.nodes != own.nodes
                    && other.parts.get(part).is_some_and(|accesses| *accesses > 0)
            };
            all += accesses;
            shared += if uses.iter().enumerate().any(is_other) { *accesses } else { 0 };
        }
    }
    all > 0 && shared as f64 >= SHARED_SHARE * all as f64
}

/// Merges the pages of a shared region, which each process reported: takes the largest number that
/// any process reported, and the sum of all waits.
fn share(region: &mut Region) {
    let first: BTreeSet<u32> = region.first_touches.iter().map(|of| of.thread).collect();
    // The thread that produced the data must have stored it once.
    let others = region.accesses.iter().filter(|of| !first.contains(&of.thread));
    let stores: Option<u64> = others.map(|of| of.stores).sum();
    let all: u64 = region.accesses.iter().map(RegionAccesses::all).sum();
    let sharing = match stores {
        Some(stores) if stores * READ_MOSTLY <= all => Sharing::Read,
        Some(_) => Sharing::Written,
        None => Sharing::Shared,
    };
    let mut by_node: BTreeMap<(u32, bool), PagesAlike> = BTreeMap::new();
    for of in region.pages.drain(..) {
        let whole = by_node.entry((of.memory_node, of.bound)).or_insert_with(|| PagesAlike {
            sharing,
            pages: 0,
            accesses: 0,
            waits: Vec::new(),
            ..of.clone()
        });
        whole.pages = whole.pages.max(of.pages);
        whole.accesses += of.accesses;
        of.waits.into_iter().for_each(|waits| add_waits(&mut whole.waits, waits));
    }
    region.pages = by_node.into_values().map(with_main_node).collect();
}

fn add_waits(all: &mut Vec<NodeWaits>, waits: NodeWaits) {
    match all.iter_mut().find(|known| known.cpu_node == waits.cpu_node) {
        Some(known) => known.memory_ns += waits.memory_ns,
        None => all.push(waits),
    }
}

fn with_main_node(mut pages: PagesAlike) -> PagesAlike {
    pages.waits.sort_by_key(|waits| waits.cpu_node);
    let main = pages.waits.iter().rev().max_by_key(|waits| waits.memory_ns);
    pages.main_node = main.map_or(pages.main_node, |waits| waits.cpu_node);
    pages
}

/// Adds stretches of another process to the stretches in which they end.
fn add_timeline(whole: &mut Vec<Stretch>, stretches: &[Stretch], positions: &[usize]) {
    for stretch in stretches {
        let regions = stretch
            .regions
            .iter()
            .filter_map(|of| Some(StretchAccesses { region: *positions.get(of.region)?, ..*of }));
        let mut renumbered = Stretch { regions: Vec::new(), ..stretch.clone() };
        regions.for_each(|of| renumbered.add(of));
        let at = whole.partition_point(|known| known.end_ns < stretch.end_ns);
        match whole.get_mut(at) {
            Some(known) => {
                let end_ns = known.end_ns;
                known.join(&Stretch { end_ns, ..renumbered });
            }
            None => whole.push(renumbered),
        }
    }
}

#[cfg(test)]
mod tests;
