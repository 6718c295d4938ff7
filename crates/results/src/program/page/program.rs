//! The cost of remote memory to a program, by region, as parts of a page.

use std::collections::BTreeMap;

use numalab_page::number::{count, figure, size, trimmed};
use numalab_page::{Lead, Mood, Panel, Part, Table};
use numalab_record::MemoryReport;
use numalab_record::{
    CodePlace, ContendedLine, KernelTime, ProgramMemory, ProgramThread, Region, RegionAccesses,
};
use numalab_topology::{IdSet, NodeId};

use crate::program::find::passed_between_nodes_ns;
use crate::program::{Location, RemoteCost, RemoteRegion, contended_ns, user_code};

/// Minimum share of the time spent on remote memory that makes a change worthwhile.
const WORTH_SHARE: f64 = 0.02;
/// Maximum number of rows of the table of lines.
const MOST_LINES: usize = 8;
/// Maximum number of rows of the table of regions.
const MOST_REGIONS: usize = 20;

/// Returns the key findings about a program.
pub(super) fn lead(report: &MemoryReport, program: &ProgramMemory) -> Vec<Lead> {
    let lead = lead_of(program, &RemoteCost::of_report(report, program));
    unplaced(program).into_iter().chain(lead).collect()
}

/// Reports that the machine has too little memory for the program.
fn unplaced(program: &ProgramMemory) -> Option<Lead> {
    let sentence = format!(
        "The nodes that may hold the program's pages were full. Accesses to further pages, which \
         are left out: {}.",
        program.unplaced
    );
    (program.unplaced > 0).then(|| Lead::new("Too little memory", sentence, Mood::Bad))
}

/// Returns the key findings about a program with this cost.
pub(crate) fn lead_of(program: &ProgramMemory, cost: &RemoteCost) -> Vec<Lead> {
    let memory = format!(
        "Memory and caches take {} of the threads' time, {} ms of {} ms.",
        percent(cost.memory_ns, cost),
        figure(cost.memory_ns / 1e6),
        figure(cost.time_ns / 1e6)
    );
    let elapsed = program.elapsed_ns as f64;
    // Threads wait for the slowest of them, where they meet.
    let slowest = cost.slowest.filter(|(_, ns)| elapsed > 0.0 && *ns >= WORTH_SHARE * elapsed);
    let worth = slowest.is_some() || is_worth(cost.remote_ns, cost.time_ns);
    let mut lead = vec![Lead::new("Memory", memory, Mood::Plain)];
    lead.extend(page_faults(program, cost.time_ns));
    lead.extend(system_calls(program, cost.time_ns));
    lead.push(placement(program, cost, slowest));
    lead.extend(cost.regions.iter().take(1).filter(|_| worth).map(|region| worst(region, cost)));
    lead.extend(contended(program, cost.time_ns));
    lead
}

fn is_worth(ns: f64, time_ns: f64) -> bool {
    ns >= WORTH_SHARE * time_ns
}

fn percent(ns: f64, cost: &RemoteCost) -> String {
    format!("{} %", trimmed(100.0 * ns / cost.time_ns.max(1.0)))
}

/// Reports what remote memory costs, given the thread that it slows most, and what it does not include.
fn placement(program: &ProgramMemory, cost: &RemoteCost, slowest: Option<(u32, f64)>) -> Lead {
    let passed_ns = passed_between_nodes_ns(program) as f64;
    let passes = passed_ns > 0.0 && is_worth(passed_ns, cost.time_ns);
    let costs = percent(cost.remote_ns, cost);
    let saved = |ns: f64| {
        format!(": about {} ms would be saved if every access were local.", figure(ns / 1e6))
    };
    let is_costly = is_worth(cost.remote_ns, cost.time_ns);
    let mut words = match slowest {
        _ if is_costly => {
            format!("Remote memory costs {costs} of the time") + &saved(cost.remote_ns)
        }
        Some((thread, ns)) => {
            let of_run = trimmed(100.0 * ns / program.elapsed_ns.max(1) as f64);
            format!(
                "Remote memory costs {costs} of the threads' time, but {of_run} % of the run time in thread \
                 {thread}, for which other threads may wait"
            ) + &saved(ns)
        }
        None if passes => format!("Remote memory costs {costs} of the time."),
        None => format!("No gain from placement: remote memory costs {costs} of the time."),
    };
    if passes {
        words += &format!(
            " Not counted: threads on different nodes pass lines to each other, and wait {} of the \
             time for them; threads on one node would wait less.",
            percent(passed_ns, cost)
        );
    }
    let matters = is_costly || passes || slowest.is_some();
    Lead::new("Placement", words, if matters { Mood::Odd } else { Mood::Fine })
}

/// Reports the time of page faults, if it is known.
fn page_faults(program: &ProgramMemory, time_ns: f64) -> Option<Lead> {
    let of = program.page_faults.filter(|of| of.time_ns > 0)?;
    let sentence = format!(
        "{} first uses of pages, which the kernel maps, clears or copies, and the freeing of pages \
         {}",
        of.count,
        taken(of, time_ns)
    );
    Some(Lead::new("Page faults", sentence, Mood::Plain))
}

