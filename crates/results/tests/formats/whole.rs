//! All formats of a result as one text.

use numalab_page::rows::Rows;
use numalab_page::{Format, Style};
use numalab_results::Report;

/// Compares every format of a result with its golden file.
pub fn compare(name: &str, result: &impl Report) {
    let page = result.page();
    let text = result.terminal(Style::Plain);
    // Commands are never wrapped, so that they can be copied.
    let commands = page.lead.iter().filter_map(|lead| lead.command.as_ref());
    let commands: Vec<String> =
        commands.flat_map(|command| command.lines()).map(|line| format!("  {line}")).collect();
    let lines = text.lines().filter(|line| !commands.iter().any(|command| command == line));
    let widest = lines.map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{name} is {widest:?} wide:\n{text}");
    let none = || "none".to_owned();
    let csv = result.exported(Format::Csv).unwrap_or_else(none);
    let openmetrics = result.exported(Format::OpenMetrics).unwrap_or_else(none);
    let documented = numalab_results::gauges::documentation();
    for gauge in result.rows().iter().flat_map(Rows::gauges) {
        let row = format!("| `{}` | {} |", gauge.name, gauge.means);
        assert!(documented.contains(&row), "{gauge:?} is not in `results::gauges`");
    }
    let parts = [
        ("terminal", text),
        ("Markdown", page.markdown()),
        ("HTML", body(&page.html()).to_owned()),
        ("CSV", csv),
        ("OpenMetrics", openmetrics),
        ("JSON", result.json().expect("JSON")),
    ];
    let parts = parts.map(|(format, text)| format!("==== {format}\n{text}"));
    insta::assert_snapshot!(name, parts.join("\n"));
}

/// Returns the part that differs from page to page: style and script are separate files.
pub fn body(html: &str) -> &str {
    let body = html.split_once("<body>").expect("a page has a body").1;
    body.split_once("<script>").expect("a page has a script").0
}
