//! Properties of pages with arbitrary text: names of files, processes and machines are untrusted.

use numalab_page::rows::{Field, Rows};
use numalab_page::{
    Bar, BarGroup, Chart, Figure, Lead, Mood, Page, Panel, Part, Style, Table, Tile,
};
use proptest::prelude::*;

use crate::shown::body;

/// Texts with everything that a format gives a meaning.
fn text() -> impl Strategy<Value = String> {
    let special = "[<>&\"'|`*_#\\[\\]~\\\\ =+@,;\n\r\t\u{1b}\u{7}\u{9b}é日a-c0-9-]{0,40}";
    prop_oneof![special, "[a-z]{0,12}( [a-z]{1,12}){0,30}", "x{70,170}"]
}

fn mood() -> impl Strategy<Value = Mood> {
    prop::sample::select(vec![Mood::Plain, Mood::Good, Mood::Bad, Mood::Fine, Mood::Odd])
}

prop_compose! {
    fn table()(
        caption in text(),
        names in prop::collection::vec((text(), any::<bool>()), 1..6),
        cells in prop::collection::vec(prop::collection::vec(text(), 6), 0..5),
        moods in prop::collection::vec(mood(), 5),
    ) -> Table {
        let rows = cells.into_iter().map(|row| row[..names.len()].to_vec());
        let rows: Vec<Vec<String>> = rows.collect();
        let moods: Vec<Mood> = moods[..rows.len()].to_vec();
        let column = |table: Table, (name, is_figure)| match is_figure {
            true => table.figures(name),
            false => table.words(name),
        };
        names.into_iter().fold(Table::new(caption), column).rows(rows).moods(moods)
    }
}

prop_compose! {
    fn page()(
        texts in prop::collection::vec(text(), 10),
        command in prop::option::of(text()),
        mood in mood(),
        tables in prop::collection::vec(table(), 1..3),
        values in prop::collection::vec(0.0_f64..1e6, 1..4),
    ) -> Page {
        let bar = |value: &f64| Bar {
            label: texts[0].clone(),
            figure: Figure { value: *value, interval: None },
            unit: "ns".to_owned(),
            cell: texts[1].clone(),
        };
        let bars = BarGroup { title: texts[2].clone(), bars: values.iter().map(bar).collect() };
        let mut panels: Vec<Panel> = tables.into_iter().map(Panel::table).collect();
        panels[0].chart = Some(Chart::Bars(vec![bars]));
        Page {
            title: texts[3].clone(),
            meta: texts[4].clone(),
            lead: vec![Lead { command, ..Lead::new(texts[5].clone(), texts[6].clone(), mood) }],
            tiles: vec![Tile { name: "tile", value: texts[7].clone(), detail: texts[8].clone() }],
            parts: vec![Part {
                title: texts[9].clone(),
                notes: vec![texts[0].clone()],
                panels,
                ..Part::default()
            }],
            ..Page::default()
        }
    }
}

/// Returns the names of the elements that are open at the end of HTML, which must be none.
fn left_open(html: &str) -> Vec<String> {
    const VOID: [&str; 5] = ["meta", "link", "br", "img", "input"];
    let mut open: Vec<String> = Vec::new();
    for tag in html.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag has an end");
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) => {
                let last = open.pop();
                assert_eq!(last.as_deref(), Some(name), "an element ends within another");
            }
            None if VOID.contains(&name) => {}
            None => open.push(name.to_owned()),
        }
    }
    open
}

/// Reads CSV back (RFC 4180).
fn fields(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = csv.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quoted) {
            ('"', true) if letters.peek() == Some(&'"') => {
                field.push('"');
                letters.next();
            }
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (letter, _) => field.push(letter),
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_terminal_gets_lines_that_fit_and_no_control_character(page in page()) {
        let text = page.terminal(Style::Plain);
        prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        // A command is never wrapped, so that it can be copied.
        let command = page.lead[0].command.as_ref().map(|command| format!("  {}", one(command)));
        let wide = |line: &&str| line.chars().count() > 80 && command.as_deref() != Some(*line);
        let wide: Vec<&str> = text.lines().filter(wide).collect();
        prop_assert!(wide.is_empty(), "{wide:?}");
    }

    #[test]
    fn no_text_adds_a_cell_or_a_row_to_a_table_of_markdown(table in table()) {
        let shown = Table { caption: String::new(), ..table.clone() };
        let part = Part { panels: vec![Panel::table(shown)], ..Part::default() };
        let markdown = Page { parts: vec![part], ..Page::default() }.markdown();
        let lines: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
        let expected = if table.rows.is_empty() { 0 } else { table.rows.len() + 2 };
        prop_assert_eq!(lines.len(), expected);
        for line in lines {
            let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
            prop_assert_eq!(bars, table.columns.len() + 1, "{}", line);
        }
    }

    #[test]
    fn no_text_opens_or_closes_an_element_of_html(page in page()) {
        let html = page.html();
        prop_assert_eq!(left_open(body(&html)), ["body", "main"]);
        let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        prop_assert!(!html.contains(is_odd), "a control character");
    }

    #[test]
    fn csv_reads_back_unchanged_except_formulas(
        rows in prop::collection::vec(prop::collection::vec(text(), 3), 0..5),
    ) {
        let csv = Rows::new("row").labels(["a", "b"]).texts(["c"]).rows(rows.clone()).csv();
        let read = fields(&csv);
        prop_assert_eq!(&read[0], &["a", "b", "c"]);
        prop_assert_eq!(read.len(), rows.len() + 1);
        for (read, written) in read[1..].iter().flatten().zip(rows.iter().flatten()) {
            prop_assert!(!read.starts_with(['=', '+', '-', '@']), "{read}");
            prop_assert!(read == written || read.strip_prefix('\'') == Some(written), "{read}");
        }
    }

    #[test]
    fn openmetrics_have_one_sample_a_line_whatever_the_labels(
        labels in prop::collection::vec(text(), 1..5),
    ) {
        let rows = labels.iter().map(|label| vec![Field::from(label.as_str()), 1.5.into()]);
        let metrics = Rows::new("row").labels(["name"]).values("ns", [("wait_ns", "the wait")]).rows(rows);
        let metrics = metrics.openmetrics().expect("values");
        let samples: Vec<&str> =
            metrics.split_terminator('\n').filter(|line| !line.starts_with('#')).collect();
        let different: std::collections::BTreeSet<&String> = labels.iter().collect();
        prop_assert_eq!(samples.len(), different.len(), "{}", metrics);
        for sample in samples {
            prop_assert!(sample.starts_with("numalab_row_wait_seconds{"), "{sample}");
            prop_assert!(sample.ends_with("} 0.0000000015"), "{sample}");
        }
    }
}

fn one(text: &str) -> String {
    numalab_page::one_line(text)
}
