//! Turns the observations of a program into a record.

use std::collections::{BTreeMap, HashMap};

use numalab_record::{
    AccessedAt, FirstTouches, NodePages, PagesAlike, ProgramMemory, ProgramThread, Region,
    RegionAccesses, RegionPart, Sharing, Stretch, StretchAccesses,
};

use crate::pages::Page;
use crate::program::{Program, RangeUse};

/// Number of parts of a region.
const PARTS: u64 = 64;
/// Maximum number of regions; the least used ones are left out.
const MOST_REGIONS: usize = 2000;
/// Maximum number of call chains for each region.
const MOST_PLACES: usize = 16;
/// Share of a region's accesses, in percent, that its hot pages receive.
const HOT_PERCENT: u64 = 90;

/// A thread's stack has at most one access of another thread in this number.
const OTHERS: u64 = 10;

/// Returns the record of a program up to this moment.
pub(crate) fn program_memory(program: Program, ended_ns: u64, page_bytes: u64) -> ProgramMemory {
    let by_region = by_region(&program);
    let mut kept: Vec<usize> = (0..program.space.regions().len())
        .filter(|region| is_seen(&program, *region, &by_region))
        .collect();
    let weight = |region: &usize| {
        let pages = by_region.get(region);
        let accesses: u64 =
            pages.map_or(0, |pages| pages.iter().map(|(_, page)| page.accesses).sum());
        let used: u64 = ranges(&program, *region).map(|(_, range)| range.used).sum();
        accesses + used
    };
    kept.sort_by_key(|region| std::cmp::Reverse(weight(region)));
    kept.truncate(MOST_REGIONS);
    kept.sort_by_key(|region| program.space.regions()[*region].start);
    let positions: HashMap<usize, usize> =
        kept.iter().enumerate().map(|(position, region)| (*region, position)).collect();
    let none = Vec::new();
    let region = |region: &usize| {
        let pages = by_region.get(region).unwrap_or(&none);
        summarised_region(&program, *region, pages, page_bytes)
    };
    ProgramMemory {
        process: program.process,
        program: None,
        became: program.became.clone(),
        elapsed_ns: ended_ns.saturating_sub(program.begun_ns),
        threads: threads(&program),
        regions: kept.iter().map(region).collect(),
        contended_lines: Vec::new(),
        unplaced: program.unplaced,
        page_faults: None,
        system_calls: None,
        timeline: timeline(program.timeline.finish(ended_ns), &positions),
    }
}

type PagesOf<'a> = HashMap<usize, Vec<(u64, &'a Page)>>;

/// Returns the pages of each region, by address.
fn by_region(program: &Program) -> PagesOf<'_> {
    let mut by_region: PagesOf<'_> = HashMap::new();
    for (address, page) in program.pages.all() {
        by_region.entry(page.region).or_default().push((address, page));
    }
    by_region.values_mut().for_each(|pages| pages.sort_unstable_by_key(|(address, _)| *address));
    by_region
}

/// Returns true if anything was observed of a region.
fn is_seen(program: &Program, region: usize, by_region: &PagesOf<'_>) -> bool {
    by_region.contains_key(&region)
        || program.resident.contains_key(&region)
        || ranges(program, region).next().is_some()
}

fn ranges(program: &Program, region: usize) -> impl Iterator<Item = ((u64, u64), RangeUse)> + '_ {
    let of_region = program.ranges.iter().filter(move |((of, ..), _)| *of == region);
    of_region.map(|((_, start, end), range)| ((*start, *end), *range))
}

