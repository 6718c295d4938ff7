//! `sysbench`: a report of `label: value` lines. Which of them are there depends on the
//! test: mutex has only times, `--memory-oper=none` transfers nothing, and the label of
//! the percentile follows `--percentile`.

use crate::error::OutputError;
use crate::metric::{Metric, Reading};
use crate::number;

/// The readings in a report.
pub(crate) fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    if let Some(line) = text.lines().find(|line| line.starts_with("FATAL: ")) {
        return Err(OutputError::NotApplicable { reason: line.trim().to_owned() });
    }
    let time = value(text, "total time:")?;
    let events = value(text, "total number of events:")?;
    let mut readings =
        vec![Metric::lower("time", "s").at(time), Metric::higher("events", "events").at(events)];
    if let Some(rest) = labelled(text, "events per second:") {
        let rate = number::whole("events per second", rest)?;
        readings.push(Metric::higher("events-per-second", "events/s").at(rate));
    } else if time > 0.0 {
        readings.push(Metric::higher("events-per-second", "events/s").at(events / time));
    }
    readings.extend(memory(text)?);
    readings.extend(file_operations(text)?);
    readings.extend(latency(text)?);
    Ok(readings)
}

/// What follows the first line's label.
fn labelled<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label))
}

/// The number behind a label that every report has; a unit may follow, as in `3.0105s`.
fn value(text: &str, label: &'static str) -> Result<f64, OutputError> {
    let rest = labelled(text, label).ok_or_else(|| {
        OutputError::missing(label.trim_end_matches(':'), "a finished report of sysbench", text)
    })?;
    Ok(number::first(label, rest)?.0)
}

/// `Total operations: 512 ( 3948.27 per second)` and
/// `1024.00 MiB transferred (7896.54 MiB/sec)`.
fn memory(text: &str) -> Result<Vec<Reading>, OutputError> {
    let mut readings = Vec::new();
    if let Some(rest) = labelled(text, "Total operations:").and_then(parenthesis) {
        let (value, _) = number::first("operations per second", rest)?;
        readings.push(Metric::higher("operations", "ops/s").at(value));
    }
    let transferred = text.lines().find(|line| line.contains(" MiB transferred ("));
    if let Some(rest) = transferred.and_then(parenthesis) {
        let (value, _) = number::first("throughput", rest)?;
        readings.push(Metric::higher("throughput", "MiB/s").at(value));
    }
    Ok(readings)
}

fn parenthesis(line: &str) -> Option<&str> {
    Some(line.split_once('(')?.1)
}

fn file_operations(text: &str) -> Result<Vec<Reading>, OutputError> {
    const LABELS: [(&str, &str, &str); 5] = [
        ("reads/s:", "reads", "ops/s"),
        ("writes/s:", "writes", "ops/s"),
        ("fsyncs/s:", "fsyncs", "ops/s"),
        ("read, MiB/s:", "read", "MiB/s"),
        ("written, MiB/s:", "written", "MiB/s"),
    ];
    let found = LABELS.iter().filter_map(|&(label, name, unit)| {
        let rest = labelled(text, label)?;
        Some(number::whole(name, rest).map(|value| Metric::higher(name, unit).at(value)))
    });
    found.collect()
}

/// `avg:`, `max:` and `95th percentile:` below `Latency (ms):`.
fn latency(text: &str) -> Result<Vec<Reading>, OutputError> {
    let lines = text.lines().skip_while(|line| !line.starts_with("Latency (ms):")).skip(1);
    let mut readings = Vec::new();
    for line in lines.take_while(|line| !line.trim().is_empty()) {
        let Some((label, rest)) = line.trim().split_once(':') else { continue };
        let name = match label.strip_suffix("th percentile") {
            Some(percent) => format!("latency-p{percent}"),
            None if ["avg", "max", "min"].contains(&label) => format!("latency-{label}"),
            None => continue,
        };
        let value = number::whole(&name, rest)?;
        readings.push(Metric::lower(name, "ms").at(value));
    }
    Ok(readings)
}
