//! Latency by node, by size and of page walks.

use std::collections::BTreeSet;

use numalab_page::number::{approximate_size, figure, interval_text, ratio, size};
use numalab_page::{Panel, Part, Table, Terminal};
use numalab_record::{AccessPattern, CellId, LatencyCell, Metric};

use super::charts::{matrix_panel, size_curves};
use super::sentences::{cycles, latencies};
use crate::label;
use crate::run::{CellSummary, Curve, LatencyMatrix, Remote, RemoteCost, Summary};

/// Maximum number of pairs listed of remote costs: the lowest and the highest.
const SHOWN_PAIRS: usize = 12;

pub(super) fn matrix(summary: &Summary<'_>) -> Option<Part> {
    let mut panels = Vec::new();
    for matrix in &summary.matrices {
        if !matrix.by_node.is_trivial() {
            let caption = caption(matrix, "node", "median of its cpus");
            panels.push(matrix_panel(&matrix.by_node, caption));
        }
        let caption = caption(matrix, "cpu", "median of its windows");
        panels.push(matrix_panel(&matrix.by_cpu, caption));
    }
    if let Remote::Measured(cost) = &summary.remote {
        panels.insert(1, Panel::table(remote_table(cost)));
    }
    let notes = interference(summary).into_iter().chain(walk_note(summary)).collect();
    Part::of("Latency from cpus to memory", panels).map(|part| part.noted(notes))
}

fn caption(matrix: &LatencyMatrix, from: &str, of: &str) -> String {
    format!(
        "ns from each {from} to each node's memory, {} over {}, {} pages, {}; {of}",
        matrix.pattern,
        size(matrix.size_bytes),
        matrix.pages.name(),
        label::team(matrix.team)
    )
}

fn remote_table(cost: &RemoteCost) -> Table {
    let all = cost.pairs.len();
    let shown = cost
        .pairs
        .iter()
        .enumerate()
        .filter(|(at, _)| *at < SHOWN_PAIRS / 2 || at + SHOWN_PAIRS / 2 >= all);
    let caption = if all > SHOWN_PAIRS {
        format!("Remote cost: the {SHOWN_PAIRS} lowest and highest of {all} pairs")
    } else {
        "Remote cost, lowest first".to_owned()
    };
    Table::new(caption).words("from → to").figures(["ns", "x local", "distance / 10"]).rows(
        shown.map(|(_, pair)| {
            let said = |distance: u8| format!("{:.1}", f64::from(distance) / 10.0);
            vec![
                format!("node {} → node {}", pair.from, pair.to),
                figure(pair.latency_ns),
                figure(pair.ratio),
                pair.distance.map_or_else(|| "–".to_owned(), said),
            ]
        }),
    )
}

/// Returns a note on the latency that concurrent chasing adds, if both teams ran the same chase.
fn interference(summary: &Summary<'_>) -> Option<String> {
    let [alone, together] = summary.matrices.as_slice() else {
        return None;
    };
    let same = |matrix: &LatencyMatrix| (matrix.pattern, matrix.size_bytes, matrix.pages);
    if same(alone) != same(together) {
        return None;
    }
    let (one, all) = (alone.by_cpu.range()?, together.by_cpu.range()?);
    let (together_ns, alone_ns) = (figure(all.hi), figure(one.hi));
    // Other chasers cannot speed up a load: something else slowed down those that ran alone.
    if all.hi < one.hi {
        return Some(format!(
            "With all cpus chasing at once no access is slower than the slowest one at a time: \
             {together_ns} ns against {alone_ns} ns, a difference that is noise."
        ));
    }
    Some(format!(
        "With all cpus chasing at once the slowest access takes {together_ns} ns; one at a time it \
         takes {alone_ns} ns ({}).",
        ratio(all.hi / one.hi)
    ))
}