fn summarised_region(
    program: &Program,
    region: usize,
    pages: &[(u64, &Page)],
    page_bytes: u64,
) -> Region {
    let known = &program.space.regions()[region];
    let resident = program.resident.get(&region).into_iter().flatten();
    let start = pages.first().map_or(known.start, |(address, _)| known.start.min(*address));
    let end = pages.last().map_or(known.end, |(address, _)| known.end.max(address + page_bytes));
    let accesses = accesses(program, region);
    let name = program.space.name(region, |thread| is_used_by(thread, &accesses));
    Region {
        start,
        end,
        name,
        made_at: Vec::new(),
        first_touches: first_touches(program, region),
        hot_pages: hot_pages(pages),
        pages: alike(pages),
        accesses,
        resident: resident
            .map(|(node, pages)| NodePages { memory_node: *node, pages: *pages })
            .collect(),
        parts: parts(program, region, (start, end), pages),
        accessed_at: accessed_at(program, region),
        shared: false,
    }
}

/// Returns true if a thread makes almost all of the accesses, as to its own stack.
fn is_used_by(thread: u32, accesses: &[RegionAccesses]) -> bool {
    let all = |of: &dyn Fn(&RegionAccesses) -> bool| -> u64 {
        accesses.iter().filter(|by| of(by)).map(RegionAccesses::all).sum()
    };
    all(&|by| by.thread != thread) * OTHERS <= all(&|_| true)
}

fn first_touches(program: &Program, region: usize) -> Vec<FirstTouches> {
    let of_region = program.touches.iter().filter(|(touch, _)| touch.region == region);
    let mut touches: Vec<FirstTouches> = of_region
        .map(|(touch, pages)| FirstTouches {
            thread: touch.thread,
            cpu_node: touch.cpu_node,
            pages: *pages,
            at: program.codes.places(touch.code, &program.space),
        })
        .collect();
    touches.sort_by_key(|of| (std::cmp::Reverse(of.pages), of.thread));
    touches.truncate(MOST_PLACES);
    touches
}

/// Returns the smallest number of pages that receive most of the accesses.
fn hot_pages(pages: &[(u64, &Page)]) -> u64 {
    let mut heat: Vec<u64> = pages.iter().map(|(_, page)| page.accesses).collect();
    heat.sort_unstable_by_key(|accesses| std::cmp::Reverse(*accesses));
    let all: u64 = heat.iter().sum();
    let mut sum = 0;
    let is_needed = |accesses: &&u64| {
        let before = sum;
        sum += **accesses;
        before * 100 < all * HOT_PERCENT
    };
    heat.iter().take_while(is_needed).count() as u64
}

fn alike(pages: &[(u64, &Page)]) -> Vec<PagesAlike> {
    let mut sums: BTreeMap<(u32, u32, Sharing), (u64, u64)> = BTreeMap::new();
    for (_, page) in pages {
        let (Some(node), Some(main)) = (page.node, page.main_node()) else { continue };
        let (count, accesses) = sums.entry((node, main, page.sharing())).or_default();
        (*count, *accesses) = (*count + 1, *accesses + page.accesses);
    }
    let alike = |((memory_node, main_node, sharing), (pages, accesses))| PagesAlike {
        memory_node,
        main_node,
        bound: false,
        sharing,
        pages,
        accesses,
        waits: Vec::new(),
    };
    sums.into_iter().map(alike).collect()
}

fn accesses(program: &Program, region: usize) -> Vec<RegionAccesses> {
    let of_region = program.tallies.iter().filter(|(whose, _)| whose.region == region);
    let mut accesses: Vec<RegionAccesses> = of_region
        .filter_map(|(whose, tally)| {
            // Only memory samples distinguish loads from stores, and they also have the level that
            // served them.
            let sampled = |count| (tally.either == 0).then_some(count);
            Some(RegionAccesses {
                thread: whose.thread,
                cpu_node: whose.cpu_node,
                memory_node: whose.memory_node?,
                loads: sampled(tally.loads),
                stores: sampled(tally.stores),
                either: tally.either,
                misses: sampled(tally.misses),
                latency_cycles: tally.latency_cycles,
                ..RegionAccesses::default()
            })
        })
        .collect();
    accesses.sort_by_key(|of| (of.thread, of.cpu_node, of.memory_node));
    accesses
}

