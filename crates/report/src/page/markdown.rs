//! A page as Markdown.

use super::{Page, Part};
use crate::markdown::{escape, table};

pub(super) fn render(page: &Page) -> String {
    let mut out = format!("# {}\n\n", escape(&page.title));
    if !page.meta.is_empty() {
        out.push_str(&format!("{}\n\n", escape(&page.meta)));
    }
    for lead in &page.lead {
        out.push_str(&format!("- **{}**\n", escape(&lead.sentence)));
    }
    out.extend(page.parts.iter().map(part_text));
    out
}

fn part_text(part: &Part) -> String {
    let mut out = format!("\n## {}\n", escape(&part.title));
    if !part.notes.is_empty() {
        out.push('\n');
    }
    for note in &part.notes {
        out.push_str(&format!("- {}\n", escape(note)));
    }
    out.extend(part.panels.iter().map(|panel| table(&panel.table)));
    out
}
