//! The pages in a real browser: headless Chromium.

use std::path::Path;
use std::process::Command;

use numalab_page::{Chart, IntervalRow, Mood, Page, Panel, Part, Table};
use numalab_results::Report;
use numalab_results::compare::{Tolerance, compare};
use numalab_results::run::Summary;
use numalab_results::scaling::ScalingSummary;
use numalab_results::study::StudySummary;

use crate::{comparison, runs, scaling, studies};

/// Collects errors from the start.
const EARS: &str = "<script>window.heard = [];\
    window.addEventListener('error', (e) => window.heard.push(String(e.message)), true);\
    document.addEventListener('securitypolicyviolation', (e) => \
    window.heard.push('blocked ' + e.blockedURI));</script>";

/// Reports the properties of the page to the frame around it: focuses the first mark of a chart
/// that has two, moves to the next with an arrow key, then measures.
const PROBE: &str = "<script>(() => {\
    const charts = [...document.querySelectorAll('[data-chart]')];\
    charts.forEach((chart) => { const part = chart.closest('details'); if (part) part.open = true; });\
    const marks = charts.map((chart) => chart.querySelectorAll('[data-tip]'))\
      .find((marks) => marks.length > 1) || [];\
    const tip = document.getElementById('tip');\
    let tips = 'none';\
    if (marks.length > 1) {\
      marks[0].focus();\
      const first = tip.hidden ? '' : tip.textContent;\
      marks[0].dispatchEvent(new KeyboardEvent('keydown', \
        { key: 'ArrowRight', bubbles: true, cancelable: true }));\
      const second = tip.hidden ? '' : tip.textContent;\
      const named = (mark, text) => text !== '' && mark.dataset.tip === text;\
      tips = named(marks[0], first) && named(marks[1], second) ? 'work' : 'broken';\
    }\
    const root = document.documentElement;\
    const wide = root.scrollWidth;\
    document.querySelectorAll('details').forEach((part) => { part.open = true; });\
    const clipped = [...document.querySelectorAll('.scroll')]\
      .filter((box) => box.scrollWidth > box.clientWidth + 1)\
      .map((box) => box.ariaLabel.replaceAll(' ', '-')).join('/');\
    const cut = [...document.querySelectorAll('figure.drawn')]\
      .filter((box) => box.scrollWidth > box.clientWidth + 1).length;\
    const loaded = performance.getEntriesByType('resource').length;\
    parent.postMessage(`PROBE inner=${innerWidth} scroll=${wide} \
      resources=${loaded} clipped=${clipped} cut=${cut} tips=${tips} errors=${window.heard.join('/')} END`\
      .replace(/ +/g, ' '), '*');\
    })();</script>";

/// Returns a frame of this width, because no window of Chromium is narrower than 500 pixels; what
/// the page inside reports becomes the frame's title.
fn frame(width: u32) -> String {
    format!(
        "<!DOCTYPE html><title>silent</title><script>\
         addEventListener('message', (e) => {{ document.title = e.data; }});</script>\
         <iframe src=\"page.html\" style=\"border:0;width:{width}px;height:1600px\"></iframe>"
    )
}

/// Returns the title that the page sets at `width`; prints a note and returns `None` without
/// Chromium, unless `NUMALAB_REQUIRE_TOOLS` is set.
fn title_at(page: &str, width: u32) -> Option<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = page.replacen("<head>", &format!("<head>{EARS}"), 1);
    let page = page.replacen("</body>", &format!("{PROBE}</body>"), 1);
    std::fs::write(directory.path().join("page.html"), page).expect("the page is written");
    let file = directory.path().join("frame.html");
    std::fs::write(&file, frame(width)).expect("the frame is written");
    let output = chromium(directory.path(), &file)?;
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once(" END</title>"));
    let Some((title, _)) = title else {
        panic!("the page said nothing: {dom}\n{}", String::from_utf8_lossy(&output.stderr));
    };
    Some(title.to_owned())
}

