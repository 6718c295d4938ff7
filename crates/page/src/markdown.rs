//! A page as Markdown (GitHub's tables).

use crate::model::{FOOT, Page, Part};
use crate::mood::Mood;
use crate::number::count;
use crate::table::{Align, Table, one_line};

pub(crate) fn render(page: &Page) -> String {
    let mut out = format!("# {}\n\n", escape(&page.title));
    let meta = [page.brand.as_str(), page.meta.as_str()];
    let meta: Vec<&str> = meta.into_iter().filter(|text| !text.is_empty()).collect();
    out.push_str(&format!("{}\n\n", escape(&meta.join(" · "))));
    for (at, lead) in page.lead.iter().enumerate() {
        out.push_str(&format!("- **{}:** {}\n", escape(&lead.name), escape(&lead.sentence)));
        out.extend(lead.command.iter().map(|command| format!("\n{}\n", code(command))));
        if let Some(picture) = page.picture.as_ref().filter(|_| at == 0) {
            out.push_str(&format!("{}\n", table(&picture.table)));
        }
    }
    if let Some(note) = &page.note {
        out.push_str(&format!("\n{}\n", lines(note.trim())));
    }
    out.extend(page.parts.iter().map(part_text));
    out.push_str(&format!("\n{FOOT}\n"));
    out
}

fn part_text(part: &Part) -> String {
    let mut out = format!("\n## {}\n", escape(&part.title));
    if let Some(command) = &part.command {
        out.push_str(&format!("\n{}\n", code(command).trim_start()));
    }
    for note in &part.notes {
        out.push_str(&format!("\n{}\n", escape(note)));
    }
    out.extend(part.listing.iter().map(|listing| format!("\n{}\n", block("text", listing))));
    let shown = part.panels.iter().filter(|panel| !panel.table.rows.is_empty());
    out.extend(shown.map(|panel| match panel.folded {
        true => folded(&panel.table),
        false => table(&panel.table),
    }));
    out
}

/// Returns a table that few readers need, folded behind its caption.
fn folded(shown: &Table) -> String {
    let caption = escape(&shown.caption);
    let rows = count(shown.rows.len(), "row");
    format!("\n<details><summary>{caption}: {rows}</summary>\n\n{}\n</details>\n", grid(shown))
}

/// Returns a mark that every Markdown renderer shows in colour.
fn mark(mood: Mood) -> &'static str {
    match mood {
        Mood::Plain => "",
        Mood::Good => "🟢 ",
        Mood::Bad => "🔴 ",
        Mood::Fine => "⚪ ",
        Mood::Odd => "🟡 ",
    }
}

/// Returns a table under its caption, with a blank line before each.
fn table(table: &Table) -> String {
    format!("\n{}\n\n{}", escape(&table.caption), grid(table))
}

fn grid(table: &Table) -> String {
    let row = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = |align| match align {
        Align::Left => ":--".to_owned(),
        Align::Right => "--:".to_owned(),
    };
    let mut out = row(&mut table.columns.iter().map(|column| escape(&column.name)));
    out.push_str(&row(&mut table.columns.iter().map(|column| rule(column.align))));
    for (number, cells) in table.rows.iter().enumerate() {
        let mood = table.moods.get(number).copied().unwrap_or(Mood::Plain);
        let last = cells.len().saturating_sub(1);
        let marked = |(at, cell): (usize, &String)| {
            format!("{}{}", if at == last { mark(mood) } else { "" }, escape(cell))
        };
        out.push_str(&row(&mut cells.iter().enumerate().map(marked)));
    }
    out
}

/// Returns `text` line by line.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| escape(line.trim_end())).collect();
    lines.join("  \n")
}

/// Returns `text` as code: inline, or as a separate block if it has several lines.
fn code(text: &str) -> String {
    if text.contains('\n') {
        return format!("\n\n{}", block("sh", text));
    }
    let fence = "`".repeat(longest_quote(text) + 1);
    let text = one_line(text);
    match fence.len() {
        1 => format!("{fence}{text}{fence}"),
        _ => format!("{fence} {text} {fence}"),
    }
}

/// Returns `text` as a block in a language, with a fence that nothing in it ends.
fn block(language: &str, text: &str) -> String {
    let fence = "`".repeat(3.max(longest_quote(text) + 1));
    let shown = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '·' } else { c };
    let text: String = text.trim_end().chars().map(shown).collect();
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Returns the length of the longest row of backticks.
fn longest_quote(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

/// Returns `text` on one line, with all Markdown and HTML characters escaped.
fn escape(text: &str) -> String {
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
    use crate::model::Panel;

    #[test]
    fn code_stays_within_its_line_or_has_a_block_that_its_own_quotes_cannot_end() {
        assert_eq!(code("perf bench"), "`perf bench`");
        assert_eq!(code("echo `id`"), "`` echo `id` ``");
        assert_eq!(code("sh -c '\na\x1b\n```\n'"), "\n\n````sh\nsh -c '\na·\n```\n'\n````");
    }

    #[test]
    fn a_listing_ends_its_block_nowhere_and_controls_no_terminal() {
        let listing = Some("question = \"```\n<script>\x1b[2J\n````\"\n\n".to_owned());
        let part = Part { title: "Its file".to_owned(), listing, ..Part::default() };
        let expected =
            "\n## Its file\n\n`````text\nquestion = \"```\n<script>·[2J\n````\"\n`````\n";
        assert_eq!(part_text(&part), expected);
    }

    #[test]
    fn a_table_keeps_its_columns_whatever_is_in_its_cells() {
        let shown = Table::new("by *name*").words("na|me").figures("ns").moods([Mood::Bad]);
        let shown = shown.rows([["a|b\n<i>".to_owned(), "`1`".to_owned()].to_vec()]);
        let expected = "\nby \\*name\\*\n\n| na\\|me | ns |\n| :-- | --: |\n\
                        | a\\|b·&lt;i&gt; | 🔴 \\`1\\` |\n";
        assert_eq!(table(&shown), expected);
    }

    #[test]
    fn evidence_is_folded_whatever_its_length_and_any_other_table_is_not() {
        let rows = |count: usize| (0..count).map(|row| vec![row.to_string()]);
        let panel = |count| Panel::table(Table::new("c").figures("n").rows(rows(count)));
        let text = |panel: Panel| part_text(&Part { panels: vec![panel], ..Part::default() });
        let expected = "\n## \n\n<details><summary>c: 1 row</summary>\n\n| n |\n| --: |\n| 0 |\n\n\
                        </details>\n";
        assert_eq!(text(panel(1).folded()), expected);
        assert!(!text(panel(99)).contains("<details>"));
    }

    #[test]
    fn the_lines_of_a_note_stay_lines() {
        assert_eq!(lines("tables: \n4: a_b\n"), "tables:  \n4: a\\_b");
    }
}
