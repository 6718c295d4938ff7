//! The report as Markdown (GitHub's tables).

use crate::number::{count, utc};
use crate::section::{Section, sections};
use numalab_analysis::run::Summary;

use crate::run::sentences;
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
    for sentence in &sentences(summary) {
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

/// `text` line by line.
pub(crate) fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| escape(line.trim_end())).collect();
    lines.join("  \n")
}

/// `text` as code: within a line, or a block of its own where it has several lines.
pub(crate) fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let shown = |c: char| if c.is_control() && c != '\n' { '·' } else { c };
    let text: String = text.chars().map(shown).collect();
    if text.contains('\n') {
        let fence = "`".repeat(3.max(longest + 1));
        return format!("\n\n{fence}sh\n{}\n{fence}", text.trim_end());
    }
    let fence = "`".repeat(longest + 1);
    match longest {
        0 => format!("{fence}{text}{fence}"),
        _ => format!("{fence} {text} {fence}"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stays_within_its_line_or_has_a_block_that_its_own_quotes_cannot_end() {
        assert_eq!(code("perf bench"), "`perf bench`");
        assert_eq!(code("echo `id`"), "`` echo `id` ``");
        assert_eq!(code("sh -c '\na\x1b\n```\n'"), "\n\n````sh\nsh -c '\na·\n```\n'\n````");
    }

    #[test]
    fn the_lines_of_a_note_stay_lines() {
        assert_eq!(lines("tables: \n4: a_b\n"), "tables:  \n4: a\\_b");
    }
}
