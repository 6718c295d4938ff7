//! The report as text within 80 columns.

mod chart;
mod latency_table;
pub(crate) mod layout;
mod style;

pub use latency_table::latency_table;
pub use style::Style;

use crate::number::{count, utc};
use crate::section::{Chart, Panel, Section, Weight, sections};
use crate::summary::Summary;
use layout::{table, wrap};

/// Rows of a table that a terminal shows; the other formats show all.
const MOST_ROWS: usize = 40;

/// The report as text of at most 80 columns: the three sentences, then a part for
/// everything that the run measured.
#[must_use]
pub fn terminal(summary: &Summary<'_>, style: Style) -> String {
    let progress = &summary.progress;
    let title = format!(
        "numalab {}: {}, {}, {} of {}",
        summary.run.name,
        summary.machine_name(),
        utc(summary.run.started_unix_ms),
        progress.precise + progress.budget_spent,
        count(progress.planned, "cell")
    );
    let mut out = format!("{}\n\n", style.heading(&wrap(&title, 0)));
    for (number, sentence) in summary.sentences.iter().enumerate() {
        out.push_str(&format!(
            "{}. {}\n",
            number + 1,
            &wrap(&format!("1. {sentence}"), 3)[3..]
        ));
    }
    for section in sections(summary) {
        if section.weight == Weight::Result {
            out.push_str(&section_text(&section, style));
        }
    }
    out
}

fn section_text(section: &Section<'_>, style: Style) -> String {
    let mut out = format!("\n{}\n", style.heading(section.title));
    for panel in &section.panels {
        out.push_str(&panel_text(panel, style));
    }
    for note in &section.notes {
        out.push_str(&format!("{}\n", wrap(note, 0)));
    }
    out
}

fn panel_text(panel: &Panel<'_>, style: Style) -> String {
    let drawn = chart::chart(&panel.chart, style);
    let caption = wrap(&panel.table.caption, 0);
    let mut out = format!("{}\n{drawn}", style.faint(&caption));
    // A curve's points are many and say no more than its chart and its plateaus.
    if !matches!(panel.chart, Chart::Curves(_)) {
        let mut shown = panel.table.clone();
        let hidden = shown.rows.len().saturating_sub(MOST_ROWS);
        shown.rows.truncate(MOST_ROWS);
        out.push_str(&table(&shown, style));
        if hidden > 0 {
            out.push_str(&format!("… and {}\n", count(hidden, "more row")));
        }
    }
    out.push('\n');
    out
}
