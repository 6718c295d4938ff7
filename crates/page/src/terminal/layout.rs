//! Words and tables within 80 columns.

use super::style::Style;
use crate::table::{Align, Table, one_line};

/// The maximum width of every text.
pub const WIDTH: usize = 80;
/// The width in characters beyond which a column of words is cut; the last column is wrapped
/// instead if it has at least this much room.
const WIDEST_COLUMN: usize = 56;
const LEAST_WRAPPED: usize = 24;
const GAP: &str = "  ";

/// Wraps `text` at spaces into lines of at most [`WIDTH`], with `indent` spaces before each except
/// the first; longer words are broken if necessary.
pub fn wrap(text: &str, indent: usize) -> String {
    fill(String::new(), text, indent)
}

/// Wraps like [`wrap`], but with `name` in place of the first line's spaces.
pub fn hanging(name: &str, text: &str, indent: usize) -> String {
    fill(format!("{name:<indent$}"), text, indent)
}

fn fill(mut out: String, text: &str, indent: usize) -> String {
    let mut column = out.chars().count();
    for word in one_line(text).split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if column > indent && column + 1 + word.len() > WIDTH {
            column = break_line(&mut out, indent);
        } else if column > 0 && column != indent {
            out.push(' ');
            column += 1;
        }
        while column + word.len() > WIDTH {
            let rest = word.split_off(WIDTH - column);
            out.extend(word);
            column = break_line(&mut out, indent);
            word = rest;
        }
        column += word.len();
        out.extend(word);
    }
    out
}

/// Begins the next line and returns its first column.
fn break_line(out: &mut String, indent: usize) -> usize {
    out.push('\n');
    out.push_str(&" ".repeat(indent));
    indent
}

/// Lays out the table within [`WIDTH`] columns: if its columns do not fit, the words in the last
/// one are wrapped, or else the table continues below, with its first column repeated.
pub fn table(table: &Table, style: Style) -> String {
    let mut widths = widths(table);
    if let (Some(room), Some(last)) = (room_to_wrap(table, &widths), widths.last_mut()) {
        *last = room;
        return wrapped(table, &widths, style);
    }
    let mut out = String::new();
    for band in bands(&widths) {
        if !out.is_empty() {
            out.push('\n');
        }
        let heading: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
        out.push_str(&style.faint(&line(table, &heading, &band, &widths)));
        out.push('\n');
        for row in &table.rows {
            out.push_str(&line(table, row, &band, &widths));
            out.push('\n');
        }
    }
    out
}

/// Returns the width that is left for wrapping the last column, if it holds words that do not fit.
fn room_to_wrap(table: &Table, widths: &[usize]) -> Option<usize> {
    let (_, others) = widths.split_last()?;
    let last = table.columns.last().filter(|last| last.align == Align::Left && widths.len() > 1)?;
    let before: usize = others.iter().map(|width| width + GAP.len()).sum();
    let room = WIDTH.checked_sub(before).filter(|room| *room >= LEAST_WRAPPED)?;
    let cells = table.rows.iter().filter_map(|row| row.get(others.len()));
    let widest = cells.map(|cell| cell.chars().count()).chain([last.name.chars().count()]).max();
    (widest? > room.min(WIDEST_COLUMN)).then_some(room)
}

fn wrapped(table: &Table, widths: &[usize], style: Style) -> String {
    let all: Vec<usize> = (0..widths.len()).collect();
    let heading: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let mut out = style.faint(&line(table, &heading, &all, widths)) + "\n";
    let others = all.len() - 1;
    let indent = widths[..others].iter().map(|width| width + GAP.len()).sum();
    for row in &table.rows {
        let before = line(table, row, &all[..others], widths);
        let text = row.get(others).map_or("", String::as_str);
        // The name fills its column, so no space follows it.
        out.push_str(hanging(&before, text, indent).trim_end());
        out.push('\n');
    }
    out
}

fn widths(table: &Table) -> Vec<usize> {
    let width = |(at, column): (usize, &crate::table::Column)| {
        let cells = table.rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(column.name.chars().count()).min(WIDEST_COLUMN)
    };
    table.columns.iter().enumerate().map(width).collect()
}

/// Groups the columns so that each group fits; each begins with column 0.
fn bands(widths: &[usize]) -> Vec<Vec<usize>> {
    let Some((&first, rest)) = widths.split_first() else {
        return Vec::new();
    };
    let mut bands = vec![vec![0]];
    let mut used = first;
    for (at, &width) in rest.iter().enumerate() {
        if used + GAP.len() + width > WIDTH && used > first {
            bands.push(vec![0]);
            used = first;
        }
        if let Some(band) = bands.last_mut() {
            band.push(at + 1);
        }
        used += GAP.len() + width;
    }
    bands
}

fn line(table: &Table, row: &[String], band: &[usize], widths: &[usize]) -> String {
    let mut out = String::new();
    for (position, &at) in band.iter().enumerate() {
        let room = WIDTH.saturating_sub(out.chars().count());
        if position > 0 {
            out.push_str(GAP);
        }
        let room = room.saturating_sub(if position > 0 { GAP.len() } else { 0 });
        let text = row.get(at).map_or("", String::as_str);
        let text = cut(text, widths[at].min(room));
        let width = widths[at].min(room);
        match table.columns[at].align {
            Align::Left => out.push_str(&format!("{text:<width$}")),
            Align::Right => out.push_str(&format!("{text:>width$}")),
        }
    }
    out.trim_end().to_owned()
}

/// Returns `text` on one line, cut to at most `width` characters, with an ellipsis if it was longer.
pub fn cut(text: &str, width: usize) -> String {
    let text = one_line(text);
    if text.chars().count() <= width {
        return text;
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Returns `text` on one line, cut to at most `width` characters, with an ellipsis in the middle if
/// it was longer.
pub fn cut_middle(text: &str, width: usize) -> String {
    let text = one_line(text);
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= width {
        return text;
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept / 2, kept - kept / 2);
    let ends = [&characters[..head], &['…'], &characters[characters.len() - tail..]];
    ends.iter().flat_map(|part| part.iter()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_table_wider_than_the_terminal_continues_below() {
        let wide = (0..30).fold(Table::new("").words("node"), |table, column| {
            table.figures(format!("{column:>4}"))
        });
        let text = table(&wide.rows([vec!["x".to_owned(); 31]]), Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches("node").count(), 3, "{text}");
    }

    #[test]
    fn text_cut_in_the_middle_keeps_both_ends() {
        assert_eq!(cut_middle("loaded/read/cpu0/128M", 9), "load…128M");
        assert_eq!(cut_middle("latency", 9), "latency");
    }

    #[test]
    fn a_last_column_of_words_is_wrapped_below_itself() {
        let long = ["word"; 30].join(" ");
        let shown = Table::new("").words("name").figures("ns").words("why");
        let text = table(&shown.rows([vec!["a".to_owned(), "1".to_owned(), long]]), Style::Plain);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("a      1  word word"), "{text}");
        assert!(lines[2].starts_with("          word") && lines.len() == 4, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    proptest! {
        #[test]
        fn wrapped_text_keeps_every_character_and_the_width(text in "\\PC{0,400}", indent in 0..20_usize) {
            let wrapped = wrap(&text, indent);
            for line in wrapped.lines() {
                prop_assert!(line.chars().count() <= WIDTH);
            }
            let words = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(words(&wrapped), words(&text));
        }
    }
}
