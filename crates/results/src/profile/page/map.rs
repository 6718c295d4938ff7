//! The map of regions, nodes and threads.

use std::collections::BTreeMap;

use numalab_page::number::size;
use numalab_page::{AccessMap, MapCell, MapRow, StripPart};
use numalab_record::RegionPart;
use numalab_record::profile::Profile;

use super::PAGE_BYTES;
use super::words::{counted, percent};
use crate::profile::{Distance, ProfileSummary, RegionUse};
use crate::program::page::program::{place, short};

/// Maximum number of rows of the map.
const MOST_REGIONS: usize = 16;
/// Minimum share of accesses or of memory for a region to get a row.
const LEAST_SHARE: f64 = 0.001;
/// Maximum number of columns of threads; beyond it, a node's less active threads share one.
const MOST_THREADS: usize = 16;

/// One or more threads in a column.
struct Column {
    label: String,
    threads: Vec<u32>,
}

/// Returns the map; `None` if nothing was seen.
pub(super) fn map(profile: &Profile, summary: &ProfileSummary<'_>) -> Option<AccessMap> {
    let all = summary.distance.all();
    let pages = |of: &RegionUse<'_>| of.pages.values().sum::<u64>();
    let all_pages: u64 = summary.regions.iter().map(pages).sum();
    let is_much = |part: u64, whole: u64| part > 0 && part as f64 >= LEAST_SHARE * whole as f64;
    let is_shown = |of: &&RegionUse<'_>| {
        is_much(of.distance.all(), all) || is_much(pages(of), all_pages.saturating_mul(10))
    };
    let regions: Vec<&RegionUse<'_>> =
        summary.regions.iter().filter(is_shown).take(MOST_REGIONS).collect();
    if regions.is_empty() {
        return None;
    }
    let groups = columns(profile, summary);
    let hottest =
        |of: &&RegionUse<'_>| of.region.parts.iter().map(|part| part.accesses).max().unwrap_or(0);
    let hottest = regions.iter().map(hottest).max().unwrap_or(0);
    let nodes: Vec<u32> = if summary.nodes.len() > 1 { summary.nodes.clone() } else { Vec::new() };
    let row = |of: &&RegionUse<'_>| MapRow {
        name: short(&of.region.name),
        detail: detail(of),
        strip: strip(of, hottest, counted(&profile.source)),
        memory: nodes.iter().map(|node| memory(of, *node)).collect(),
        accesses: groups
            .iter()
            .flat_map(|(_, columns)| columns)
            .map(|column| accesses(of, column, all, counted(&profile.source)))
            .collect(),
    };
    Some(AccessMap {
        rows: regions.iter().map(row).collect(),
        memory_nodes: nodes.clone(),
        threads: groups
            .iter()
            .map(|(from, columns)| {
                (from.clone(), columns.iter().map(|of| of.label.clone()).collect())
            })
            .collect(),
        counted: counted(&profile.source).to_owned(),
    })
}

/// Returns the threads with accesses, node by node; one column for all if threads are unknown.
fn columns(profile: &Profile, summary: &ProfileSummary<'_>) -> Vec<(String, Vec<Column>)> {
    let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
    for of in &summary.regions {
        for (thread, distance) in &of.by_thread {
            *by_thread.entry(*thread).or_default() += distance.all();
        }
    }
    let mut groups: Vec<(u32, Vec<Column>)> = Vec::new();
    for thread in summary.threads.iter().filter(|of| by_thread.contains_key(&of.thread)) {
        let label = label(profile, thread.thread);
        let column = Column { label, threads: vec![thread.thread] };
        match groups.last_mut() {
            Some((node, columns)) if *node == thread.cpu_node => columns.push(column),
            _ => groups.push((thread.cpu_node, vec![column])),
        }
    }
    if groups.is_empty() {
        let all = Column { label: String::new(), threads: Vec::new() };
        return vec![("used".to_owned(), vec![all])];
    }
    let many = groups.iter().map(|(_, columns)| columns.len()).sum::<usize>() > MOST_THREADS;
    let groups = if many { groups.into_iter().map(joined).collect() } else { groups };
    let several = summary.nodes.len() > 1;
    let from =
        |node| if several { format!("used from node {node}") } else { "used by thread".to_owned() };
    groups.into_iter().map(|(node, columns)| (from(node), columns)).collect()
}

