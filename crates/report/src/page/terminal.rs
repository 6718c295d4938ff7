//! A page as text within 80 columns.

use super::{Curves, Figures, Page, Part};
use crate::number::{count, figure};
use crate::terminal::Style;
use crate::terminal::layout::{cut, hanging, table, wrap};

/// Rows of a table that a terminal shows; the other formats show all.
const MOST_ROWS: usize = 24;
/// Eighths of a character cell (Unicode block elements).
const UPWARD: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const NAME_WIDTH: usize = 30;
const CURVE_WIDTH: usize = 32;

pub(super) fn render(page: &Page, style: Style) -> String {
    let mut out = format!("{}\n", style.heading(&wrap(&page.title, 0)));
    if !page.meta.is_empty() {
        out.push_str(&format!("{}\n", style.faint(&wrap(&page.meta, 0))));
    }
    out.push('\n');
    for (number, lead) in (1..).zip(&page.lead) {
        out.push_str(&format!("{}\n", hanging(&format!("{number}."), &lead.sentence, 3)));
    }
    out.extend(page.parts.iter().map(|part| part_text(part, style)));
    out
}

fn part_text(part: &Part, style: Style) -> String {
    let mut parts: Vec<String> = Vec::new();
    let notes: String = part.notes.iter().map(|note| hanging("-", note, 2) + "\n").collect();
    if !notes.is_empty() {
        parts.push(notes);
    }
    parts.extend(part.panels.iter().map(|panel| figures_text(panel, style)));
    format!("\n{}\n{}", style.heading(&part.title), parts.join("\n"))
}

fn figures_text(figures: &Figures, style: Style) -> String {
    let drawn =
        figures.curves.as_ref().map_or_else(String::new, |curves| sparklines(curves, style));
    let caption = style.faint(&wrap(&figures.table.caption, 0));
    let mut shown = figures.table.clone();
    let hidden = shown.rows.len().saturating_sub(MOST_ROWS);
    shown.rows.truncate(MOST_ROWS);
    let more = match hidden {
        0 => String::new(),
        hidden => format!("… and {}\n", count(hidden, "more row")),
    };
    format!("{caption}\n{drawn}{}{more}", table(&shown, style))
}

/// A line for each curve: its name, its shape between the least and the most of all
/// curves, its first and its last value.
fn sparklines(curves: &Curves, style: Style) -> String {
    let values =
        || curves.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let mut out = String::new();
    for series in &curves.series {
        let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
            continue;
        };
        let shape: String =
            thinned(&series.points).map(|value| UPWARD[eighth(value, low, high)]).collect();
        let name = cut(&series.name, NAME_WIDTH);
        out.push_str(&format!(
            "{name:<NAME_WIDTH$} {} {} – {}\n",
            style.mark(&format!("{shape:<CURVE_WIDTH$}")),
            figure(first.1),
            figure(last.1)
        ));
    }
    out
}

/// At most as many values as there is room for, spread evenly.
fn thinned(points: &[(f64, f64)]) -> impl Iterator<Item = f64> + '_ {
    let shown = points.len().min(CURVE_WIDTH);
    (0..shown).map(move |at| points[at * (points.len() - 1) / (shown - 1).max(1)].1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=7")]
fn eighth(value: f64, low: f64, high: f64) -> usize {
    let share = (value - low) / (high - low);
    let share = if share.is_finite() { share } else { 0.0 };
    (share * 7.0).round().clamp(0.0, 7.0) as usize
}
