//! Escaping of text for HTML and SVG.

use crate::table::{Align, Table};

/// Returns `text` escaped for an element or a quoted attribute. Control characters, which neither
/// HTML nor XML allows, are replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('·'),
            c => out.push(c),
        }
    }
    out
}

/// Returns a table in a box that scrolls if the page is narrow.
pub(crate) fn table(table: &Table) -> String {
    let class = |align| match align {
        Align::Left => "",
        Align::Right => " class=\"n\"",
    };
    let words = table.columns.iter().all(|c| c.align == Align::Left);
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{}><thead><tr>",
        escape(&table.caption),
        if words { " class=\"words\"" } else { "" }
    );
    for column in &table.columns {
        let (class, name) = (class(column.align), escape(&column.name));
        out.push_str(&format!("<th scope=\"col\"{class}>{name}</th>"));
    }
    out.push_str("</tr></thead><tbody>\n");
    for (number, row) in table.rows.iter().enumerate() {
        let mood = table.moods.get(number);
        out.push_str("<tr>");
        for (at, (column, cell)) in table.columns.iter().zip(row).enumerate() {
            let class = match mood.filter(|_| at + 1 == table.columns.len()) {
                Some(mood) => format!(" class=\"mood-{mood}\""),
                None => class(column.align).to_owned(),
            };
            out.push_str(&format!("<td{class}>{}</td>", escape(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Returns the attributes of an element with a tooltip; the first one of a chart is its tab stop,
/// from which arrow keys move on.
pub(crate) fn tip(text: &str, is_first: bool) -> String {
    let stop = if is_first { "0" } else { "-1" };
    format!("data-tip=\"{}\" tabindex=\"{stop}\"", escape(text))
}

#[cfg(test)]
mod tests;
