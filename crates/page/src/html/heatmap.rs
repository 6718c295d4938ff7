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

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[Option<f64>]]) -> Heatmap {
        let entry =
            |value: &Option<f64>| value.map(|value| HeatmapEntry { value, detail: String::new() });
        let ids = |count: usize| (0..).take(count).collect();
        Heatmap {
            unit: "ns".to_owned(),
            rows_are: "cpu",
            rows: ids(rows.len()),
            columns_are: "node",
            columns: ids(rows[0].len()),
            entries: rows.iter().map(|row| row.iter().map(entry).collect()).collect(),
        }
    }

    #[test]
    fn nearly_equal_values_have_nearly_equal_colours() {
        assert_eq!([100.0, 110.0, 150.0].map(|value| step(value, 100.0, 150.0)), [0, 1, 6]);
        assert_eq!([100.0, 101.0, 102.0].map(|value| step(value, 100.0, 102.0)), [0, 0, 0]);
        assert_eq!([1.0, 10.0, 100.0].map(|value| step(value, 1.0, 100.0)), [0, 3, 6]);
        assert_eq!(step(0.0, 0.0, 0.0), 0, "of no magnitude");
    }

    #[test]
    fn what_was_not_measured_is_a_dash_without_a_colour() {
        let drawn = chart(&matrix(&[&[Some(80.0), None], &[Some(160.0), Some(80.0)]]), "caption");
        assert_eq!(drawn.matches("<td>–</td>").count(), 1);
        assert_eq!(drawn.matches("<td class=\"h0\"").count(), 2);
        assert_eq!(drawn.matches("<td class=\"h6\"").count(), 1);
        assert!(drawn.contains("cpu 1 → node 0: 160 ns"), "{drawn}");
        assert_eq!(chart(&matrix(&[&[None]]), "caption"), "");
    }

    #[test]
    fn the_legend_has_the_colours_that_are_used_and_many_columns_are_dense() {
        let steps = |drawn: &str| drawn.matches("<i class=\"h").count();
        let near = chart(&matrix(&[&[Some(100.0), Some(102.0)]]), "caption");
        assert_eq!((steps(&near), near.contains("dense")), (1, false));
        let wide = chart(&matrix(&[&[Some(100.0); ROOMY_COLUMNS + 1]]), "caption");
        assert!(wide.contains("\"heat dense\""));
    }
}
