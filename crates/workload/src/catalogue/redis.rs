//! `redis-benchmark --csv` on a private server.

use numalab_record::study::{Quantity, Reading};

use super::{Parser, ToolEntry, strings};
use crate::command::Service;
use crate::error::OutputError;
use crate::number;

pub(super) const ENTRIES: &[ToolEntry] = &[
    ToolEntry {
        name: "redis",
        summary: "redis-benchmark on a private redis-server",
        command: &["redis-benchmark", "-s", "{scratch}/redis.sock", "--csv"],
        arguments: &["-n", "200000", "-c", "10", "-r", "100000", "-d", "64", "-t", "set,get"],
        metrics: &["SET rps", "GET rps"],
        ..REDIS
    },
    ToolEntry {
        name: "redis-hot",
        summary: "redis: most reads go to few keys, which were stored last",
        command: &["sh", "-euc", HOT, "redis-hot", "{scratch}/redis.sock"],
        arguments: &["keys=100000", "bytes=1024", "hot=2000", "share=90", "requests=200000"],
        metrics: &["FCALL rps"],
        ..REDIS
    },
];

const REDIS: ToolEntry = ToolEntry {
    programs: &[
        ("redis-server", "redis-server", "--version"),
        ("redis-benchmark", "redis-tools", "--version"),
        ("redis-cli", "redis-tools", "--version"),
    ],
    service: Some(server),
    ..ToolEntry::of(Parser { read: |_, finished| parse(finished.stdout), metric })
};

/// Stores `keys` values of `bytes`, the `hot` keys last, then reads them `requests` times, with
/// `share` of 100 reads among the hot ones. redis-benchmark draws uniform numbers; a function in
/// the server maps them to keys.
const HOT: &str = include_str!("redis_hot.sh");

/// Returns the service of the server. A socket needs no free port; nothing is saved.
fn server() -> Service {
    const SERVER: [&str; 9] = [
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        "{scratch}/redis.sock",
        "--dir",
        "{scratch}",
        "--save",
        "",
    ];
    const READY: [&str; 5] = ["redis-cli", "-e", "-s", "{scratch}/redis.sock", "ping"];
    Service { command: strings(&SERVER), ready: strings(&READY), ready_within_s: 60 }
}

fn metric(name: &str) -> Option<Quantity> {
    match name.split_once(' ')?.1 {
        "rps" => Some(Quantity::higher(name, "requests/s")),
        column if column.starts_with("latency-") => Some(Quantity::lower(name, "ms")),
        _ => None,
    }
}

/// The columns that are read, with their names in the header; the first column is the test's name.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("rps", "rps", "requests/s"),
    ("avg_latency_ms", "latency-avg", "ms"),
    ("p50_latency_ms", "latency-p50", "ms"),
    ("p99_latency_ms", "latency-p99", "ms"),
];

/// Returns the readings of a table with a header; the metrics of a row have names such as `GET
/// rps`, `MSET latency-p99`.
fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    let expected = "a header \"test\",\"rps\",...";
    let mut rows = text.lines().filter(|line| line.starts_with('"')).map(cells);
    let header = rows.next().ok_or_else(|| OutputError::missing("table", expected, text))?;
    let mut readings = Vec::new();
    for row in rows {
        let test = row.first().copied().unwrap_or_default();
        // The row `MSET (10 keys)` has metrics of the name MSET; a custom command, which is printed
        // with all its words, has the name of its first word.
        let test = test.split(' ').next().unwrap_or(test).to_uppercase();
        for (column, name, unit) in COLUMNS {
            let Some(index) = header.iter().position(|title| *title == column) else { continue };
            let name = format!("{test} {name}");
            let value = number::whole(&name, row.get(index).copied().unwrap_or_default())?;
            let metric = match unit {
                "ms" => Quantity::lower(name, unit),
                _ => Quantity::higher(name, unit),
            };
            readings.push(metric.at(value));
        }
    }
    if readings.is_empty() {
        return Err(OutputError::missing("rows", "a row such as \"GET\",\"92165.90\",...", text));
    }
    Ok(readings)
}

/// Returns the cells of a row; all of them are quoted, and no name contains a quote.
fn cells(row: &str) -> Vec<&str> {
    row.trim().split(',').map(|cell| cell.trim_matches('"')).collect()
}
