//! `redis-benchmark --csv`.

use crate::error::OutputError;
use crate::metric::{Metric, Reading};
use crate::number;

/// The columns that are read, as the header names them; the first is the test's name.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("rps", "rps", "requests/s"),
    ("avg_latency_ms", "latency-avg", "ms"),
    ("p50_latency_ms", "latency-p50", "ms"),
    ("p99_latency_ms", "latency-p99", "ms"),
];

/// The readings of a table with a header; a row's metrics are named `GET rps`,
/// `MSET latency-p99`.
pub(crate) fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    let expected = "a header \"test\",\"rps\",...";
    let mut rows = text.lines().filter(|line| line.starts_with('"')).map(cells);
    let header = rows.next().ok_or_else(|| OutputError::missing("table", expected, text))?;
    let mut readings = Vec::new();
    for row in rows {
        let test = row.first().copied().unwrap_or_default();
        // `MSET (10 keys)` is MSET to those who name metrics.
        let test = test.split(" (").next().unwrap_or(test);
        for (column, name, unit) in COLUMNS {
            let Some(index) = header.iter().position(|title| *title == column) else { continue };
            let name = format!("{test} {name}");
            let value = number::whole(&name, row.get(index).copied().unwrap_or_default())?;
            let metric = match unit {
                "ms" => Metric::lower(name, unit),
                _ => Metric::higher(name, unit),
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
