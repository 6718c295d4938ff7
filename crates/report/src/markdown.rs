//! The report as Markdown (GitHub's tables).

use crate::number::{count, utc};
use crate::section::{Section, sections};
use crate::summary::Summary;
use crate::table::{Align, Table, one_line};

/// The report as Markdown: the three sentences, then every table.
#[must_use]
pub fn markdown(summary: &Summary<'_>) -> String {
    let mut out = format!("# Memory placement on {}\n\n", escape(summary.machine_name()));
    let label = summary.run.label.as_deref();
    let label = label.map_or_else(String::new, |label| format!(", {}", escape(label)));
    out.push_str(&format!(
        "numalab {} {}, {}, {}{label}\n\n",
        escape(&summary.run.version),
        escape(&summary.run.name),
        utc(summary.run.started_unix_ms),
        count(summary.progress.planned, "cell")
    ));
    for sentence in &summary.sentences {
        out.push_str(&format!("- **{}**\n", escape(sentence)));
    }
    for section in sections(summary) {
        out.push_str(&section_text(&section));
    }
    out
}

pub(crate) fn section_text(section: &Section<'_>) -> String {
    let mut out = format!("\n## {}\n", section.title);
    for note in &section.notes {
        out.push_str(&format!("\n{}\n", escape(note)));
    }
    for panel in &section.panels {
        out.push_str(&table(&panel.table));
    }
    out
}

/// A table under its caption, with a blank line before each.
pub(crate) fn table(table: &Table) -> String {
    let row = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = |align| match align {
        Align::Left => ":--".to_owned(),
        Align::Right => "--:".to_owned(),
    };
    let mut out = format!("\n{}\n\n", escape(&table.caption));
    out.push_str(&row(&mut table.columns.iter().map(|column| escape(&column.name))));
    out.push_str(&row(&mut table.columns.iter().map(|column| rule(column.align))));
    for cells in &table.rows {
        out.push_str(&row(&mut cells.iter().map(|cell| escape(cell))));
    }
    out
}

/// `text` on one line, with every character that Markdown or HTML would act on
/// escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