fn chromium(profile: &Path, file: &Path) -> Option<std::process::Output> {
    let output = Command::new("timeout")
        .args(["-k", "5", "60", "chromium"])
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--dump-dom"])
        .args(["--hide-scrollbars", "--window-size=1400,1700", "--virtual-time-budget=3000"])
        .arg(format!("--user-data-dir={}", profile.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output();
    // 127: `timeout` found no such command.
    match output {
        Ok(output) if output.status.code() != Some(127) => Some(output),
        missing => {
            let required = std::env::var("NUMALAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "chromium is required and missing: {missing:?}");
            eprintln!("NOT RUN: the pages were not opened in a browser: no chromium here");
            None
        }
    }
}

fn field<'a>(title: &'a str, name: &str) -> &'a str {
    let from = title.find(name).expect(name) + name.len();
    title[from..].split(' ').next().unwrap_or_default()
}

fn check(name: &str, page: &str, width: u32, has_charts: bool) {
    let Some(title) = title_at(page, width) else {
        return;
    };
    assert_eq!(field(&title, "inner="), width.to_string(), "{name}: {title}");
    assert_eq!(field(&title, "scroll="), width.to_string(), "{name} overflows: {title}");
    assert_eq!(field(&title, "resources="), "0", "{name}: {title}");
    let tips = if has_charts { "work" } else { "none" };
    assert_eq!(field(&title, "tips="), tips, "{name}: {title}");
    assert!(title.ends_with("errors="), "{name}: {title}");
}

#[test]
fn every_page_opens_without_error_and_fits_a_phone() {
    for (name, document) in runs::all() {
        let has_charts = !matches!(name, "empty" | "everything-failed");
        check(name, &Summary::of(&document).page().html(), 390, has_charts);
    }
}

#[test]
fn a_page_fits_a_desk_and_a_comparison_fits_a_phone() {
    let document = runs::eight_nodes();
    check("eight-nodes", &Summary::of(&document).page().html(), 1280, true);
    let (before, after) = (comparison::side(1, 3, "", 1.0), comparison::side(2, 3, "node1", 1.2));
    let page = compare(&before, &after, &Tolerance::default()).document().page().html();
    check("comparison", &page, 390, false);
    check("comparison", &page, 1280, false);
    if let Some(title) = title_at(&page, 1280) {
        assert_eq!(field(&title, "clipped="), "", "no table is wider than its room: {title}");
    }
}

/// Regression: a chart's last label and a table's last column were outside of their boxes.
#[test]
fn changes_are_whole_on_a_phone_and_tables_of_words_on_a_desk() {
    let row = |name: &str, percent: f64| IntervalRow {
        name: name.to_owned(),
        percent: Some(percent),
        interval: None,
        margin_percent: 2.0,
        verdict: format!("{percent} %"),
        mood: Mood::Plain,
        detail: name.to_owned(),
    };
    let rows = vec![row("Bind to node 0", -51.0), row("Interleave over nodes 0,1", -2.7)];
    let words =
        "latency of random reads at cpu0/node0/16M, by several nodes, written 50 %, one node";
    let table =
        Table::new("Outliers").words(["host", "where", "what"]).figures("score").words("figures");
    let cells = vec![
        "n07".to_owned(),
        words.to_owned(),
        words.to_owned(),
        "1".to_owned(),
        words.to_owned(),
    ];
    let panels = vec![
        Panel::drawn(Chart::Intervals(rows), Table::new("")),
        Panel::table(table.rows([cells])),
    ];
    let page = Page { parts: Part::of("Options", panels).into_iter().collect(), ..Page::default() };
    let seen =
        |width, name| title_at(&page.html(), width).map(|title| field(&title, name).to_owned());
    assert!(seen(390, "cut=").is_none_or(|cut| cut == "0"));
    assert!(seen(1200, "clipped=").is_none_or(|clipped| clipped.is_empty()));
}

#[test]
fn the_page_of_a_study_opens_without_error_and_fits_a_phone() {
    for (name, document) in studies::all() {
        check(name, &StudySummary::of(&document).page().html(), 390, name != "begun");
    }
}

#[test]
fn a_page_of_a_scaling_run_fits_a_phone_and_a_desk() {
    let run = scaling::with_contention();
    let page = ScalingSummary::of(&run).page().html();
    check("scaling", &page, 390, true);
    check("scaling", &page, 1280, true);
}

#[test]
fn no_page_names_anything_outside_itself() {
    for (name, document) in runs::all() {
        let page = Summary::of(&document).page().html().to_lowercase();
        for outside in ["http:", "https:", "//", "src=", "url(", "@import", "<link", "<iframe"] {
            // Comments of the script begin with two slashes and a space.
            let found = page
                .match_indices(outside)
                .find(|(at, _)| outside != "//" || !page[*at..].starts_with("// "));
            assert_eq!(found, None, "{name} has {outside}");
        }
        for (at, _) in page.match_indices("href=") {
            assert!(page[at..].starts_with("href=\"#"), "{name}: {}", &page[at..at + 40]);
        }
    }
}