/// Reports the time of system calls, if it is known and noticeable.
fn system_calls(program: &ProgramMemory, time_ns: f64) -> Option<Lead> {
    let worth = |of: &KernelTime| is_worth(of.time_ns as f64, time_ns) && of.time_ns > 0;
    let of = program.system_calls.filter(worth)?;
    let sentence = format!("{} system calls {}", of.count, taken(of, time_ns));
    Some(Lead::new("System calls", sentence, Mood::Plain))
}

fn taken(of: KernelTime, time_ns: f64) -> String {
    let ns = of.time_ns as f64;
    let percent = trimmed(100.0 * ns / time_ns.max(1.0));
    format!("take {percent} % of the threads' time, {} ms.", figure(ns / 1e6))
}

fn worst(found: &RemoteRegion, cost: &RemoteCost) -> Lead {
    let region = &found.region;
    let location = Location::of(region, found.memory_node);
    let sentence = format!(
        "{} at {:#x} ({}) accounts for {} % of that: {}.",
        region.name,
        region.start,
        size(region.end - region.start),
        trimmed(100.0 * found.remote_ns / cost.remote_ns.max(1.0)),
        located(&location, found.memory_node, &format!("cpus of node {}", found.cpu_node))
    );
    let first = location.toucher(region, found.memory_node);
    let touched = first.and_then(|first| Some((place(&first.at)?, first.thread)));
    let what = touches_first(&location);
    let touched = touched.map_or_else(String::new, |(line, thread)| {
        format!(" {what} touched first at {line} by thread {thread}.")
    });
    Lead::new("Region", sentence + &touched, Mood::Odd)
}

/// Describes the location of a region with remote pages on a node, and the users of those pages.
pub(crate) fn located(location: &Location, memory_node: u32, users: &str) -> String {
    match location {
        Location::Whole => format!("it is on node {memory_node}, but {users} use it"),
        Location::Part(share) => format!(
            "{} % of its pages are on node {memory_node}, but {users} use them",
            trimmed(100.0 * share)
        ),
        Location::Spread(nodes) => {
            let nodes: IdSet<NodeId> = nodes.iter().copied().map(NodeId).collect();
            format!("it is spread over nodes {nodes}, but {users} use it")
        }
    }
}

/// Begins the sentence about the first touch of a region's remote pages.
pub(crate) fn touches_first(location: &Location) -> &'static str {
    if matches!(location, Location::Part(_)) { "They are" } else { "It is" }
}

/// Names lines that threads contend for, if contention takes noticeable time.
fn contended(program: &ProgramMemory, time_ns: f64) -> Option<Lead> {
    let worst = program.contended_lines.first()?;
    let waited_ns = contended_ns(program);
    if (waited_ns as f64) < WORTH_SHARE * time_ns {
        return None;
    }
    let kind = match worst.is_false_sharing() {
        true => "False sharing: threads store to different bytes of one cache line",
        false => "Threads contend for a cache line",
    };
    let at = lines(worst).map_or(String::new(), |lines| format!(", at {lines}"));
    let sentence = format!(
        "{kind}{at}; waiting for such lines takes {} % of the time.",
        trimmed(100.0 * waited_ns as f64 / time_ns.max(1.0))
    );
    Some(Lead::new("Sharing", sentence, Mood::Odd))
}

/// Names the source lines that store to a contended line.
fn lines(line: &ContendedLine) -> Option<String> {
    let writers = line.threads.iter().filter(|user| user.stores > 0);
    let mut places: Vec<String> = writers.filter_map(|user| place(&user.at)).collect();
    places.sort();
    places.dedup();
    (!places.is_empty()).then(|| places.join(" and "))
}

/// Returns a source line, `solver.c:120`, or else the function's name.
pub(crate) fn place(places: &[CodePlace]) -> Option<String> {
    let place = user_code(places)?;
    place.line.as_deref().map(short).or_else(|| place.function.clone())
}

/// Tabulates where regions are allocated and touched first, as far as debug information shows.
fn origins(regions: &[&Region]) -> Option<Table> {
    let row = |region: &&Region| {
        let first = region.first_touches.iter().max_by_key(|touches| touches.pages)?;
        let (made, touched) = (place(&region.made_at), place(&first.at));
        let some = made.is_some() || touched.is_some();
        some.then(|| {
            vec![
                short(&region.name),
                made.unwrap_or_default(),
                touched.unwrap_or_default(),
                format!("thread {} on node {}", first.thread, first.cpu_node),
            ]
        })
    };
    let rows: Vec<_> = regions.iter().filter_map(row).collect();
    let table = Table::new("Where regions are allocated and first touched")
        .words(["region", "allocated at", "first touch at"])
        .words("by");
    (!rows.is_empty()).then(|| table.rows(rows))
}

