//! A page as one self-contained HTML file.

mod bars;
mod curve;
mod forest;
mod heatmap;
mod lines;
mod loaded;
mod map;
mod markup;
mod order;
mod over_time;
mod page;
mod pairs;
mod plot;
#[cfg(test)]
mod test_drawing;

use crate::model::{Chart, FOOT, Lead, Page, Panel, Part, Tile};
use crate::number::count;
use markup::{escape, table};

/// The number of rows above which a table is folded.
const LONG_TABLE: usize = 30;

/// Returns the page as one HTML file: it works offline, loads no other file, follows the reader's
/// light or dark mode, and fits a phone and paper.
pub(crate) fn render(page: &Page) -> String {
    let (first, more) = page.lead.split_at(page.lead.len().min(1));
    let leads = |lead: &[Lead]| {
        let items: String = lead.iter().map(lead_item).collect();
        enclosed("ol class=\"lead\"", &items)
    };
    let lead = match &page.picture {
        None => leads(&page.lead),
        Some(picture) => {
            let drawn = enclosed("div class=\"panels\"", &captioned(picture));
            format!("{}{drawn}{}", leads(first), leads(more))
        }
    };
    let tiles: String = page.tiles.iter().map(tile).collect();
    let tiles = enclosed("dl class=\"tiles\"", &tiles);
    let note = page.note.as_ref().map_or_else(String::new, |note| {
        format!("<p class=\"meta lines\">{}</p>\n", escape(note.trim()))
    });
    let link =
        |(at, part): (usize, &Part)| format!("<a href=\"#part{at}\">{}</a>\n", escape(&part.title));
    let links: String = page.parts.iter().enumerate().map(link).collect();
    let parts: String = page.parts.iter().enumerate().map(part_html).collect();
    let body = format!(
        "<header>\n<p class=\"brand\">{}</p>\n<h1>{}</h1>\n<p class=\"meta\">{}</p>\n</header>\n\
         <main>\n{}{note}{tiles}{}{parts}</main>\n<footer>Made by numalab. Hover, touch or step \
         through a chart with the arrow keys for values. {FOOT}</footer>\n",
        escape(&page.brand),
        escape(&page.title),
        escape(&page.meta),
        lead,
        enclosed("nav aria-label=\"Contents\"", &links),
    );
    page::page(&page.title, &body)
}

/// Returns `content` in an element; empty content stays empty.
fn enclosed(tag: &str, content: &str) -> String {
    let name = tag.split(' ').next().unwrap_or(tag);
    if content.is_empty() { String::new() } else { format!("<{tag}>\n{content}</{name}>\n") }
}

fn lead_item(lead: &Lead) -> String {
    let (name, sentence) = (escape(&lead.name), escape(&lead.sentence));
    let command = lead.command.as_ref();
    let command =
        command.map_or_else(String::new, |command| format!("<pre>{}</pre>", escape(command)));
    format!("<li class=\"{}\"><b>{name}</b>{sentence}{command}</li>\n", lead.mood)
}

fn tile(tile: &Tile) -> String {
    format!(
        "<div><dt>{}</dt><dd>{}</dd><dd>{}</dd></div>\n",
        escape(tile.name),
        escape(&tile.value),
        escape(&tile.detail)
    )
}

fn part_html((at, part): (usize, &Part)) -> String {
    let command = part.command.as_ref();
    let command =
        command.map_or_else(String::new, |command| format!("<pre>$ {}</pre>\n", escape(command)));
    let notes: String =
        part.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    let listing = part.listing.as_ref();
    let listing =
        listing.map_or_else(String::new, |listing| format!("<pre>{}</pre>\n", escape(listing)));
    let panels: String = part.panels.iter().map(panel_html).collect();
    format!(
        "<section id=\"part{at}\">\n<h2>{}</h2>\n{command}{notes}{listing}{}</section>\n",
        escape(&part.title),
        enclosed("div class=\"panels\"", &panels)
    )
}

/// Returns a panel, folded behind its caption if few readers need it.
fn panel_html(panel: &Panel) -> String {
    let caption = escape(&panel.table.caption);
    match (&panel.chart, panel.folded) {
        (_, false) => captioned(panel),
        (None, true) if panel.table.rows.is_empty() => String::new(),
        (None, true) => {
            let table = table(&panel.table);
            format!("<details><summary>{caption}</summary>\n{table}</details>\n")
        }
        (Some(_), true) => {
            format!("<details><summary>{caption}</summary>\n{}</details>\n", figure(panel, ""))
        }
    }
}

fn captioned(panel: &Panel) -> String {
    let caption = escape(&panel.table.caption);
    figure(panel, &format!("<figcaption>{caption}</figcaption>\n"))
}

fn figure(panel: &Panel, figcaption: &str) -> String {
    let caption = &panel.table.caption;
    let rows = panel.table.rows.len();
    let drawn = panel.chart.as_ref().map(|chart| drawing(chart, caption));
    let table = match &panel.chart {
        // The coloured table replaces the plain one.
        Some(Chart::Heatmap(_)) => String::new(),
        _ if rows == 0 => String::new(),
        None if rows <= LONG_TABLE => table(&panel.table),
        _ => format!(
            "<details><summary>Table, {}</summary>\n{}</details>\n",
            count(rows, "row"),
            table(&panel.table)
        ),
    };
    let is_table = matches!(panel.chart, None | Some(Chart::Heatmap(_)));
    let class = if is_table { "small" } else { "drawn" };
    format!(
        "<figure class=\"{class}\">\n{figcaption}{}{table}</figure>\n",
        drawn.unwrap_or_default()
    )
}

fn drawing(chart: &Chart, caption: &str) -> String {
    match chart {
        Chart::Heatmap(matrix) => heatmap::chart(matrix, caption),
        Chart::LatencyOverSize(curves) => curve::chart(curves),
        Chart::LatencyOverBandwidth(points, knee) => loaded::chart(points, knee.as_ref()),
        Chart::Bars(groups) => bars::chart(groups),
        Chart::Curves(curves) => lines::chart(curves, caption),
        Chart::Intervals(rows) => forest::chart(rows),
        Chart::Blocks(changes) => pairs::chart(changes),
        Chart::Order(order) => order::chart(order),
        Chart::Map(map) => map::chart(map, caption),
        Chart::OverTime(of) => over_time::chart(of, caption),
    }
}