fn joined((node, columns): (u32, Vec<Column>)) -> (u32, Vec<Column>) {
    let threads: Vec<u32> = columns.into_iter().flat_map(|of| of.threads).collect();
    let label = format!("{} threads", threads.len());
    (node, vec![Column { label, threads }])
}

/// Returns a thread's number, with its name if names differ.
pub(super) fn label(profile: &Profile, thread: u32) -> String {
    match profile.thread_names.get(&thread) {
        Some(name) if *name != profile.name => format!("{thread} {name}"),
        _ => thread.to_string(),
    }
}

fn detail(of: &RegionUse<'_>) -> String {
    let pages: u64 = of.pages.values().sum();
    let bytes = of.region.end - of.region.start;
    let there = pages * PAGE_BYTES;
    let size = match there {
        0 => size(bytes),
        there if there >= bytes => size(there),
        there => format!("{} of {}", size(there), size(bytes)),
    };
    let made = place(&of.region.made_at).map(|at| format!(", allocated at {at}"));
    let first = of.region.first_touches.iter().max_by_key(|first| first.pages);
    let touched = || Some(format!(", touched at {}", place(&first?.at)?));
    size + &made.or_else(touched).unwrap_or_default()
}

fn memory(of: &RegionUse<'_>, node: u32) -> Option<MapCell> {
    let pages = *of.pages.get(&node)?;
    let all: u64 = of.pages.values().sum();
    let share = pages as f64 / all.max(1) as f64;
    let tip = format!(
        "{}: {} on node {node}, {}",
        short(&of.region.name),
        size(pages * PAGE_BYTES),
        percent(share)
    );
    Some(MapCell { share, remote: None, tip })
}

fn accesses(of: &RegionUse<'_>, column: &Column, all: u64, counted: &str) -> Option<MapCell> {
    let mut sum = Distance::default();
    for distance in column.threads.iter().filter_map(|thread| of.by_thread.get(thread)) {
        sum.local += distance.local;
        sum.remote += distance.remote;
    }
    if column.threads.is_empty() {
        sum = of.distance;
    }
    if sum.all() == 0 {
        return None;
    }
    let share = sum.all() as f64 / all.max(1) as f64;
    let remote = sum.remote_share();
    let who = match column.threads.as_slice() {
        [] => String::new(),
        [thread] => format!("thread {thread} → "),
        _ => format!("{} → ", column.label),
    };
    let remotely =
        remote.map_or_else(String::new, |share| format!("\n{} of them remote", percent(share)));
    let tip = format!(
        "{who}{}: {} {counted}, {} of all{remotely}",
        short(&of.region.name),
        sum.all(),
        percent(share),
    );
    Some(MapCell { share, remote, tip })
}

fn strip(of: &RegionUse<'_>, hottest: u64, counted: &str) -> Vec<StripPart> {
    let mut start = of.region.start;
    let part = |part: &RegionPart| {
        let from = start;
        start = part.end;
        let on = part.memory_node.map_or_else(String::new, |node| format!(", on node {node}"));
        let stores = part.stores.map_or_else(String::new, |stores| format!(", {stores} stores"));
        StripPart {
            heat: heat(part.accesses, hottest),
            is_remote: part.remote * 2 > part.accesses,
            tip: format!(
                "{from:#x} to {:#x}{on}\n{} {counted}, {} of them remote{stores}",
                part.end, part.accesses, part.remote
            ),
        }
    };
    of.region.parts.iter().map(part).collect()
}

/// Maps accesses to 0 to 1 on a logarithmic scale of three decades.
fn heat(accesses: u64, hottest: u64) -> f64 {
    if accesses == 0 {
        return 0.0;
    }
    (1.0 + (accesses as f64 / hottest.max(1) as f64).log10() / 3.0).clamp(0.02, 1.0)
}
