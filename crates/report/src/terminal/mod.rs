//! The report as text within 80 columns.

mod chart;
mod latency_table;
pub(crate) mod layout;
mod style;

pub use latency_table::latency_table;
pub use style::Style;

use crate::number::{count, utc};
use crate::section::{Beyond, Panel, Section, Weight, sections};
use numalab_analysis::run::Summary;

use crate::run::sentences;
use layout::{hanging, table, wrap};

/// Rows of a table that a terminal shows; the other formats show all.
const MOST_ROWS: usize = 24;

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
    for (number, sentence) in sentences(summary).iter().enumerate() {
        let number = format!("{}.", number + 1);
        out.push_str(&format!(
            "{}
",
            hanging(&number, sentence, 3)
        ));
    }
    for section in sections(summary) {
        if section.weight == Weight::Result {
            out.push_str(&section_text(&section, style));
        }
    }
    out
}

/// A part with its charts and tables.
pub(crate) fn section_text(section: &Section<'_>, style: Style) -> String {
    let mut parts: Vec<String> = section.panels.iter().map(|p| panel_text(p, style)).collect();
    let notes: String = section.notes.iter().map(|note| wrap(note, 0) + "\n").collect();
    if !notes.is_empty() {
        parts.push(notes);
    }
    format!("\n{}\n{}", style.heading(section.title), parts.join("\n"))
}

fn panel_text(panel: &Panel<'_>, style: Style) -> String {
    let drawn = chart::chart(&panel.chart, style);
    let caption = style.faint(&wrap(&panel.table.caption, 0));
    if panel.beyond_chart == Beyond::Nothing {
        return format!("{caption}\n{drawn}");
    }
    let mut shown = panel.table.clone();
    let hidden = shown.rows.len().saturating_sub(MOST_ROWS);
    shown.rows.truncate(MOST_ROWS);
    let more = match hidden {
        0 => String::new(),
        hidden => format!("… and {}\n", count(hidden, "more row")),
    };
    format!("{caption}\n{drawn}{}{more}", table(&shown, style))
}
