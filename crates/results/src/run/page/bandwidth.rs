//! Bandwidth of all workers together.

use std::collections::BTreeSet;

use numalab_page::number::{count, figure, interval_text};
use numalab_page::{Bar, BarGroup, Chart, Panel, Part, Table, Terminal};
use numalab_record::{AccessPattern, Unit};
use numalab_stats::Interval;

use super::charts::matrix_panel;
use crate::label;
use crate::run::{BandwidthRow, Bandwidths, Matrix, MeasuredWeight, Summary};

/// Returns the sentence that opens the page of a run of bandwidth alone.
pub(super) fn sentence(summary: &Summary<'_>) -> Option<String> {
    let bandwidth = &summary.bandwidth;
    let is_alone = summary.cells.iter().all(|cell| cell.bandwidth().is_some());
    let most = bandwidth.most_workers();
    let all = bandwidth.local_with(most).into_iter().next().filter(|_| is_alone)?;
    let is_same = |row: &&BandwidthRow<'_>| {
        (row.cell.kernel, row.cell.pattern) == (all.cell.kernel, all.cell.pattern)
    };
    let one = bandwidth.local_with(1).into_iter().find(|row| most > 1 && is_same(row));
    let alone = one.map_or_else(String::new, |row| {
        format!(" together, and 1 cpu alone {} GB/s", figure(row.figure.median))
    });
    let remote = bandwidth.by_node.as_ref().and_then(remote_range);
    let remote = remote.map_or_else(String::new, |Interval { lo, hi }| {
        let range = if figure(lo) == figure(hi) {
            figure(lo)
        } else {
            format!("{} to {}", figure(lo), figure(hi))
        };
        format!("; the cpus of one node read {range} GB/s from another's memory")
    });
    Some(format!(
        "Local memory gives {} {} GB/s{alone} ({}){remote}.",
        count(most, "cpu"),
        figure(all.figure.median),
        bar_label(all.cell.kernel.name(), all.cell.pattern)
    ))
}

/// Returns the smallest and largest bandwidth between different nodes.
fn remote_range(matrix: &Matrix) -> Option<Interval> {
    let pairs =
        matrix.rows.iter().flat_map(|&from| matrix.columns.iter().map(move |&to| (from, to)));
    let remote = pairs.filter(|(from, to)| from != to);
    let values = remote.filter_map(|(from, to)| Some(matrix.get(from, to)?.value));
    values
        .map(|value| Interval { lo: value, hi: value })
        .reduce(|range, value| Interval { lo: range.lo.min(value.lo), hi: range.hi.max(value.hi) })
}

pub(super) fn part(summary: &Summary<'_>) -> Option<Part> {
    let bandwidth = &summary.bandwidth;
    if bandwidth.rows.is_empty() {
        return None;
    }
    let groups = bar_groups(bandwidth);
    let terminal = beyond_bars(bandwidth, &groups);
    let bars = Panel::drawn(Chart::Bars(groups), bandwidth_table(bandwidth));
    let mut panels = vec![bars.on_terminal(terminal)];
    if let Some(matrix) = &bandwidth.by_node {
        let caption = "GB/s read by the cpus of each node from each node's memory";
        panels.push(matrix_panel(matrix, caption.to_owned()));
    }
    panels.push(Panel::table(weights(bandwidth)));
    let note = "GB/s are 10⁹ bytes per second that the program asked to move. An ordinary store \
                to a line that is not in the cache reads that line first, which is not counted; \
                the -nt kernels avoid it.";
    Part::of("Bandwidth", panels).map(|part| part.noted(vec![note.to_owned()]))
}

/// Returns the interleaving weights in proportion to bandwidth, with the command that sets them.
fn weights(bandwidth: &Bandwidths<'_>) -> Table {
    let weights: Vec<String> =
        bandwidth.weights.iter().map(|found| found.weight.to_string()).collect();
    let command = format!("numalab bind --policy weighted --weights {}", weights.join(","));
    let row = |found: &MeasuredWeight| {
        vec![found.node.to_string(), figure(found.gb_per_s), found.weight.to_string()]
    };
    Table::new(format!("weights for interleaving by measured bandwidth; {command} sets them"))
        .figures(["node", "read GB/s", "weight"])
        .rows(bandwidth.weights.iter().map(row))
}

/// Omits the table from a terminal if bars and node matrix already show every cell.
fn beyond_bars(bandwidth: &Bandwidths<'_>, groups: &[BarGroup]) -> Terminal {
    let bars = groups.iter().flat_map(|group| &group.bars);
    let matrix = bandwidth.by_node.iter().flat_map(|matrix| &matrix.entries);
    let entries = matrix.flatten().flatten().flat_map(|entry| &entry.cells);
    let shown: BTreeSet<&str> =
        bars.map(|bar| bar.cell.as_str()).chain(entries.map(|id| id.0.as_str())).collect();
    if bandwidth.rows.iter().all(|row| shown.contains(row.id.0.as_str())) {
        Terminal::Chart
    } else {
        Terminal::Both
    }
}

/// Returns bars for one cpu, then for the most cpus at once, each on local memory.
fn bar_groups(bandwidth: &Bandwidths<'_>) -> Vec<BarGroup> {
    let mut counts = vec![1, bandwidth.most_workers()];
    counts.dedup();
    let group = |workers: usize| {
        let bars: Vec<Bar> = bandwidth
            .local_with(workers)
            .into_iter()
            .map(|row| Bar {
                label: bar_label(row.cell.kernel.name(), row.cell.pattern),
                figure: (&row.figure).into(),
                unit: Unit::GigabytesPerSecond.to_string(),
                cell: row.id.0.clone(),
            })
            .collect();
        let title = format!("{}, local memory", count(workers, "cpu"));
        (!bars.is_empty()).then_some(BarGroup { title, bars })
    };
    counts.into_iter().filter_map(group).collect()
}

fn bar_label(kernel: &str, pattern: AccessPattern) -> String {
    match pattern {
        AccessPattern::Sequential => kernel.to_owned(),
        other => format!("{kernel}, {other}"),
    }
}

fn bandwidth_table(bandwidth: &Bandwidths<'_>) -> Table {
    let rows = bandwidth.rows.iter().map(|row| {
        vec![
            row.cell.kernel.name().to_owned(),
            row.cell.pattern.to_string(),
            label::workers(&row.cell.workers),
            figure(row.figure.median),
            interval_text(row.figure.interval),
            row.cell.pages.name().to_owned(),
            row.isas.iter().copied().collect::<Vec<_>>().join(", "),
        ]
    });
    Table::new("All workers together, in GB/s")
        .words(["kernel", "order", "workers"])
        .figures(["GB/s", "95 % interval, this run"])
        .words(["pages", "isa"])
        .rows(rows)
}
