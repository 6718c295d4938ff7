//! Latency: matrix, curve, page walks.

use super::{Chart, Panel, Section, Weight, interval_text, matrix_table};
use crate::label;
use crate::number::{approximate_size, figure, ratio, size};
use crate::run::cycles;
use crate::table::Table;
use numalab_analysis::run::{Curve, LatencyMatrix, Remote, RemoteCost, Summary};

/// Pairs shown of the remote costs: the cheapest and the dearest.
const SHOWN_PAIRS: usize = 12;

pub(super) fn matrix<'a>(summary: &'a Summary<'a>) -> Option<Section<'a>> {
    if summary.matrices.is_empty() {
        return None;
    }
    let mut panels = Vec::new();
    for matrix in &summary.matrices {
        if !matrix.by_node.is_trivial() {
            panels.push(Panel::drawn(
                Chart::Heatmap(&matrix.by_node),
                matrix_table(&matrix.by_node, caption(matrix, "node", "median of its cpus")),
            ));
        }
        panels.push(Panel::drawn(
            Chart::Heatmap(&matrix.by_cpu),
            matrix_table(&matrix.by_cpu, caption(matrix, "cpu", "median of its windows")),
        ));
    }
    if let Remote::Measured(cost) = &summary.remote {
        panels.insert(1, Panel::plain(remote_table(cost)));
    }
    Some(Section {
        id: "latency-matrix",
        title: "Latency from cpus to memory",
        notes: interference(summary).into_iter().collect(),
        panels,
        weight: Weight::Result,
    })
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
        format!("Remote cost: the {SHOWN_PAIRS} cheapest and dearest of {all} pairs")
    } else {
        "Remote cost, cheapest first".to_owned()
    };
    Table::new(caption)
        .words("from → to")
        .figures("ns")
        .figures("x local")
        .figures("distance / 10")
        .rows(shown.map(|(_, pair)| {
            let said = |distance: u8| format!("{:.1}", f64::from(distance) / 10.0);
            vec![
                format!("node {} → node {}", pair.from, pair.to),
                figure(pair.latency_ns),
                figure(pair.ratio),
                pair.distance.map_or_else(|| "–".to_owned(), said),
            ]
        }))
}

/// What chasing all at once adds, where both teams were measured alike.
fn interference(summary: &Summary<'_>) -> Option<String> {
    let [alone, together] = summary.matrices.as_slice() else {
        return None;
    };
    let same = |matrix: &LatencyMatrix| (matrix.pattern, matrix.size_bytes, matrix.pages);
    if same(alone) != same(together) {
        return None;
    }
    let (one, all) = (alone.by_cpu.range()?, together.by_cpu.range()?);
    Some(format!(
        "With all cpus chasing at once the slowest access takes {} ns; one at a time it takes \
         {} ns ({}).",
        figure(all.hi),
        figure(one.hi),
        ratio(all.hi / one.hi)
    ))
}

pub(super) fn curve<'a>(summary: &'a Summary<'a>) -> Option<Section<'a>> {
    let curve = summary.curves.first()?;
    Some(Section {
        id: "latency-curve",
        title: "Latency over size",
        notes: core_notes(summary),
        panels: vec![
            Panel::told_by_chart(Chart::Curves(&summary.curves), points_table(summary)),
            Panel::plain(levels_table(curve, summary)),
        ],
        weight: Weight::Result,
    })
}

fn core_notes(summary: &Summary<'_>) -> Vec<String> {
    let note = |core: &numalab_analysis::run::Core| {
        let clock = core.clock_ghz.as_ref();
        let clock = clock.map(|clock| format!("runs at {} GHz", figure(clock.median)));
        let load = core.load_to_use.as_ref();
        let load = load.map(|load| {
            let load = figure(load.median);
            format!("a load that hits L1 takes {load} times a dependent add")
        });
        match (clock, load) {
            (Some(clock), Some(load)) => Some(format!("cpu {} {clock}; {load}.", core.cpu)),
            (Some(only), None) => Some(format!("cpu {} {only}.", core.cpu)),
            (None, Some(only)) => Some(format!("On cpu {}, {only}.", core.cpu)),
            (None, None) => None,
        }
    };
    summary.cores.iter().filter_map(note).collect()
}

fn points_table(summary: &Summary<'_>) -> Table {
    let rows = summary.curves.iter().flat_map(|curve| {
        let clock = summary.clock_ghz(curve.worker.cpu);
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
        .figures("ns")
        .figures("95 % interval")
        .figures("cycles")
        .rows(rows)
}

fn levels_table(curve: &Curve, summary: &Summary<'_>) -> Table {
    let clock = summary.clock_ghz(curve.worker.cpu);
    let rows = curve.levels.iter().map(|level| {
        let size_or_none =
            |bytes: Option<f64>| bytes.map_or_else(|| "–".to_owned(), approximate_size);
        vec![
            level.name.to_string(),
            figure(level.latency_ns),
            cycles(level.latency_ns, clock),
            size_or_none(level.capacity_bytes),
            size_or_none(level.undisturbed_bytes),
            level.reported_bytes.map_or_else(|| "–".to_owned(), size),
        ]
    });
    Table::new(format!("Plateaus found, {}", label::worker(curve.worker)))
        .words("level")
        .figures("ns")
        .figures("cycles")
        .figures("ends at")
        .figures("undisturbed to")
        .figures("reported size")
        .rows(rows)
}

pub(super) fn walk<'a>(summary: &'a Summary<'a>) -> Option<Section<'a>> {
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
            cycles(walk.cost_ns, summary.clock_ghz(walk.worker.cpu)),
        ]
    });
    let table = Table::new("Random minus page-local order, in ns")
        .words("pages")
        .words("worker")
        .figures("size")
        .figures("random")
        .figures("TLB hit")
        .figures("walk")
        .figures("range")
        .figures("cycles")
        .rows(rows);
    Some(Section {
        id: "page-walks",
        title: "Page walks",
        notes: vec![
            "A walk's cost is the difference of two medians; its range is the widest that both \
             intervals allow."
                .to_owned(),
        ],
        panels: vec![Panel::plain(table)],
        weight: Weight::Result,
    })
}
