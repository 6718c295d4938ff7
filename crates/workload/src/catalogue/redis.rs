//! `redis-benchmark --csv` on a server of its own.

use numalab_record::study::{Quantity, Reading};

use super::{Entry, Parser, strings};
use crate::command::Service;
use crate::error::OutputError;
use crate::number;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "redis",
        summary: "redis-benchmark on a redis-server of its own",
        command: &["redis-benchmark", "-s", "{scratch}/redis.sock", "--csv"],
        arguments: &["-n", "200000", "-c", "10", "-r", "100000", "-d", "64", "-t", "set,get"],
        metrics: &["SET rps", "GET rps"],
        ..REDIS
    },
    Entry {
        name: "redis-hot",
        summary: "redis: most reads of few keys, which were stored last",
        command: &["sh", "-euc", HOT, "redis-hot", "{scratch}/redis.sock"],
        arguments: &["keys=100000", "bytes=1024", "hot=2000", "share=90", "requests=200000"],
        metrics: &["FCALL rps"],
        ..REDIS
    },
];

/// What both have alike.
const REDIS: Entry = Entry {
    name: "",
    summary: "",
    command: &[],
    arguments: &[],
    end: &[],
    metrics: &[],
    timeout_s: 300,
    programs: &[
        ("redis-server", "redis-server", "--version"),
        ("redis-benchmark", "redis-tools", "--version"),
        ("redis-cli", "redis-tools", "--version"),
    ],
    service: Some(server),
    parser: Parser { read: |_, finished| parse(finished.stdout), metric },
};

/// Stores `keys` values of `bytes`, those of the `hot` keys last, then reads them `requests`
/// times, `share` of 100 reads among the hot ones. redis-benchmark draws numbers that are all
/// alike; which key a number stands for is said by a function in the server.
const HOT: &str = include_str!("redis_hot.sh");

/// A socket needs no free port; nothing is saved.
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

/// The columns that are read, as the header names them; the first is the test's name.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("rps", "rps", "requests/s"),
    ("avg_latency_ms", "latency-avg", "ms"),
    ("p50_latency_ms", "latency-p50", "ms"),
    ("p99_latency_ms", "latency-p99", "ms"),
];

/// The readings of a table with a header; a row's metrics are named `GET rps`,
/// `MSET latency-p99`.
fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    let expected = "a header \"test\",\"rps\",...";
    let mut rows = text.lines().filter(|line| line.starts_with('"')).map(cells);
    let header = rows.next().ok_or_else(|| OutputError::missing("table", expected, text))?;
    let mut readings = Vec::new();
    for row in rows {
        let test = row.first().copied().unwrap_or_default();
        // `MSET (10 keys)` is MSET to those who name metrics; a command of one's own, which is
        // there with all its words, is its first.
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

/// The cells of a row; all of them are quoted, and no name holds a quote.
fn cells(row: &str) -> Vec<&str> {
    row.trim().split(',').map(|cell| cell.trim_matches('"')).collect()
}