/// Tabulates the contended lines.
pub(crate) fn sharing(program: &ProgramMemory) -> Option<Part> {
    let row = |line: &ContendedLine| {
        let kind = if line.is_false_sharing() { "false" } else { "true" };
        vec![
            format!("{:#x}", line.address),
            short(&line.region),
            kind.to_owned(),
            line.threads.len().to_string(),
            line.changes.to_string(),
            figure(line.waited_ns() as f64 / 1e6),
            lines(line).unwrap_or_default(),
        ]
    };
    let worst = program.contended_lines.iter().filter(|line| line.waited_ns() > 0);
    let shown: Vec<&ContendedLine> = worst.take(MOST_LINES).collect();
    let some_false = shown.iter().any(|line| line.is_false_sharing());
    let rows: Vec<_> = shown.into_iter().map(row).collect();
    let table = Table::new("Cache lines that threads contend for, by waiting time")
        .words(["line", "region", "sharing"])
        .figures(["threads", "changes", "waits, ms"])
        .words("stores at");
    let note = some_false.then(|| {
        "False sharing: no thread uses a byte that another one stores to, apart from at most 1 % of \
         the accesses. With its data on separate lines (64 bytes), each thread would keep its line."
            .to_owned()
    });
    (!rows.is_empty()).then(|| Part {
        title: "Lines that threads contend for".to_owned(),
        notes: note.into_iter().collect(),
        panels: vec![Panel::table(table.rows(rows))],
        ..Part::default()
    })
}

/// Tabulates each thread's accesses and its time.
pub(super) fn threads(program: &ProgramMemory) -> Part {
    let row = |thread: &ProgramThread| {
        let regions = program.regions.iter().flat_map(|region| &region.accesses);
        let own = || regions.clone().filter(|by| by.thread == thread.thread);
        let accesses: u64 = own().map(RegionAccesses::all).sum();
        vec![
            format!("thread {}", thread.thread),
            thread.cpu_node.to_string(),
            figure(accesses as f64 / 1e6),
            figure(own().map(|by| by.waits().waited_ns).sum::<u64>() as f64 / 1e6),
            figure(thread.busy_ns as f64 / 1e6),
        ]
    };
    let table = Table::new("Each thread's accesses, its waits for memory and caches, and its time")
        .words("thread")
        .figures("node")
        .figures("10^6")
        .figures("waits, ms")
        .figures("busy, ms");
    Part {
        title: "Threads".to_owned(),
        panels: vec![Panel::table(table.rows(program.threads.iter().map(row)))],
        ..Part::default()
    }
}

/// Tabulates regions by waiting time.
pub(super) fn regions(program: &ProgramMemory) -> Part {
    let ns =
        |region: &Region| -> u64 { region.accesses.iter().map(|by| by.waits().waited_ns).sum() };
    let mut regions: Vec<&Region> = program.regions.iter().collect();
    regions.sort_by_key(|region| core::cmp::Reverse(ns(region)));
    let shown = regions.len().min(MOST_REGIONS);
    let table = Table::new("Regions by threads' waiting time, with the nodes of cpus and memory")
        .words("region")
        .figures(["size", "10^6", "waits, ms"])
        .words("cpus → memory");
    let row = |region: &&Region| {
        let accesses: u64 = region.accesses.iter().map(RegionAccesses::all).sum();
        vec![
            short(&region.name),
            size(region.end - region.start),
            figure(accesses as f64 / 1e6),
            figure(ns(region) as f64 / 1e6),
            pairs(region),
        ]
    };
    let mut notes = vec![
        "Pages are 4 KiB, placed by first touch and the program's own policies. Sizes count all \
         addresses, touched or not."
            .to_owned(),
    ];
    if regions.len() > shown {
        notes.push(format!(
            "Not shown: {} with less waiting.",
            count(regions.len() - shown, "region")
        ));
    }
    if let Some(became) = &program.became {
        notes.push(format!("It then executed {became}, which this report does not cover."));
    }
    let mut panels = vec![Panel::table(table.rows(regions[..shown].iter().map(row)))];
    panels.extend(origins(&regions[..shown]).map(Panel::table));
    Part { title: "Regions".to_owned(), notes, panels, ..Part::default() }
}

/// Describes waiting by pair of nodes: `0→0 25 %, 1→0 75 %`.
fn pairs(region: &Region) -> String {
    let mut sums: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for by in &region.accesses {
        *sums.entry((by.cpu_node, by.memory_node)).or_default() += by.waits().waited_ns;
    }
    let all: u64 = sums.values().sum();
    let mut pairs: Vec<_> = sums.into_iter().collect();
    pairs.sort_by_key(|(_, ns)| core::cmp::Reverse(*ns));
    let pair = |((cpu, memory), ns): &((u32, u32), u64)| {
        format!("{cpu}→{memory} {:.0} %", 100.0 * *ns as f64 / all.max(1) as f64)
    };
    let shown: Vec<String> = pairs.iter().take(MOST_PAIRS).map(pair).collect();
    let more = if pairs.len() > MOST_PAIRS { ", …" } else { "" };
    shown.join(", ") + more
}

/// Maximum number of pairs of nodes listed per region.
const MOST_PAIRS: usize = 2;

/// Shortens a name from the left, because the end of a path says more than its beginning.
pub(crate) fn short(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests;
