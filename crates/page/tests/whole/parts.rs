//! All parts of a page except charts.

use insta::assert_snapshot;
use numalab_page::{Lead, Mood, Page, Panel, Part, Style, Table, Terminal, Tile, Weight, one_line};

use crate::shown::{body, every_format};

fn table(rows: u32) -> Table {
    let row = |at: u32| vec![format!("cell {at}"), format!("{}.5", at * 3)];
    Table::new("cells").words("cell").figures("ns").rows((0..rows).map(row))
}

fn page() -> Page {
    let long = "a sentence that is longer than a line of a terminal, which has eighty columns, is \
                wrapped and indented";
    let leads = [
        Lead::new("Plain", "a fact.", Mood::Plain),
        Lead::new("Better", "it is faster.", Mood::Good),
        Lead::new("Worse", long, Mood::Bad),
        Lead::new("Worse", "the same subject again.", Mood::Bad),
        Lead::new("Fine", "nothing changed.", Mood::Fine),
        Lead {
            command: Some("echo 'a & b' > \u{1b}/sys".to_owned()),
            ..Lead::new("Odd", "look at <it>.", Mood::Odd)
        },
    ];
    let moods = table(2).words("verdict").moods([Mood::Good, Mood::Bad]);
    let moods = Table {
        rows: vec![
            vec!["a".to_owned(), "1".to_owned(), "better".to_owned()],
            vec!["b|c".to_owned(), "2".to_owned(), "worse".to_owned()],
        ],
        ..moods
    };
    Page {
        brand: "numalab test".to_owned(),
        title: "Everything & <more>".to_owned(),
        meta: "host a · 2026".to_owned(),
        lead: leads.to_vec(),
        picture: Some(Panel::table(table(1))),
        tiles: vec![
            Tile { name: "local", value: "92 ns".to_owned(), detail: "node 0 → 0".to_owned() },
            Tile { name: "remote", value: "141 ns".to_owned(), detail: "<worst>".to_owned() },
        ],
        note: Some("first line\nsecond *line*\n".to_owned()),
        parts: vec![
            Part {
                title: "A part".to_owned(),
                command: Some("numalab latency --size 1M".to_owned()),
                notes: vec!["a note".to_owned(), long.to_owned()],
                listing: Some("verbatim   <text>\n```\nend\u{7}".to_owned()),
                panels: vec![Panel::table(moods)],
                weight: Weight::Result,
            },
            Part {
                title: "Background".to_owned(),
                panels: vec![Panel::table(table(2)).folded()],
                weight: Weight::Background,
                ..Part::default()
            },
        ],
        ..Page::default()
    }
}

#[test]
fn every_element_of_a_page_is_in_every_format() {
    assert_snapshot!(every_format(&page()));
}

#[test]
fn colours_follow_the_mood_on_a_terminal_that_wants_them() {
    assert_snapshot!(page().terminal(Style::Colour).replace('\u{1b}', "␛"));
}

#[test]
fn colours_are_all_that_they_add() {
    let mut plain = String::new();
    let coloured = page().terminal(Style::Colour);
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').expect("the end of a colour").1;
    }
    plain.push_str(rest);
    assert_eq!(plain, page().terminal(Style::Plain));
}

fn of_panel(panel: Panel) -> Page {
    Page { parts: Part::of("Part", vec![panel]).into_iter().collect(), ..Page::default() }
}

#[test]
fn a_terminal_shows_the_first_rows_of_a_long_table_unless_it_can_scroll() {
    let mut page = of_panel(Panel::table(table(27)));
    let text = page.terminal(Style::Plain);
    assert!(text.contains("cell 23") && !text.contains("cell 24"), "{text}");
    assert!(text.ends_with("… and 3 more rows\n"), "{text}");
    page.whole = true;
    let text = page.terminal(Style::Plain);
    assert!(text.contains("cell 26") && !text.contains("more row"), "{text}");
}

#[test]
fn html_folds_a_table_that_fills_the_screen() {
    let folds = |rows| body(&of_panel(Panel::table(table(rows))).html()).contains("<details");
    assert_eq!([folds(30), folds(31)], [false, true]);
}

#[test]
fn each_choice_for_a_terminal_leaves_the_other_formats_unchanged() {
    let panel = || Panel::table(table(1));
    let narrow = Table::new("narrow").words("only").rows([vec!["this".to_owned()]]);
    let choices =
        [Terminal::Both, Terminal::Chart, Terminal::Nothing, Terminal::Instead(vec![narrow])];
    let pages = choices.map(|choice| of_panel(panel().on_terminal(choice)));
    let text = pages.each_ref().map(|page| page.terminal(Style::Plain));
    assert!(text[0].contains("cell 0") && !text[1].contains("cell 0"), "{text:?}");
    assert!(text[1].contains("cells") && !text[2].contains("cells"), "{text:?}");
    assert!(text[3].contains("narrow") && !text[3].contains("cell 0"), "{text:?}");
    for page in &pages {
        assert_eq!((page.markdown(), page.html()), (pages[0].markdown(), pages[0].html()));
    }
}

#[test]
fn parts_without_figures_are_left_out() {
    assert_eq!(Part::of("Empty", vec![Panel::table(Table::new("no rows").words("a"))]), None);
    let both = Part::of("One", vec![Panel::table(table(0)), Panel::table(table(1))]);
    assert_eq!(both.expect("one has rows").panels.len(), 1);
}

#[test]
fn an_empty_page_has_its_frame() {
    assert_snapshot!(every_format(&Page { title: "Nothing".to_owned(), ..Page::default() }));
}

#[test]
fn columns_of_dashes_are_removed_with_their_cells() {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let table = Table::new("t").words("a").figures("b").figures("c");
    let table = table.rows([row(["x", "–", "1"]), row(["y", "", "–"])]).without_empty_columns();
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((names, &table.rows[1]), (vec!["a", "c"], &vec!["y".to_owned(), "–".to_owned()]));
}

#[test]
fn control_characters_of_names_are_dots() {
    assert_eq!(one_line("a\tb\nc\u{1b}[2Jd\u{85}é"), "a·b·c·[2Jd·é");
}