/// Other chasers cannot speed up a load: something else slowed down those that ran alone.
fn walk_note(summary: &Summary<'_>) -> Option<String> {
    let matrix = summary.matrices.first()?;
    let walk = matrix.noticeable_walk(&summary.walks)?;
    let (cost, pages) = (figure(walk.cost_ns), walk.pages.name());
    let over = size(walk.size_bytes);
    match matrix.pattern {
        AccessPattern::Random => Some(format!(
            "Some loads miss the TLB, and the page walk is part of these latencies: {cost} ns on \
             average over {over} of {pages} pages."
        )),
        AccessPattern::PageLocal => Some(format!(
            "These loads hit the TLB. In random order over {over} of {pages} pages, the page walk \
             adds {cost} ns to each on average."
        )),
        AccessPattern::Stride(_)
        | AccessPattern::Sequential
        | AccessPattern::OneLinePer(_)
        | AccessPattern::FisherYates => None,
    }
}

pub(super) fn curve(summary: &Summary<'_>) -> Option<Part> {
    let curve = summary.curves.first()?;
    let chart = size_curves(&summary.curves);
    let panels = vec![
        Panel::drawn(chart, points_table(summary)).on_terminal(Terminal::Chart),
        Panel::table(levels_table(curve, summary)),
    ];
    Part::of("Latency over size", panels).map(|part| part.noted(core_notes(summary)))
}

fn core_notes(summary: &Summary<'_>) -> Vec<String> {
    let note = |core: &crate::run::Core| {
        let clock = core.clock_ghz.as_ref();
        let clock = clock.map(|clock| format!("runs at {} GHz", figure(clock.median)));
        let load = core.load_to_use.as_ref();
        let load = load.map(|load| {
            let load = figure(load.median);
            format!("a load that hits L1 takes {load} times a dependent add")
        });
        let atomic = core.atomic_add_ns.as_ref();
        let atomic = atomic
            .map(|ns| format!("an atomic add to a line in L1 takes {} ns", figure(ns.median)));
        let reads = core.page_read_ns.as_ref();
        let reads = reads.map(|ns| {
            format!(
                "independent loads of one line in each small page take {} ns each",
                figure(ns.median)
            )
        });
        let faults = core.faults.map(|faults| {
            let [load, store] = [faults.load_ns, faults.store_ns].map(figure);
            format!("the first load of a page takes {load} ns, and the first store {store} ns")
        });
        let calls = core.calls.map(|calls| {
            let [call, page] = [calls.call_ns, calls.page_ns].map(figure);
            format!("a system call takes {call} ns, and reading 4 KiB of a file {page} ns more")
        });
        let others = load.into_iter().chain(atomic).chain(reads).chain(faults).chain(calls);
        let others: Vec<String> = others.collect();
        let others = (!others.is_empty()).then(|| others.join("; "));
        match (clock, others) {
            (Some(clock), Some(others)) => Some(format!("cpu {} {clock}; {others}.", core.cpu)),
            (Some(only), None) => Some(format!("cpu {} {only}.", core.cpu)),
            (None, Some(only)) => Some(format!("On cpu {}, {only}.", core.cpu)),
            (None, None) => None,
        }
    };
    summary.cores.iter().filter_map(note).collect()
}

fn points_table(summary: &Summary<'_>) -> Table {
    let rows = summary.curves.iter().flat_map(|curve| {
        let clock = summary.cycle_clock_ghz(curve.worker.cpu);
        curve.points.iter().map(move |point| {
            vec![
                size(point.size_bytes),
                label::worker(curve.worker),
                figure(point.figure.median),
                interval_text(point.figure.interval),
                cycles(point.figure.median, clock),
            ]
        })
    });
    let pattern =
        summary.curves.first().map_or_else(String::new, |curve| curve.pattern.to_string());
    Table::new(format!("Latency by size of the buffer, {pattern} order"))
        .figures("size")
        .words("worker")
        .figures(["ns", "95 % interval, this run", "cycles"])
        .rows(rows)
}

