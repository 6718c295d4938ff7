//! What a program paid for memory of other nodes, and for which of its regions.

use numalab_analysis::program::{RemoteCost, RemoteRegion};
use numalab_record::{ProgramMemory, Region};

use super::read::MemoryReport;
use crate::number::{count, figure, size, trimmed};
use crate::page::{Lead, Mood, Panel, Part};
use crate::table::Table;

/// Remote memory that takes less of the time is not worth a change.
const WORTH_SHARE: f64 = 0.02;
/// Rows of the table of regions.
const MOST_REGIONS: usize = 20;

/// What matters most of a program.
pub(super) fn lead(report: &MemoryReport, program: &ProgramMemory) -> Vec<Lead> {
    let cost = cost(report, program);
    let percent = |ns: f64| format!("{} %", trimmed(100.0 * ns / cost.time_ns.max(1.0)));
    let memory = format!(
        "Memory and caches take {} of the threads' time, {} ms of {} ms.",
        percent(cost.memory_ns),
        figure(cost.memory_ns / 1e6),
        figure(cost.time_ns / 1e6)
    );
    let worth = cost.remote_ns >= WORTH_SHARE * cost.time_ns;
    let remote = match worth {
        true => format!(
            "Remote memory costs {} of the time: {} ms would be saved at most if every access \
             were local.",
            percent(cost.remote_ns),
            figure(cost.remote_ns / 1e6)
        ),
        false => format!(
            "No gain to be had from placement: remote memory costs {} of the time.",
            percent(cost.remote_ns)
        ),
    };
    let mood = if worth { Mood::Odd } else { Mood::Fine };
    let mut lead =
        vec![Lead::new("Memory", memory, Mood::Plain), Lead::new("Placement", remote, mood)];
    lead.extend(cost.regions.iter().take(1).filter(|_| worth).map(|region| worst(region, &cost)));
    lead
}

fn worst(found: &RemoteRegion, cost: &RemoteCost) -> Lead {
    let sentence = format!(
        "{} at {:#x} ({}) accounts for {} % of that: it lies on node {}, and cpus of node {} \
         use it.",
        found.region.name,
        found.region.start,
        size(found.region.end - found.region.start),
        trimmed(100.0 * found.remote_ns / cost.remote_ns.max(1.0)),
        found.memory_node,
        found.cpu_node
    );
    Lead::new("Region", sentence, Mood::Odd)
}

fn cost(report: &MemoryReport, program: &ProgramMemory) -> RemoteCost {
    let id = |node: u64| u32::try_from(node).unwrap_or(u32::MAX);
    let nodes: Vec<u32> = report.machine.nodes.iter().map(|node| id(node.id)).collect();
    RemoteCost::of(program, report.time_ns() as f64, &nodes, &report.machine.latency_ns)
}

/// The regions by how long they are waited for.
pub(super) fn regions(program: &ProgramMemory) -> Part {
    let ns = |region: &Region| -> u64 { region.accesses.iter().map(|by| by.waited_ns).sum() };
    let mut regions: Vec<&Region> = program.regions.iter().collect();
    regions.sort_by_key(|region| core::cmp::Reverse(ns(region)));
    let shown = regions.len().min(MOST_REGIONS);
    let table = Table::new(
        "Regions by how long threads waited for them, with the nodes of cpus and memory",
    )
    .words("region")
    .figures("size")
    .figures("10^6")
    .figures("waits, ms")
    .words("cpus → memory");
    let row = |region: &&Region| {
        let accesses: u64 = region.accesses.iter().map(|by| by.loads + by.stores).sum();
        vec![
            short(&region.name),
            size(region.end - region.start),
            figure(accesses as f64 / 1e6),
            figure(ns(region) as f64 / 1e6),
            pairs(region),
        ]
    };
    let mut notes = vec![
        "Pages are 4 KiB, placed by first touch and the program's own policies. A size is that of \
         the addresses, whether touched or not."
            .to_owned(),
    ];
    if regions.len() > shown {
        notes.push(format!("{} more are waited for less.", count(regions.len() - shown, "region")));
    }
    if program.unplaced > 0 {
        notes.push(format!(
            "Accesses that are left out, since the machine's memory was used up: {}.",
            program.unplaced
        ));
    }
    if let Some(became) = &program.became {
        notes.push(format!("It went on as {became}, which was not emulated."));
    }
    let panels = vec![Panel::table(table.rows(regions[..shown].iter().map(row)))];
    Part { title: "Regions".to_owned(), notes, panels, ..Part::default() }
}

/// `0→0 25 %, 1→0 75 %`: who waits for what.
fn pairs(region: &Region) -> String {
    let all: u64 = region.accesses.iter().map(|by| by.waited_ns).sum();
    let mut pairs: Vec<_> = region.accesses.iter().collect();
    pairs.sort_by_key(|by| core::cmp::Reverse(by.waited_ns));
    let pair = |by: &&numalab_record::RegionAccesses| {
        let share = 100.0 * by.waited_ns as f64 / all.max(1) as f64;
        format!("{}→{} {share:.0} %", by.cpu_node, by.memory_node)
    };
    let shown: Vec<String> = pairs.iter().take(MOST_PAIRS).map(pair).collect();
    let more = if pairs.len() > MOST_PAIRS { ", …" } else { "" };
    shown.join(", ") + more
}

/// Pairs of nodes that are shown of a region.
const MOST_PAIRS: usize = 2;

/// The end of a path says more than its beginning.
fn short(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}
