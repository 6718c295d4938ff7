//! `--format openmetrics` meets the requirements of monitoring systems, line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{prints_in, refuses};

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Splits `name="value",...} rest` into labels and rest.
fn labels(mut text: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return (found, rest);
        }
        let (name, rest) = text.split_once("=\"").expect("a label");
        assert!(is_name(name), "{name}");
        let (mut value, mut end, mut letters) = (String::new(), None, rest.char_indices());
        while let Some((at, c)) = letters.next() {
            match c {
                '\\' => match letters.next() {
                    Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                    Some((_, 'n')) => value.push('\n'),
                    other => panic!("escape {other:?} in {rest}"),
                },
                '"' => {
                    end = Some(at);
                    break;
                }
                c => value.push(c),
            }
        }
        assert!(found.insert(name.to_owned(), value).is_none(), "{name} twice");
        let rest = &rest[end.expect("an end") + 1..];
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// The labels and the value of each sample.
type Samples = Vec<(BTreeMap<String, String>, f64)>;

/// Reads an exposition as its specification says, and refuses what it does not allow; the
/// samples of each gauge by name.
fn read(text: &str) -> BTreeMap<String, Samples> {
    let body = text.strip_suffix("# EOF\n").expect("an end, and nothing behind it");
    let mut gauges: BTreeMap<String, Samples> = BTreeMap::new();
    let (mut seen, mut name) = (BTreeSet::new(), String::new());
    for line in body.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            name = of.strip_suffix(" gauge").expect("a gauge").to_owned();
            assert!(is_name(&name) && name.starts_with("numalab_"), "{name}");
            assert!(gauges.insert(name.clone(), Vec::new()).is_none(), "{name} twice");
        } else if let Some(of) = line.strip_prefix("# UNIT ") {
            let unit = of.strip_prefix(&format!("{name} ")).expect("behind its type");
            assert!(name.ends_with(&format!("_{unit}")) && gauges[&name].is_empty(), "{line}");
        } else if let Some(of) = line.strip_prefix("# HELP ") {
            assert!(of.starts_with(&format!("{name} ")) && gauges[&name].is_empty(), "{line}");
        } else {
            let rest = line.strip_prefix(&format!("{name}{{")).unwrap_or_else(|| panic!("{line}"));
            let (labels, value) = labels(rest);
            let value: f64 = value.trim_start().parse().expect("a number, and no time");
            assert!(value.is_finite() && seen.insert((name.clone(), labels.clone())), "{line}");
            gauges.get_mut(&name).expect("its type").push((labels, value));
        }
    }
    assert!(gauges.values().all(|samples| !samples.is_empty()), "{text}");
    gauges
}

#[test]
fn a_measurement_has_a_gauge_for_each_figure_in_base_units() {
    let place = tempfile::tempdir().expect("a directory");
    let arguments = ["measure", "--quick", "--budget", "1s", "--quiet", "-o", "results"];
    let text = prints_in(place.path(), &[&arguments[..], &["--format", "openmetrics"]].concat());
    let gauges = read(&text);
    let latency = &gauges["numalab_cell_latency_median_seconds"];
    assert!(latency.iter().all(|(_, seconds)| (1e-10..1e-4).contains(seconds)), "{text}");
    let labels = &latency.last().expect("a cell").0;
    assert!(labels.contains_key("size_bytes") && labels.contains_key("node"), "{labels:?}");
}

#[test]
fn where_memory_is_has_a_gauge_for_each_use() {
    let place = tempfile::tempdir().expect("a directory");
    let own = std::process::id().to_string();
    for arguments in [&["explore", "--interval", "1ms"][..], &["explore", "--pid", &own]] {
        let gauges =
            read(&prints_in(place.path(), &[arguments, &["--format", "openmetrics"]].concat()));
        assert!(gauges.keys().any(|name| name.ends_with("_bytes")), "{gauges:?}");
    }
    let text =
        prints_in(place.path(), &["explore", "--interval", "1ms", "--format", "openmetrics"]);
    let total = &read(&text)["numalab_node_total_bytes"];
    assert!(total.iter().any(|(labels, bytes)| labels.contains_key("node") && *bytes > 1e6));
}

