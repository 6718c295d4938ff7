//! A page as text within 80 columns.

mod chart;
mod latency_table;
pub(crate) mod layout;
mod lines;
mod style;

pub use latency_table::latency_table;
pub use style::Style;

use crate::number::count;
use crate::page::{Lead, Mood, Page, Panel, Part, Terminal, Weight};
use crate::table::{Table, one_line};
use layout::{WIDTH, hanging, table, wrap};

/// Rows of a table that a terminal shows; the other formats show all.
const MOST_ROWS: usize = 24;

pub(crate) fn render(page: &Page, style: Style) -> String {
    let mut out = format!("{}\n", style.heading(&wrap(&page.title, 0)));
    if !page.meta.is_empty() {
        out.push_str(&format!("{}\n", style.faint(&wrap(&page.meta, 0))));
    }
    out.extend(page.lead.iter().map(|lead| lead_text(lead, style)));
    let results = page.parts.iter().filter(|part| part.weight == Weight::Result);
    out.extend(results.map(|part| part_text(part, style)));
    out
}

fn lead_text(lead: &Lead, style: Style) -> String {
    let paint = |text: &str| match lead.mood {
        Mood::Good => style.good(text),
        Mood::Bad => style.bad(text),
        Mood::Odd => style.warning(text),
        Mood::Plain | Mood::Fine => style.heading(text),
    };
    let line = one_line(&format!("{}: {}", lead.name, lead.sentence));
    if line.chars().count() <= WIDTH {
        return format!("\n{}\n", paint(&line));
    }
    let name = paint(&wrap(&lead.name, 0));
    format!("\n{name}\n{}\n", hanging("", &lead.sentence, 2))
}

fn part_text(part: &Part, style: Style) -> String {
    let mut parts: Vec<String> =
        part.panels.iter().filter_map(|panel| panel_text(panel, style)).collect();
    let notes: String = part.notes.iter().map(|note| wrap(note, 0) + "\n").collect();
    if !notes.is_empty() {
        parts.push(notes);
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", style.heading(&part.title), parts.join("\n"))
}

fn panel_text(panel: &Panel, style: Style) -> Option<String> {
    let drawn = panel.chart.as_ref().map_or_else(String::new, |of| chart::chart(of, style));
    let captioned = |shown: &Table, content: String| {
        format!("{}\n{content}", style.faint(&wrap(&shown.caption, 0)))
    };
    match &panel.terminal {
        Terminal::Nothing => None,
        Terminal::Chart => Some(captioned(&panel.table, drawn)),
        Terminal::Both => Some(captioned(&panel.table, drawn + &shortened(&panel.table, style))),
        Terminal::Instead(tables) => {
            let tables = tables.iter().map(|part| captioned(part, shortened(part, style)));
            Some(tables.collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The first rows of a table.
fn shortened(whole: &Table, style: Style) -> String {
    let mut shown = whole.clone();
    let hidden = shown.rows.len().saturating_sub(MOST_ROWS);
    shown.rows.truncate(MOST_ROWS);
    let more = match hidden {
        0 => String::new(),
        hidden => format!("… and {}\n", count(hidden, "more row")),
    };
    if shown.rows.is_empty() { more } else { table(&shown, style) + &more }
}
