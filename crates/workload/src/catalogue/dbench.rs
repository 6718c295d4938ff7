//! `dbench`: one relevant line, among progress and stray lines.

use numalab_record::study::{Quantity, Reading};

use super::{Parser, ToolEntry};
use crate::error::OutputError;
use crate::number;

pub(super) const ENTRIES: &[ToolEntry] = &[ToolEntry {
    name: "dbench",
    summary: "file server load",
    command: &["dbench", "-D", "{scratch}"],
    arguments: &["-t", "10", "4"],
    metrics: &["throughput"],
    programs: &[("dbench", "dbench", "--help")],
    ..ToolEntry::of(Parser { read: |_, finished| parse(finished.stdout), metric })
}];

fn metric(name: &str) -> Option<Quantity> {
    Some(match name {
        "throughput" => Quantity::higher(name, "MB/s"),
        "latency-max" => Quantity::lower(name, "ms"),
        _ => return None,
    })
}

/// Returns the readings of `Throughput 410.682 MB/sec  4 clients  4 procs  max_latency=111.172 ms`.
fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    let line = text.lines().find_map(|line| line.strip_prefix("Throughput "));
    let line = line.ok_or_else(|| {
        OutputError::missing("throughput", "Throughput 410.682 MB/sec  4 clients", text)
    })?;
    let (throughput, rest) = number::first("throughput", line)?;
    if !rest.starts_with("MB/sec") {
        let text = line.to_owned();
        return Err(OutputError::NoNumber { what: "MB/sec of throughput".to_owned(), text });
    }
    let mut readings = vec![Quantity::higher("throughput", "MB/s").at(throughput)];
    if let Some((_, latency)) = rest.split_once("max_latency=") {
        let (value, _) = number::first("max_latency", latency)?;
        readings.push(Quantity::lower("latency-max", "ms").at(value));
    }
    Ok(readings)
}
