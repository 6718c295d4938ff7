//! A page as text within 80 columns.

pub(crate) mod bar;
mod chart;
pub(crate) mod layout;
mod lines;
mod over_time;
mod style;

pub use style::Style;

use crate::number::count;
use crate::table::{Table, one_line};
use crate::{Lead, Mood, Page, Panel, Part, Terminal, Weight};
use layout::{WIDTH, hanging, table, wrap};

/// The maximum number of rows of a table on a terminal; other formats show all.
const MOST_ROWS: usize = 24;

pub(crate) fn render(page: &Page, style: Style) -> String {
    let mut out = format!("{}\n", style.heading(&wrap(&page.title, 0)));
    if !page.meta.is_empty() {
        out.push_str(&format!("{}\n", style.faint(&wrap(&page.meta, 0))));
    }
    let mut above = "";
    let most_rows = if page.whole { usize::MAX } else { MOST_ROWS };
    let picture = page.picture.as_ref();
    for (at, lead) in page.lead.iter().enumerate() {
        out.push_str(&lead_text(lead, above, style));
        above = &lead.name;
        let picture = picture.filter(|_| at == 0);
        let picture = picture.and_then(|panel| panel_text(panel, style, most_rows));
        if let Some(text) = picture {
            out.push_str(&format!("\n{text}"));
            above = "";
        }
    }
    let results = page.parts.iter().filter(|part| part.weight == Weight::Result);
    out.extend(results.map(|part| part_text(part, style, most_rows)));
    out
}

/// Returns a paragraph, without its name if the one above has the same.
fn lead_text(lead: &Lead, above: &str, style: Style) -> String {
    let paint = |text: &str| match lead.mood {
        Mood::Good => style.good(text),
        Mood::Bad => style.bad(text),
        Mood::Odd => style.warning(text),
        Mood::Plain | Mood::Fine => style.heading(text),
    };
    // A command is never wrapped, so that it can be copied.
    let lines = lead.command.iter().flat_map(|command| command.lines());
    let command: String =
        lines.map(|line| format!("  {}\n", style.mark(&one_line(line)))).collect();
    if lead.name == above {
        return format!("{}\n{command}", hanging("", &lead.sentence, 2));
    }
    let line = one_line(&format!("{}: {}", lead.name, lead.sentence));
    if line.chars().count() <= WIDTH {
        return format!("\n{}\n{command}", paint(&line));
    }
    let name = paint(&wrap(&lead.name, 0));
    format!("\n{name}\n{}\n{command}", hanging("", &lead.sentence, 2))
}

fn part_text(part: &Part, style: Style, most_rows: usize) -> String {
    let mut parts: Vec<String> =
        part.panels.iter().filter_map(|panel| panel_text(panel, style, most_rows)).collect();
    parts.extend(
        part.listing
            .iter()
            .map(|listing| listing.lines().map(|line| one_line(line) + "\n").collect::<String>()),
    );
    let notes: String = part.notes.iter().map(|note| wrap(note, 0) + "\n").collect();
    if !notes.is_empty() {
        parts.push(notes);
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", style.heading(&wrap(&part.title, 0)), parts.join("\n"))
}

fn panel_text(panel: &Panel, style: Style, most_rows: usize) -> Option<String> {
    let drawn = panel.chart.as_ref().map_or_else(String::new, |of| chart::chart(of, style));
    let captioned = |shown: &Table, content: String| {
        format!("{}\n{content}", style.faint(&wrap(&shown.caption, 0)))
    };
    match &panel.terminal {
        Terminal::Nothing => None,
        Terminal::Chart => Some(captioned(&panel.table, drawn)),
        Terminal::Both => {
            let table = shortened(&panel.table, style, most_rows);
            Some(captioned(&panel.table, drawn + &table))
        }
        Terminal::Instead(tables) => {
            let tables =
                tables.iter().map(|part| captioned(part, shortened(part, style, most_rows)));
            Some(tables.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn shortened(whole: &Table, style: Style, most_rows: usize) -> String {
    let mut shown = whole.clone();
    let hidden = shown.rows.len().saturating_sub(most_rows);
    shown.rows.truncate(most_rows);
    let more = match hidden {
        0 => String::new(),
        hidden => format!("… and {}\n", count(hidden, "more row")),
    };
    if shown.rows.is_empty() { more } else { table(&shown, style) + &more }
}
