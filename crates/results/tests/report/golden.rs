//! Every format of every run, compared with its golden file.

use numalab_page::{Format, Style};
use numalab_results::Report;
use numalab_results::run::{Summary, latency_table};

use crate::runs;

#[test]
fn the_terminal_text_of_every_run_is_as_it_was() {
    for (name, document) in runs::all() {
        let text = Summary::of(&document).page().terminal(Style::Plain);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{name} is {widest:?} wide:\n{text}");
        insta::assert_snapshot!(format!("terminal-{name}"), text);
    }
}

#[test]
fn the_markdown_of_every_run_is_as_it_was() {
    for (name, document) in runs::all() {
        insta::assert_snapshot!(
            format!("markdown-{name}"),
            Summary::of(&document).page().markdown()
        );
    }
}

#[test]
fn the_csv_of_every_run_is_as_it_was() {
    for (name, document) in runs::all() {
        insta::assert_snapshot!(
            format!("csv-{name}"),
            Summary::of(&document).exported(Format::Csv).unwrap()
        );
    }
}

/// For one run the whole page is kept, without style and script, which are separate files.
#[test]
fn the_html_of_a_small_machine_is_as_it_was() {
    let document = runs::one_node();
    let page = Summary::of(&document).page().html();
    let body = page.split_once("<body>").expect("a page has a body").1;
    let body = body.split_once("<script>").expect("a page has a script").0;
    insta::assert_snapshot!("html-one-node", body);
}

#[test]
fn the_table_of_the_benchmark_suite_has_a_line_a_rank_and_a_column_a_size() {
    insta::assert_snapshot!("latency-table", latency_table(&runs::one_node()));
    assert_eq!(latency_table(&runs::empty()), "");
}

#[test]
fn colour_changes_nothing_but_escapes() {
    let document = runs::interrupted();
    let summary = Summary::of(&document);
    let coloured = summary.page().terminal(Style::Colour);
    assert!(coloured.contains("\u{1b}[1m"));
    let mut plain = String::new();
    for part in coloured.split('\u{1b}') {
        let is_escape = part.starts_with('[');
        let text = if is_escape { part.split_once('m').map_or("", |(_, text)| text) } else { part };
        plain.push_str(text);
    }
    assert_eq!(plain, summary.page().terminal(Style::Plain));
}
