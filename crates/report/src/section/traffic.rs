//! Bandwidth, latency under load, cache lines between cpus.

use std::collections::BTreeSet;

use numalab_record::{AccessPattern, Unit};

use super::{Bar, BarGroup, Beyond, Chart, Panel, Section, Weight, interval_text, matrix_table};
use crate::label;
use crate::number::{count, figure, size};
use crate::table::Table;
use numalab_analysis::run::{Bandwidths, LoadedCurve, Summary};

pub(super) fn bandwidth<'a>(summary: &'a Summary<'a>) -> Option<Section<'a>> {
    let bandwidth = &summary.bandwidth;
    if bandwidth.rows.is_empty() {
        return None;
    }
    let groups = bar_groups(bandwidth);
    let beyond_chart = beyond_bars(bandwidth, &groups);
    let mut panels =
        vec![Panel { chart: Chart::Bars(groups), table: bandwidth_table(bandwidth), beyond_chart }];
    if let Some(matrix) = &bandwidth.by_node {
        let caption = "GB/s read by the cpus of each node from each node's memory";
        panels.push(Panel::drawn(Chart::Heatmap(matrix), matrix_table(matrix, caption.to_owned())));
    }
    Some(Section {
        id: "bandwidth",
        title: "Bandwidth",
        notes: vec![
            "GB/s are 10⁹ bytes per second that the program asked to move. An ordinary store to \
             a line that is not in the cache reads that line first, which is not counted; the \
             -nt kernels avoid it."
                .to_owned(),
        ],
        panels,
        weight: Weight::Result,
    })
}

/// Whether bars and node matrix together leave out any cell.
fn beyond_bars(bandwidth: &Bandwidths<'_>, groups: &[BarGroup]) -> Beyond {
    let bars = groups.iter().flat_map(|group| &group.bars);
    let matrix = bandwidth.by_node.iter().flat_map(|matrix| &matrix.entries);
    let entries = matrix.flatten().flatten().flat_map(|entry| &entry.cells);
    let told: BTreeSet<&str> =
        bars.map(|bar| bar.cell.as_str()).chain(entries.map(|id| id.0.as_str())).collect();
    if bandwidth.rows.iter().all(|row| told.contains(row.id.0.as_str())) {
        Beyond::Nothing
    } else {
        Beyond::More
    }
}

/// One cpu, then the most cpus at once, each on local memory.
fn bar_groups(bandwidth: &Bandwidths<'_>) -> Vec<BarGroup> {
    let mut counts = vec![1, bandwidth.most_workers()];
    counts.dedup();
    let group = |workers: usize| {
        let bars: Vec<Bar> = bandwidth
            .local_with(workers)
            .into_iter()
            .map(|row| Bar {
                label: bar_label(row.cell.kernel.name(), row.cell.pattern),
                figure: row.figure.clone(),
                unit: Unit::GigabytesPerSecond,
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
            row.cell.isa.0.clone(),
        ]
    });
    Table::new("All workers together, in GB/s")
        .words("kernel")
        .words("order")
        .words("workers")
        .figures("GB/s")
        .figures("95 % interval")
        .words("pages")
        .words("isa")
        .rows(rows)
}

pub(super) fn loaded<'a>(summary: &'a Summary<'a>) -> Option<Section<'a>> {
    if summary.loaded.is_empty() {
        return None;
    }
    let panels = summary
        .loaded
        .iter()
        .map(|curve| Panel::told_by_chart(Chart::Loaded(curve), loaded_table(curve)));
    Some(Section {
        id: "loaded",
        title: "Latency under load",
        notes: summary.loaded.iter().map(knee_note).collect(),
        panels: panels.collect(),
        weight: Weight::Result,
    })
}

fn knee_note(curve: &LoadedCurve<'_>) -> String {
    let who = format!(
        "{} against {} ({})",
        label::worker(curve.cell.chaser),
        label::workers(&curve.cell.load),
        curve.cell.kernel.name()
    );
    let most = curve.points.iter().map(|point| point.bandwidth_gb_per_s());
    let most = most.fold(0.0, f64::max);
    curve.knee.as_ref().map_or_else(
        || {
            format!(
                "{who}: latency does not reach twice its idle value at any load up to {} GB/s.",
                figure(most)
            )
        },
        |knee| {
            format!(
                "{who}: latency reaches twice its idle {} ns at {} GB/s.",
                figure(knee.idle_ns),
                figure(knee.bandwidth)
            )
        },
    )
}

fn loaded_table(curve: &LoadedCurve<'_>) -> Table {
    let rows = curve.points.iter().map(|point| {
        vec![
            label::delay(point.delay),
            figure(point.bandwidth_gb_per_s()),
            figure(point.latency.median),
            interval_text(point.latency.interval),
        ]
    });
    Table::new(format!(
        "{} against {} {}, {} each, {} pages",
        label::worker(curve.cell.chaser),
        label::workers(&curve.cell.load),
        curve.cell.kernel.name(),
        size(curve.cell.size_bytes),
        curve.cell.pages.name()
    ))
    .words("load")
    .figures("GB/s")
    .figures("ns")
    .figures("95 % interval")
    .rows(rows)
}

pub(super) fn c2c<'a>(summary: &'a Summary<'a>) -> Option<Section<'a>> {
    if summary.c2c.by_home.is_empty() {
        return None;
    }
    let mut panels: Vec<Panel<'a>> = summary
        .c2c
        .by_home
        .iter()
        .map(|(home, matrix)| {
            Panel::drawn(
                Chart::Heatmap(matrix),
                matrix_table(
                    matrix,
                    format!("Round trip in ns, first sender by answerer, {}", home.name()),
                ),
            )
        })
        .collect();
    panels.push(Panel::plain(nearness_table(summary)));
    Some(Section {
        id: "core-to-core",
        title: "Cache line from cpu to cpu",
        notes: vec![
            "A round trip is one line to the other cpu and back; one way is half of it.".to_owned(),
        ],
        panels,
        weight: Weight::Result,
    })
}

fn nearness_table(summary: &Summary<'_>) -> Table {
    let rows = summary.c2c.by_nearness.iter().map(|found| {
        vec![
            found.nearness.name().to_owned(),
            found.pairs.to_string(),
            figure(found.median_ns),
            figure(found.median_ns / 2.0),
            interval_text(Some(found.range_ns)),
        ]
    });
    Table::new("Round trips by what two cpus share, in ns")
        .words("cpus")
        .figures("pairs")
        .figures("round trip")
        .figures("one way")
        .figures("range of round trips")
        .rows(rows)
}
