//! Pages without private strings.

use numalab_page::{Lead, Mood, Page, Panel, Part, Private, Style, Table, Tile, is_private_path};

fn page() -> Page {
    let secret = "/home/jane/solver";
    let table = Table::new(format!("regions of {secret}"))
        .words(format!("at {secret}"))
        .rows([vec![format!("{secret}:12")]]);
    let private = |what, text: &str| Private { what, text: text.to_owned() };
    Page {
        title: format!("Run of {secret}"),
        meta: "host node17".to_owned(),
        lead: vec![Lead::new("Program", format!("{secret} is slow on node17"), Mood::Odd)],
        tiles: vec![Tile {
            name: "time",
            value: "3 s".to_owned(),
            detail: format!("{secret} ran"),
        }],
        note: Some(format!("ran {secret}")),
        parts: vec![Part {
            title: "Command".to_owned(),
            command: Some(format!("{secret} --input x")),
            notes: vec![format!("by {secret}")],
            listing: Some(format!("0-1000 {secret}")),
            panels: vec![Panel::table(table)],
            ..Part::default()
        }],
        private: vec![private("path", secret), private("host", "node17")],
        ..Page::default()
    }
}

#[test]
fn a_redacted_page_has_no_private_text_in_any_format() {
    let shown = |page: &Page| [page.terminal(Style::Plain), page.markdown(), page.html()];
    let has = |texts: &[String; 3]| {
        texts.each_ref().map(|text| text.contains("jane") || text.contains("node17"))
    };
    assert_eq!(has(&shown(&page())), [true; 3]);
    let redacted = page().redacted();
    assert_eq!(has(&shown(&redacted)), [false; 3], "{redacted:?}");
}

#[test]
fn the_same_text_has_the_same_name_everywhere_and_another_one_another() {
    let one = page().redacted();
    assert_eq!(one, page().redacted());
    let word = |text: &str, at: usize| text.split(' ').nth(at).expect("a word").to_owned();
    let sentence = "left out, hash PATH is slow on left out, hash HOST";
    let (path, host) = (word(&one.lead[0].sentence, 3), word(&one.lead[0].sentence, 10));
    assert_eq!(one.lead[0].sentence, sentence.replace("PATH", &path).replace("HOST", &host));
    assert_eq!(path, word(&one.tiles[0].detail, 3));
    assert_eq!(host, word(&one.meta, 4));
    assert_ne!(path, host);
}

#[test]
fn paths_of_the_system_are_not_private() {
    for path in ["/home/jane/a", "/scratch/project/a.out"] {
        assert!(is_private_path(path), "{path}");
    }
    for path in ["/usr/lib/libc.so.6", "[heap]"] {
        assert!(!is_private_path(path), "{path}");
    }
}
