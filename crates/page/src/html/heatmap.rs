//! A matrix as a coloured table.

use super::markup::{escape, tip};
use crate::model::{Heatmap, HeatmapEntry};
use crate::number::figure;

/// The number of colours from small to large.
const STEPS: usize = 7;
/// The ratio of largest to smallest value from which every colour is used: nearly equal values
/// should look nearly equal.
const LEAST_RATIO: f64 = 1.5;

/// The number of columns above which they are closer together.
const ROOMY_COLUMNS: usize = 12;

/// Draws the matrix, coloured on a logarithmic scale, and its legend.
pub(super) fn chart(matrix: &Heatmap, caption: &str) -> String {
    let Some(range) = matrix.range() else {
        return String::new();
    };
    let corner = format!("{} \\ {}", matrix.rows_are, matrix.columns_are);
    let is_wide = matrix.columns.len() > ROOMY_COLUMNS;
    let class = if is_wide { "heat dense" } else { "heat" };
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\
         <table class=\"{class}\" data-chart><thead><tr><th scope=\"col\">{}</th>",
        escape(caption),
        escape(&corner)
    );
    for column in &matrix.columns {
        out.push_str(&format!("<th scope=\"col\" class=\"n\">{column}</th>"));
    }
    out.push_str("</tr></thead><tbody>\n");
    let mut is_first = true;
    for (row, entries) in matrix.rows.iter().zip(&matrix.entries) {
        out.push_str(&format!("<tr><th scope=\"row\">{}&nbsp;{row}</th>", matrix.rows_are));
        for (column, entry) in matrix.columns.iter().zip(entries) {
            let Some(entry) = entry else {
                out.push_str("<td>–</td>");
                continue;
            };
            let step = step(entry.value, range.lo, range.hi);
            let tip = tip(&tip_text(matrix, *row, *column, entry), is_first);
            let value = figure(entry.value);
            out.push_str(&format!("<td class=\"h{step}\" {tip}>{value}</td>"));
            is_first = false;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out + &legend(matrix, range.lo, range.hi)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped to the few steps"
)]
fn step(value: f64, low: f64, high: f64) -> usize {
    let span = (high / low).max(LEAST_RATIO).ln();
    let share = (value / low).ln() / span;
    let share = if share.is_finite() { share } else { 0.0 };
    (share * (STEPS - 1) as f64).round().clamp(0.0, (STEPS - 1) as f64) as usize
}

fn tip_text(matrix: &Heatmap, row: u32, column: u32, entry: &HeatmapEntry) -> String {
    let what = format!(
        "{} {row} → {} {column}: {} {}",
        matrix.rows_are,
        matrix.columns_are,
        figure(entry.value),
        matrix.unit
    );
    if entry.detail.is_empty() { what } else { format!("{what}\n{}", entry.detail) }
}

fn legend(matrix: &Heatmap, low: f64, high: f64) -> String {
    let last = step(high, low, high);
    let steps: String = (0..=last).map(|step| format!("<i class=\"h{step}\"></i>")).collect();
    format!(
        "<div class=\"legend\" aria-hidden=\"true\">{} <span class=\"steps\">{steps}</span> {} {}</div>\n",
        figure(low),
        figure(high),
        matrix.unit
    )
}
