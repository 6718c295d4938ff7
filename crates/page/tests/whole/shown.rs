//! The formats of a page as one text.

use numalab_page::{Chart, Page, Panel, Part, Style, Table};

/// Returns the part of an HTML file that depends on its page.
pub fn body(html: &str) -> &str {
    let from = html.find("<body").expect("a body");
    let to = html.find("</main>").expect("the end of its content");
    &html[from..to]
}

/// Returns a page in every format, each after its name.
pub fn every_format(page: &Page) -> String {
    let (text, markdown, html) = (page.terminal(Style::Plain), page.markdown(), page.html());
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "wider than a terminal: {wide:?}");
    format!("== terminal\n{text}\n== Markdown\n{markdown}\n== HTML\n{}", body(&html))
}

/// Returns a page that has nothing but a chart, with a table of one row.
pub fn page_of(title: &str, chart: Chart) -> Page {
    let table = Table::new(format!("the figures of {title}"))
        .words("name")
        .figures("ns")
        .rows([vec!["one".to_owned(), "12.5".to_owned()]]);
    let part = Part::of("Figures", vec![Panel::drawn(chart, table)]);
    Page { title: title.to_owned(), parts: part.into_iter().collect(), ..Page::default() }
}
