//! Charts of block characters.

use super::bar::{eighths, rightward};
use super::layout::{WIDTH, cut};
use super::lines;
use super::over_time;
use super::style::Style;
use crate::model::{BarGroup, Chart, Figure, LoadPoint, SizeCurve};
use crate::number::{figure, interval_text, size};

/// Eighths of a character cell (Unicode block elements).
const UPWARD: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The height of the curve, in rows.
const CURVE_ROWS: usize = 6;
/// The width of a bar's label and of a full bar, in characters.
const LABEL_WIDTH: usize = 22;
const BAR_WIDTH: usize = 24;

/// Returns the chart as text; empty if the table shows as much.
pub(super) fn chart(chart: &Chart, style: Style) -> String {
    match chart {
        Chart::LatencyOverSize(curves) => {
            curves.first().map_or_else(String::new, |c| curve(c, style))
        }
        Chart::LatencyOverBandwidth(points, _) => loaded(points, style),
        Chart::Bars(groups) => bars(groups, style),
        Chart::Curves(curves) => lines::chart(curves, style),
        Chart::OverTime(of) => over_time::chart(of, style),
        Chart::Heatmap(_)
        | Chart::Intervals(_)
        | Chart::Blocks(_)
        | Chart::Order(_)
        | Chart::Map(_) => String::new(),
    }
}

/// Draws latency by size: one column per size, latency on a logarithmic scale.
fn curve(curve: &SizeCurve, style: Style) -> String {
    let logs: Vec<f64> =
        curve.points.iter().map(|point| point.figure.value.max(f64::MIN_POSITIVE).ln()).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let room = WIDTH - 10;
    let columns = &logs[logs.len().saturating_sub(room)..];
    let repeat = (room / columns.len().max(1)).clamp(1, 2);
    let mut out = String::new();
    for row in (0..CURVE_ROWS).rev() {
        let label = match row {
            0 => figure(low.exp()),
            row if row + 1 == CURVE_ROWS => figure(high.exp()),
            _ => String::new(),
        };
        let cells: String = columns
            .iter()
            .flat_map(|&log| {
                let filled = eighths(log, low, high, CURVE_ROWS).saturating_sub(row * 8);
                let cell = match filled {
                    0 => ' ',
                    filled => UPWARD[filled.min(8) - 1],
                };
                core::iter::repeat_n(cell, repeat)
            })
            .collect();
        let label = cut(&label, 6);
        let unit = if label.is_empty() { "  " } else { "ns" };
        out.push_str(&format!("{label:>6} {unit} {}\n", style.mark(cells.trim_end())));
    }
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else {
        return out;
    };
    let (first, last) = (size(first.size_bytes), size(last.size_bytes));
    let width = (columns.len() * repeat).max(first.len() + last.len() + 1) - first.len();
    out.push_str(&format!("{:10}{first}{last:>width$}\n", ""));
    out
}

fn bars(groups: &[BarGroup], style: Style) -> String {
    let bars = groups.iter().flat_map(|group| &group.bars);
    let most = bars.map(|bar| bar.figure.value).fold(0.0, f64::max);
    let mut out = String::new();
    for group in groups {
        out.push_str(&format!("{}\n", cut(&group.title, WIDTH)));
        for bar in &group.bars {
            out.push_str(&bar_line(&bar.label, &bar.figure, most, &bar.unit, style));
        }
    }
    out
}

/// Draws label, bar, value and interval.
fn bar_line(label: &str, of: &Figure, most: f64, unit: &str, style: Style) -> String {
    let bar = rightward(eighths(of.value, 0.0, most, BAR_WIDTH));
    let label = cut(label, LABEL_WIDTH);
    let value = format!("{:>5} {unit}", figure(of.value));
    let used = 2 + LABEL_WIDTH + 1 + BAR_WIDTH + 1 + value.chars().count() + 2;
    let interval = cut(&interval_text(of.interval), WIDTH.saturating_sub(used));
    format!(
        "  {label:<LABEL_WIDTH$} {} {value}  {}\n",
        style.mark(&format!("{bar:<BAR_WIDTH$}")),
        style.faint(&interval)
    )
}

/// Draws a bar of latency for each load, with its setting and the bandwidth.
fn loaded(points: &[LoadPoint], style: Style) -> String {
    let latencies = points.iter().map(|point| point.latency.value);
    let most = latencies.fold(0.0, f64::max);
    let line = |point: &LoadPoint| {
        let label = format!("{:<9} {:>5} GB/s", point.load, figure(point.traffic_gb_per_s));
        bar_line(&label, &point.latency, most, "ns", style)
    };
    points.iter().map(line).collect()
}
