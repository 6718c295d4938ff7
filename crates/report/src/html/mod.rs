//! The report as one self-contained page.

mod bars;
mod curve;
pub(crate) mod general;
mod heatmap;
mod lines;
mod loaded;
pub(crate) mod markup;
pub(crate) mod page;
pub(crate) mod plot;
mod tiles;

use crate::number::{count, size, utc};
use crate::section::{Chart, Panel, Section, sections};
use numalab_analysis::run::Summary;

use crate::run::sentences;
use markup::{escape, table};

/// The report as one HTML file: it opens offline, asks nothing of any other file,
/// follows the reader's light or dark, and fits a phone and paper.
#[must_use]
pub fn html(summary: &Summary<'_>) -> String {
    let sections = sections(summary);
    let title = format!("Memory placement on {}", summary.machine_name());
    let parts: String = sections.iter().map(section_html).collect();
    let body = format!(
        "<header>\n<p class=\"brand\">numalab {}</p>\n<h1>{}</h1>\n<p class=\"meta\">{}</p>\n\
         </header>\n<main>\n{}{}{}{parts}</main>\n\
         <footer>Made by numalab {}. Hover, touch or step through a chart with the arrow keys \
         for values and intervals.</footer>\n",
        escape(&summary.run.name),
        escape(&title),
        escape(&meta(summary)),
        lead(summary),
        tiles::tiles(summary),
        contents(&sections),
        escape(&summary.run.version)
    );
    page::page(&title, &body)
}

fn meta(summary: &Summary<'_>) -> String {
    let (run, machine) = (summary.run, &summary.run.machine);
    let model = run.environment.facts.get("cpu_model").cloned();
    let parts = [
        model.filter(|model| model != summary.machine_name()),
        Some(count(machine.nodes.len(), "node")),
        Some(count(machine.online_cpus().len(), "cpu")),
        Some(size(machine.memory_bytes())).filter(|_| machine.memory_bytes() > 0),
        Some(utc(run.started_unix_ms)),
        run.label.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" · ")
}

fn lead(summary: &Summary<'_>) -> String {
    let names = ["Remote access", "Caches", "What is odd"];
    let classes = match summary.findings.is_empty() {
        true => ["", "", "fine"],
        false => ["", "", "odd"],
    };
    let item = |((sentence, name), class): ((&String, &str), &str)| {
        format!("<li class=\"{class}\"><b>{name}</b>{}</li>\n", escape(sentence))
    };
    let items: String = sentences(summary).iter().zip(names).zip(classes).map(item).collect();
    format!("<ol class=\"lead\">\n{items}</ol>\n")
}

fn contents(sections: &[Section<'_>]) -> String {
    let link = |section: &Section<'_>| {
        format!("<a href=\"#{}\">{}</a>\n", section.id, escape(section.title))
    };
    let links: String = sections.iter().map(link).collect();
    format!("<nav aria-label=\"Contents\">\n{links}</nav>\n")
}

/// A part with its charts and tables.
pub(crate) fn section_html(section: &Section<'_>) -> String {
    let notes = section.notes.iter();
    let notes: String = notes.map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    let panels: String = section.panels.iter().map(panel_html).collect();
    format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n{notes}<div class=\"panels\">\n{panels}</div></section>\n",
        section.id,
        escape(section.title)
    )
}

fn panel_html(panel: &Panel<'_>) -> String {
    let caption = &panel.table.caption;
    let drawn = match &panel.chart {
        Chart::None => {
            return figure("small", caption, &table(&panel.table));
        }
        // The coloured table is a table already.
        Chart::Heatmap(matrix) => {
            return figure("small", caption, &heatmap::chart(matrix, caption));
        }
        Chart::OwnHeatmap(matrix) => {
            return figure("small", caption, &heatmap::chart(matrix, caption));
        }
        Chart::Curves(curves) => curve::chart(curves),
        Chart::Bars(groups) => bars::chart(groups),
        Chart::Loaded(curve) => loaded::chart(curve),
    };
    let rows = count(panel.table.rows.len(), "row");
    let table = table(&panel.table);
    let details = format!("<details><summary>Table, {rows}</summary>\n{table}</details>\n");
    figure("drawn", caption, &(drawn + &details))
}

fn figure(class: &str, caption: &str, content: &str) -> String {
    format!(
        "<figure class=\"{class}\">\n<figcaption>{}</figcaption>\n{content}</figure>\n",
        escape(caption)
    )
}
