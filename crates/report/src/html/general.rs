//! A page of any content as HTML.

use super::lines;
use super::markup::{escape, table};
use super::page::page as shell;
use crate::number::count;
use crate::page::{Figures, Lead, Mood, Page, Part};

/// Rows beyond which a table is folded away.
const LONG_TABLE: usize = 30;

pub(crate) fn render(page: &Page) -> String {
    let lead: String = page.lead.iter().map(lead_item).collect();
    let links: String = (0..)
        .zip(&page.parts)
        .map(|(at, part): (usize, &Part)| {
            format!("<a href=\"#part{at}\">{}</a>\n", escape(&part.title))
        })
        .collect();
    let parts: String = page.parts.iter().enumerate().map(part_html).collect();
    let body = format!(
        "<header>\n<p class=\"brand\">{}</p>\n<h1>{}</h1>\n<p class=\"meta\">{}</p>\n</header>\n\
         <main>\n<ol class=\"lead\">\n{lead}</ol>\n<nav aria-label=\"Contents\">\n{links}</nav>\n\
         {parts}</main>\n<footer>Made by numalab. Hover, touch or step through a chart with the \
         arrow keys for values.</footer>\n",
        escape(&page.brand),
        escape(&page.title),
        escape(&page.meta)
    );
    shell(&page.title, &body)
}

fn lead_item(lead: &Lead) -> String {
    let class = match lead.mood {
        Mood::Plain => "",
        Mood::Fine => "fine",
        Mood::Odd => "odd",
    };
    format!("<li class=\"{class}\"><b>{}</b>{}</li>\n", escape(&lead.name), escape(&lead.sentence))
}

fn part_html((at, part): (usize, &Part)) -> String {
    let notes: String =
        part.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    let panels: String = part.panels.iter().map(figures_html).collect();
    format!(
        "<section id=\"part{at}\">\n<h2>{}</h2>\n{notes}<div class=\"panels\">\n{panels}</div></section>\n",
        escape(&part.title)
    )
}

fn figures_html(figures: &Figures) -> String {
    let caption = &figures.table.caption;
    let rows = figures.table.rows.len();
    let drawn = figures.curves.as_ref().map(|curves| lines::chart(curves, caption));
    let class = if drawn.is_some() { "drawn" } else { "small" };
    let folded = drawn.is_some() || rows > LONG_TABLE;
    let table = table(&figures.table);
    let table = match folded {
        true => format!(
            "<details><summary>Table, {}</summary>\n{table}</details>\n",
            count(rows, "row")
        ),
        false => table,
    };
    format!(
        "<figure class=\"{class}\">\n<figcaption>{}</figcaption>\n{}{table}</figure>\n",
        escape(caption),
        drawn.unwrap_or_default()
    )
}
