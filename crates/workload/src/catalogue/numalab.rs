//! The output of numalab's own measuring commands with `--format json`.

use numalab_record::study::{Quantity, Reading};
use numalab_record::tiering::TierLook;

use numalab_record::{Document, Kind, Metric as Measured};
use numalab_stats::Sample;

use super::{Parser, ToolEntry};
use crate::command::NUMALAB;
use crate::error::OutputError;
use crate::json;

pub(super) const ENTRIES: &[ToolEntry] = &[
    ToolEntry {
        name: "latency",
        summary: "numalab's chase: latency of dependent loads",
        command: &[NUMALAB, "latency", "--format", "json", "--quiet"],
        arguments: &["--size", "256M", "--pages", "4k", "--per", "node"],
        ..OWN
    },
    ToolEntry {
        name: "bandwidth",
        summary: "numalab's streams: bytes per second",
        command: &[NUMALAB, "bandwidth", "--format", "json", "--quiet"],
        arguments: &["--kernel", "read"],
        ..OWN
    },
    ToolEntry {
        name: "balancing-probe",
        summary: "memory on one node, its threads on another: does the kernel move it?",
        command: &[NUMALAB, "study", "probe", "balancing", "--format", "json"],
        metrics: &["latency-end"],
        ..OWN
    },
    ToolEntry {
        name: "tiering-probe",
        summary: "partly hot memory: does the kernel move the hot part to the fast tier?",
        command: &[NUMALAB, "study", "probe", "tiering", "--format", "json"],
        metrics: &["latency-end"],
        ..OWN
    },
];

const OWN: ToolEntry = ToolEntry::of(Parser { read: |_, finished| parse(finished.stdout), metric });

/// Parses `latency`, or `latency` and a cell, as in documents; a probe's metrics have their own
/// names.
fn metric(name: &str) -> Option<Quantity> {
    let first = name.split(' ').next().unwrap_or(name);
    if let Some(measured) = Measured::from_name(first) {
        return Some(measured.quantity(name));
    }
    match name {
        "latency-begin" | "latency-end" => Some(Quantity::lower(name, "ns")),
        "latency" | "predicted" => Some(Quantity::lower(name, "ns")),
        "local" | "fast-accesses" | "hot-fast" => Some(Quantity::higher(name, "%")),
        "promoted" => Some(Quantity::higher(name, "pages")),
        "demoted" | "failed" => Some(Quantity::lower(name, "pages")),
        _ => None,
    }
}

/// Returns the readings of a document: the median of each cell's windows by metric, with the metric
/// as name and, if several cells have it, the cell.
///
/// Only undisturbed windows count, or all of them if there are none.
fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    let value = json::document(text)?;
    let probe = value.get("readings").cloned();
    if let Some(readings) = probe {
        return serde_json::from_value(readings).map_err(unreadable);
    }
    let document: Document =
        Kind::Run.read(text).map_err(|error| OutputError::NoJson { reason: error.to_string() })?;
    let readings: Vec<Reading> =
        Measured::ALL.into_iter().flat_map(|measured| readings_of(&document, measured)).collect();
    if readings.is_empty() {
        return Err(OutputError::missing("samples", "a run with at least one sample", text));
    }
    Ok(readings)
}

fn readings_of(document: &Document, measured: Measured) -> Vec<Reading> {
    let medians: Vec<(String, f64)> = document
        .cells
        .iter()
        .filter_map(|result| {
            let mut values = result.values(measured);
            if values.is_empty() {
                let all = result.samples.iter().filter(|sample| sample.metric == measured);
                values = all.map(|sample| sample.value).collect();
            }
            Some((result.cell.id.to_string(), Sample::new(values).ok()?.median()))
        })
        .collect();
    let alone = medians.len() == 1;
    let name = |cell: String| {
        if alone { measured.name().to_owned() } else { format!("{} {cell}", measured.name()) }
    };
    medians.into_iter().map(|(cell, median)| measured.quantity(name(cell)).at(median)).collect()
}

/// Returns the places of the pages of a probe of memory tiers, from its output; empty for any other
/// output.
pub fn tier_looks(stdout: &str) -> Vec<TierLook> {
    let document = json::document(stdout).ok();
    let document = document.filter(|value| value["schema"] == Kind::Tiering.schema());
    let looks = document.and_then(|mut value| serde_json::from_value(value["looks"].take()).ok());
    looks.unwrap_or_default()
}

fn unreadable(error: serde_json::Error) -> OutputError {
    OutputError::NoJson { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_read_only_from_a_probe_of_tiers() {
        let look =
            r#"{"at_ns":5,"latency_ns":300.0,"fast_pages":1,"slow_pages":2,"marked_pages":0}"#;
        let document = |schema: &str| format!(r#"{{"schema":"{schema}","looks":[{look}]}}"#);
        let looks = tier_looks(&document(Kind::Tiering.schema()));
        assert_eq!((looks[0].at_ns, looks[0].fast_pages, looks.len()), (5, 1, 1));
        for other in [document("numalab/run-2"), "[1]".to_owned(), "text".to_owned()] {
            assert_eq!(tier_looks(&other), [], "{other}");
        }
    }
}
