//! The figures of a run in JSON are those on its page.

use numalab_record::{Document, Metric};
use numalab_results::Report;
use numalab_results::run::{Remote, Summary};
use serde_json::Value;

use crate::runs;

fn results(document: &Document) -> Value {
    let json = Summary::of(document).json().expect("it serialises");
    let mut json: Value = serde_json::from_str(&json).expect("it is JSON");
    json["results"].take()
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn every_cell_has_its_median_interval_and_windows() {
    let document = runs::one_node();
    let summary = Summary::of(&document);
    let results = results(&document);
    let found = list(&results, "cells");
    let mut found = found.iter();
    for cell in &summary.cells {
        for metric in Metric::ALL {
            let Some(figure) = cell.figure(metric) else { continue };
            let value = found.next().expect("an entry for each cell and metric");
            assert_eq!(value["cell"], cell.cell.id.0.as_str());
            assert_eq!(value["metric"], metric.name());
            assert_eq!(value["median"], figure.median, "{value}");
            assert_eq!(value["unit"], metric.unit().symbol());
            let interval = figure.interval.map(|interval| (interval.lo, interval.hi));
            assert_eq!(value["low"].as_f64().zip(value["high"].as_f64()), interval, "{value}");
            assert!(value["windows"].as_u64() >= Some(1));
        }
    }
    assert!(found.next().is_none());
}

#[test]
fn a_cell_that_failed_has_no_figures() {
    let document = runs::everything_failed();
    assert_eq!(list(&results(&document), "cells"), [Value::Null; 0]);
}

#[test]
fn curves_have_their_levels_with_capacity_and_latency() {
    let results = results(&runs::one_node());
    let levels = list(&list(&results, "latency_by_size")[0], "levels");
    let names: Vec<&str> = levels.iter().filter_map(|level| level["name"].as_str()).collect();
    assert_eq!(names, ["L1", "L2", "L3", "memory"]);
    assert!(levels[0]["capacity_bytes"].is_number() && levels[3]["capacity_bytes"].is_null());
    let memory = levels[3]["latency_ns"].as_f64().expect("a latency");
    assert!((memory / 98.0 - 1.0).abs() < 0.02, "{memory}");
    let walks = list(&results, "page_walks");
    assert_eq!(walks.len(), 2, "{walks:?}");
}

#[test]
fn matrices_are_rows_of_numbers_and_remote_pairs_have_their_ratio() {
    let document = runs::eight_nodes();
    let summary = Summary::of(&document);
    let results = results(&document);
    let found = &list(&results, "latency_matrices")[0]["by_node"];
    let matrix = &summary.matrices[0].by_node;
    assert_eq!((&found["rows_are"], &found["unit"]), (&"node".into(), &"ns".into()));
    for (row, values) in matrix.entries.iter().zip(list(found, "values")) {
        for (entry, value) in row.iter().zip(values.as_array().expect("a row")) {
            assert_eq!(value.as_f64(), entry.as_ref().map(|entry| entry.value));
        }
    }
    let remote = list(&results, "remote");
    assert_eq!(remote.len(), 56, "each of eight nodes to seven others");
    let Remote::Measured(cost) = &summary.remote else { panic!("{:?}", summary.remote) };
    let ratios: Vec<f64> = cost.pairs.iter().map(|pair| pair.ratio).collect();
    let found: Vec<f64> = remote.iter().filter_map(|pair| pair["ratio"].as_f64()).collect();
    assert_eq!(found, ratios);
}