/// Returns accesses by parts of a region, from single pages or from ranges.
fn parts(
    program: &Program,
    region: usize,
    (start, end): (u64, u64),
    pages: &[(u64, &Page)],
) -> Vec<RegionPart> {
    let length = ((end - start).div_ceil(PARTS)).next_multiple_of(4096);
    let count = usize::try_from((end - start).div_ceil(length)).unwrap_or(0);
    let mut parts: Vec<RegionPart> = (1..=count as u64)
        .map(|at| RegionPart { end: (start + at * length).min(end), ..RegionPart::default() })
        .collect();
    let mut nodes: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); count];
    let at = |address: u64| usize::try_from(address.saturating_sub(start) / length).unwrap_or(0);
    for (address, page) in pages.iter().filter(|(_, page)| page.accesses > 0) {
        let place = at(*address).min(count - 1);
        let part = &mut parts[place];
        part.accesses += page.accesses;
        part.remote += page.remote;
        if page.either == 0 {
            *part.stores.get_or_insert(0) += page.stores;
        }
        if let Some(node) = page.node {
            *nodes[place].entry(node).or_default() += 1;
        }
    }
    for ((from, to), range) in ranges(program, region) {
        let (first, last) = (at(from).min(count - 1), at(to - 1).min(count - 1));
        for (place, part) in parts.iter_mut().enumerate().take(last + 1).skip(first) {
            let begin = start + place as u64 * length;
            let within = part.end.min(to).saturating_sub(begin.max(from));
            let share = |of: u64| {
                let share = u128::from(of) * u128::from(within) / u128::from(to - from);
                u64::try_from(share).unwrap_or(0)
            };
            part.accesses += share(range.used);
            if let Some(written) = range.written {
                *part.stores.get_or_insert(0) += share(written);
            }
        }
    }
    for (part, nodes) in parts.iter_mut().zip(nodes) {
        part.memory_node = nodes.into_iter().max_by_key(|(_, pages)| *pages).map(|(node, _)| node);
    }
    let is_used = parts.iter().any(|part| part.accesses > 0);
    if is_used { parts } else { Vec::new() }
}

fn accessed_at(program: &Program, region: usize) -> Vec<AccessedAt> {
    let of_region = program.accessed_at.iter().filter(|((of, _), _)| *of == region);
    let mut places: Vec<(usize, u64, u64)> =
        of_region.map(|((_, code), (all, remote))| (*code, *all, *remote)).collect();
    places.sort_unstable_by_key(|(code, all, _)| (std::cmp::Reverse(*all), *code));
    places.truncate(MOST_PLACES);
    let place = |(code, accesses, remote): (usize, u64, u64)| AccessedAt {
        at: program.codes.places(code, &program.space),
        accesses,
        remote,
    };
    places.into_iter().map(place).collect()
}

fn threads(program: &Program) -> Vec<ProgramThread> {
    let thread = |(thread, seen): (u32, &crate::threads::SeenThread)| ProgramThread {
        thread,
        cpu_node: seen.node().unwrap_or(0),
        busy_ns: seen.busy_ns,
        elsewhere: Vec::new(),
    };
    program.threads.all().map(thread).collect()
}

/// Renumbers the regions of stretches to those that are kept.
fn timeline(stretches: Vec<Stretch>, positions: &HashMap<usize, usize>) -> Vec<Stretch> {
    let renumbered = |stretch: Stretch| {
        let regions = stretch.regions.iter().filter_map(|of| {
            let region = *positions.get(&of.region)?;
            Some(StretchAccesses { region, ..*of })
        });
        let mut regions: Vec<StretchAccesses> = regions.collect();
        regions.sort_by_key(|of| of.region);
        Stretch { regions, ..stretch }
    };
    stretches.into_iter().map(renumbered).collect()
}

#[cfg(test)]
mod tests;