fn levels_table(curve: &Curve, summary: &Summary<'_>) -> Table {
    let clock = summary.cycle_clock_ghz(curve.worker.cpu);
    let rows = curve.levels.iter().map(|level| {
        let size_or_none =
            |bytes: Option<f64>| bytes.map_or_else(|| "–".to_owned(), approximate_size);
        vec![
            level.name.to_string(),
            latencies(level, figure),
            latencies(level, |ns| cycles(ns, clock)),
            size_or_none(level.capacity_bytes),
            size_or_none(level.undisturbed_bytes),
            level.reported_bytes.map_or_else(|| "–".to_owned(), size),
        ]
    });
    Table::new(format!("Plateaus found, {}", label::worker(curve.worker)))
        .words("level")
        .figures(["ns", "cycles", "ends at", "undisturbed to", "reported size"])
        .rows(rows)
}

/// Returns latencies that no matrix, curve or walk shows, such as those of a single worker or size.
pub(super) fn single(summary: &Summary<'_>) -> Option<Part> {
    let shown: BTreeSet<&CellId> = shown_cells(summary);
    // TLB probes have their own part of the page, as levels and costs.
    let is_probe = |latency: &LatencyCell| {
        !summary.tlbs.is_empty() && matches!(latency.pattern, AccessPattern::OneLinePer(_))
    };
    let is_left = |cell: &&CellSummary<'_>| {
        cell.latency().is_some_and(|latency| !is_probe(latency)) && !shown.contains(&cell.cell.id)
    };
    let row = |cell: &CellSummary<'_>| {
        let figure_of = cell.figure(Metric::Latency)?;
        let latency = cell.latency()?;
        Some(vec![
            label::worker(latency.worker),
            format!("{}, {}", label::chase(latency), label::team(latency.team)),
            figure(figure_of.median),
            interval_text(figure_of.interval),
        ])
    };
    let rows: Vec<Vec<String>> = summary.cells.iter().filter(is_left).filter_map(row).collect();
    let table = Table::new("Latency in ns")
        .words(["worker", "order"])
        .figures(["ns", "95 % interval, this run"])
        .rows(rows);
    Part::of("Latency", vec![Panel::table(table)])
}

/// Returns the cells that matrices, curves and walks summarise.
fn shown_cells<'a>(summary: &'a Summary<'_>) -> BTreeSet<&'a CellId> {
    let matrices = summary.matrices.iter().flat_map(|matrix| &matrix.by_cpu.entries);
    let entries = matrices.flatten().flatten().flat_map(|entry| &entry.cells);
    let points = summary.curves.iter().flat_map(|curve| &curve.points).map(|point| &point.cell);
    let is_walk = |cell: &&CellSummary<'_>| {
        let walks = |latency: &LatencyCell| {
            summary.walks.iter().any(|walk| {
                (walk.worker, walk.size_bytes, walk.pages)
                    == (latency.worker, latency.size_bytes, latency.pages)
            })
        };
        cell.latency().is_some_and(walks)
    };
    let walks = summary.cells.iter().filter(is_walk).map(|cell| &cell.cell.id);
    let tlbs = summary.tlbs.iter().flat_map(|tlb| &tlb.points).map(|point| &point.cell);
    entries.chain(points).chain(walks).chain(tlbs).collect()
}

pub(super) fn walk(summary: &Summary<'_>) -> Option<Part> {
    if summary.walks.is_empty() {
        return None;
    }
    let rows = summary.walks.iter().map(|walk| {
        vec![
            walk.pages.name().to_owned(),
            label::worker(walk.worker),
            size(walk.size_bytes),
            figure(walk.random.median),
            figure(walk.page_local.median),
            figure(walk.cost_ns),
            interval_text(walk.interval),
            cycles(walk.cost_ns, summary.cycle_clock_ghz(walk.worker.cpu)),
        ]
    });
    let table = Table::new("Random minus page-local order, in ns")
        .words(["pages", "worker"])
        .figures(["size", "random", "TLB hit", "walk", "range", "cycles"])
        .rows(rows);
    let note = "A walk's cost is the difference of two medians; its range is the widest that \
                both intervals allow.";
    Part::of("Page walks", vec![Panel::table(table)]).map(|part| part.noted(vec![note.to_owned()]))
}