#[test]
fn a_fleet_has_a_gauge_for_each_outlier_and_none_without() {
    let place = tempfile::tempdir().expect("a directory");
    let run = ["latency", "--size", "64K", "--budget", "1s", "--quiet", "-o", "new"];
    prints_in(place.path(), &run);
    let made = std::fs::read_dir(place.path().join("new")).expect("there").next().expect("a run");
    let host = place.path().join("fleet/hosts/one");
    std::fs::create_dir_all(&host).expect("made");
    std::fs::rename(made.expect("readable").path(), host.join("run")).expect("moved");
    prints_in(place.path(), &["fleet", "collect", "fleet", "--quiet"]);
    let text = prints_in(place.path(), &["fleet", "report", "fleet", "--format", "openmetrics"]);
    assert_eq!(text, "# EOF\n", "one host has no outliers");
}

#[test]
fn subjects_without_figures_are_refused() {
    let words = ["knobs", "list", "--format", "openmetrics"];
    refuses(&words, 2, &["expected text, json, csv, md or html"]);
}

/// Prometheus's own parser, and its rules for names, help and units, accept the output.
#[test]
fn promtool_finds_nothing_to_complain_of() {
    let place = tempfile::tempdir().expect("a directory");
    let run = ["latency", "--size", "64K,1M", "--budget", "5s", "--quiet"];
    let own = std::process::id().to_string();
    for arguments in [&run[..], &["explore", "--interval", "1ms"], &["explore", "--pid", &own]] {
        let arguments = [arguments, &["--format", "openmetrics"]].concat();
        let text = prints_in(place.path(), &arguments);
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("scripts/setup test installs prometheus");
        let mut input = promtool.stdin.take().expect("a pipe");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        let output = promtool.wait_with_output().expect("it ends");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
    }
}

/// Returns the gauges that a document names, with METRIC and UNIT as placeholders.
fn documented(text: &str) -> BTreeSet<String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !letter(c)).filter(|word| word.starts_with("numalab_"));
    words.map(str::to_owned).collect()
}

/// Checks a name against a pattern, where METRIC is any word and UNIT any or none.
fn fits(name: &str, pattern: &str) -> bool {
    let whole = pattern.strip_suffix("_UNIT").unwrap_or(pattern);
    let (begins, ends) = whole.split_once("METRIC").unwrap_or((whole, ""));
    let Some(rest) = name.strip_prefix(begins) else { return false };
    match (whole.contains("METRIC"), whole != pattern) {
        (true, true) => rest.contains(ends),
        (true, false) => rest.ends_with(ends),
        (false, true) => rest.is_empty() || rest.starts_with('_'),
        (false, false) => rest.is_empty(),
    }
}

/// `NUMALAB_SCHEMAS=write cargo test -p numalab --test commands openmetrics::` regenerates it.
#[test]
fn the_documentation_of_gauges_is_that_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = std::fs::read_to_string(&file).expect("there");
    let (introduction, _) = text.split_once("## `numalab ").expect("a section");
    let expected = format!("{introduction}{}", numalab_results::gauges::documentation());
    if std::env::var_os("NUMALAB_SCHEMAS").is_some_and(|value| value == "write") {
        std::fs::write(&file, &expected).expect("written");
    }
    let kept = std::fs::read_to_string(&file).expect("there");
    assert!(kept == expected, "docs/metrics.md is no longer as the code: NUMALAB_SCHEMAS=write");
}

#[test]
fn every_gauge_is_documented_and_the_dashboard_uses_only_such() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read_file = |path: &str| std::fs::read_to_string(root.join(path)).expect("there");
    let patterns = documented(&read_file("docs/metrics.md"));
    let place = tempfile::tempdir().expect("a directory");
    let own = std::process::id().to_string();
    let run = ["latency", "--size", "64K", "--budget", "1s", "--cpus", "0", "--quiet"];
    let c2c = ["c2c", "--pairs", "1", "--budget", "1s", "--quiet"];
    let nodes = ["explore", "--interval", "1ms"];
    let looks = [&run[..], &c2c, &nodes, &["explore", "--pid", &own], &["explore", "--guests"]];
    for arguments in looks {
        let text = prints_in(place.path(), &[arguments, &["--format", "openmetrics"]].concat());
        for name in read(&text).keys() {
            assert!(patterns.iter().any(|pattern| fits(name, pattern)), "{name} is not documented");
        }
    }
    for name in documented(&read_file("integrations/grafana/numalab.json")) {
        assert!(patterns.contains(&name), "{name} of the dashboard is no gauge");
    }
    assert!(!patterns.iter().any(|pattern| fits("numalab_node_made_up_bytes", pattern)));
}
