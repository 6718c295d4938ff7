use super::*;
use crate::terminal::Style;

fn page() -> Page {
    let table = Table::new("latency & <ranks>")
        .words("mode")
        .figures("ns")
        .rows([vec!["a|b".to_owned(), "12".to_owned()]])
        .moods([Mood::Bad]);
    let series = |name: &str, factor: f64| Series {
        name: name.to_owned(),
        points: (1..=8).map(|x| (f64::from(x), factor * f64::from(x))).collect(),
    };
    let curves = Curves {
        x_name: "ranks".to_owned(),
        x_is_logarithmic: false,
        y_name: "ns per load".to_owned(),
        series: vec![series("sequential", 10.0), series("interleaved", 5.0)],
    };
    let part = Part::of("Curves", vec![Panel::drawn(Chart::Curves(curves), table)]);
    Page {
        brand: "numalab".to_owned(),
        title: "A page".to_owned(),
        meta: "job 1".to_owned(),
        lead: vec![Lead::new("Most", "it is <so>", Mood::Odd)],
        parts: part.map(|part| part.noted(vec!["a note".to_owned()])).into_iter().collect(),
        ..Page::default()
    }
}

#[test]
fn every_format_has_the_sentences_the_notes_and_the_figures() {
    let page = page();
    let (text, markdown, html) = (page.terminal(Style::Plain), page.markdown(), page.html());
    assert!(text.contains("it is <so>") && text.contains("a note") && text.contains("▁"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(markdown.contains("| a\\|b | 🔴 12 |"), "{markdown}");
    assert!(html.contains("it is &lt;so&gt;") && html.contains("sequential"), "{html}");
    assert!(html.contains("<td class=\"mood-bad\">12</td>"), "{html}");
    assert_eq!(html.matches("class=\"curve c").count(), 2);
    assert!(!html.contains("<so>"));
}

#[test]
fn a_terminal_leaves_out_background_and_takes_the_narrower_table() {
    let mut page = page();
    let narrow = Table::new("narrow").words("mode").rows([vec!["only this".to_owned()]]);
    page.parts[0].panels[0].terminal = Terminal::Instead(vec![narrow]);
    let text = page.terminal(Style::Plain);
    assert!(text.contains("only this") && !text.contains("a|b"), "{text}");
    page.parts[0].weight = Weight::Background;
    assert!(!page.terminal(Style::Plain).contains("a note"));
    assert!(page.markdown().contains("a note") && !page.markdown().contains("only this"));
}

#[test]
fn evidence_is_folded_and_each_caption_appears_once() {
    let mut page = page();
    page.parts[0].panels[0].chart = None;
    page.parts[0].panels[0].folded = true;
    let html = page.html();
    assert!(html.contains("<details><summary>latency &amp; &lt;ranks&gt;</summary>"), "{html}");
    assert_eq!(page.markdown().matches("latency &amp; &lt;ranks&gt;").count(), 1);
}
