//! `perf bench` in its formats. Only some benchmarks support `-f simple`: sched and syscall print
//! seconds, mem prints bytes per second after a comment, futex and numa always print the same.

use numalab_record::study::{Quantity, Reading};

use super::{Parser, ToolEntry};
use crate::error::OutputError;
use crate::number;
use crate::option::option;

pub(super) const ENTRIES: &[ToolEntry] = &[
    ToolEntry {
        name: "perf-sched-pipe",
        summary: "two processes that wake each other through a pipe",
        command: &["perf", "bench", "-f", "simple", "sched", "pipe"],
        metrics: &["time-per-op"],
        parser: Parser { read: |words, of| operations(of.stdout, words, 1_000_000), ..OPERATIONS },
        ..PERF
    },
    ToolEntry {
        name: "perf-sched-messaging",
        summary: "groups of processes that send each other messages",
        command: &["perf", "bench", "-f", "simple", "sched", "messaging"],
        arguments: &["-l", "10000"],
        metrics: &["time"],
        ..PERF
    },
    ToolEntry {
        name: "perf-syscall-basic",
        summary: "getppid() calls",
        command: &["perf", "bench", "-f", "simple", "syscall", "basic"],
        metrics: &["time-per-op"],
        parser: Parser { read: |words, of| operations(of.stdout, words, 10_000_000), ..OPERATIONS },
        ..PERF
    },
    ToolEntry {
        name: "perf-mem-memset",
        summary: "memset throughput",
        command: &["perf", "bench", "-f", "simple", "mem", "memset"],
        arguments: &["-s", "4GB", "-l", "5", "-f", "default"],
        metrics: &["throughput"],
        parser: MEMORY,
        ..PERF
    },
    ToolEntry {
        name: "perf-mem-memcpy",
        summary: "memcpy throughput",
        command: &["perf", "bench", "-f", "simple", "mem", "memcpy"],
        arguments: &["-s", "1GB", "-l", "5", "-f", "default"],
        metrics: &["throughput"],
        parser: MEMORY,
        ..PERF
    },
    ToolEntry {
        name: "perf-futex-wake",
        summary: "waking threads one at a time",
        command: &["perf", "bench", "-f", "simple", "futex", "wake"],
        arguments: &["-s", "-t", "1024", "-w", "1"],
        metrics: &["time"],
        parser: Parser {
            read: |_, of| wakeups(of.stdout),
            metric: |name| (name == "time").then(|| Quantity::lower(name, "ms")),
        },
        ..PERF
    },
    ToolEntry {
        name: "perf-futex-hash",
        summary: "futex hash table operations",
        command: &["perf", "bench", "-f", "simple", "futex", "hash"],
        arguments: &["-s", "-r", "5"],
        metrics: &["rate"],
        parser: Parser {
            read: |_, of| average(of.stdout),
            metric: |name| (name == "rate").then(|| Quantity::higher(name, "ops/s")),
        },
        ..PERF
    },
    ToolEntry {
        name: "perf-numa-mem",
        summary: "processes and threads that work on shared and private memory",
        command: &["perf", "bench", "numa", "mem"],
        arguments: &["-p", "2", "-t", "2", "-P", "256", "-s", "5", "-zZ0q"],
        metrics: &["total-speed"],
        parser: Parser { read: |_, of| numa(of.stdout), metric: numa_metric },
        ..PERF
    },
];

/// The common fields of all benchmarks, and the parser of those that print seconds.
const PERF: ToolEntry = ToolEntry {
    timeout_s: 600,
    programs: &[("perf", "linux-perf", "--version")],
    ..ToolEntry::of(Parser {
        read: |_, of| Ok(vec![Quantity::lower("time", "s").at(seconds(of.stdout)?)]),
        metric: |name| (name == "time").then(|| Quantity::lower(name, "s")),
    })
};

/// Parser for benchmarks that print the seconds for a number of operations.
const OPERATIONS: Parser = Parser {
    metric: |name| match name {
        "time-per-op" => Some(Quantity::lower(name, "us")),
        _ => (PERF.parser.metric)(name),
    },
    ..PERF.parser
};

/// The parser of those that print bytes per second by function.
const MEMORY: Parser = Parser {
    read: |_, of| memory(of.stdout),
    metric: |name| {
        let known = name == "throughput" || name.starts_with("throughput ");
        known.then(|| Quantity::higher(name, "GB/s"))
    },
};

/// Returns the lines that are not comments.
fn content(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the seconds of `Total time: 0.705 [sec]`, or of a line with only the number.
fn seconds(text: &str) -> Result<f64, OutputError> {
    let labelled = content(text).find_map(|line| line.strip_prefix("Total time:"));
    if let Some(rest) = labelled {
        return Ok(number::first("total time", rest)?.0);
    }
    let lines: Vec<&str> = content(text).collect();
    match lines[..] {
        [line] => number::whole("total time", line),
        [] => Err(OutputError::missing("total time", "seconds such as 0.705", text)),
        _ => Err(OutputError::Several { what: "total time".to_owned(), count: lines.len() }),
    }
}

/// Returns the readings of seconds for the number of operations in the arguments, or the `usual`
/// number.
fn operations(text: &str, arguments: &[String], usual: u64) -> Result<Vec<Reading>, OutputError> {
    let given = option(arguments, &["-l", "--loop"]).and_then(|text| text.parse().ok());
    let count = given.unwrap_or(usual);
    let seconds = seconds(text)?;
    let printed = content(text).find_map(|line| line.strip_suffix("usecs/op"));
    #[expect(clippy::cast_precision_loss, reason = "counts of operations are far below 2^53")]
    let count = count as f64;
    let each_us = match printed {
        Some(value) => number::whole("usecs/op", value)?,
        None if count > 0.0 => seconds * 1e6 / count,
        None => return Err(OutputError::missing("operations", "-l with 1 or more", text)),
    };
    Ok(vec![
        Quantity::lower("time-per-op", "us").at(each_us),
        Quantity::lower("time", "s").at(seconds),
    ])
}

/// Parses `# function 'default' (...)`, then `2557270978.712864` bytes per second in the simple
/// format and `4.669591 GB/sec` in the other, where a GB is 2^30 bytes.
fn memory(text: &str) -> Result<Vec<Reading>, OutputError> {
    let mut readings = Vec::new();
    let mut function = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("# function '") {
            function = rest.split('\'').next();
        } else if !line.is_empty() && !line.starts_with('#') {
            let (value, unit) = number::first("throughput", line)?;
            let bytes = value * bytes_of(&unit).ok_or_else(|| unknown_unit(line))?;
            let name = match function.take() {
                None | Some("default") => "throughput".to_owned(),
                Some(function) => format!("throughput {function}"),
            };
            readings.push(Quantity::higher(name, "GB/s").at(bytes / 1e9));
        }
    }
    if readings.is_empty() {
        return Err(OutputError::missing("throughput", "bytes per second, or 4.6 GB/sec", text));
    }
    Ok(readings)
}

fn bytes_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "B/sec" => 1.0,
        "KB/sec" => 1024.0,
        "MB/sec" => 1024.0 * 1024.0,
        "GB/sec" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

fn unknown_unit(line: &str) -> OutputError {
    OutputError::NoNumber { what: "throughput".to_owned(), text: line.to_owned() }
}

/// Parses `Wokeup 64 of 64 threads in 0.7931 ms (+-9.68%)`, the line for all runs after those for
/// each run; `Requeued ...`, and `Avg per-thread latency (...) in 0.0244 ms`.
fn wakeups(text: &str) -> Result<Vec<Reading>, OutputError> {
    const BEGINNINGS: [&str; 3] = ["Wokeup ", "Requeued ", "Avg per-thread latency "];
    let is_result = |line: &&str| BEGINNINGS.iter().any(|words| line.starts_with(words));
    let line = content(text).filter(is_result).last();
    let rest = line.and_then(|line| line.rsplit_once(" in ")).map(|(_, rest)| rest);
    let rest = rest.ok_or_else(|| {
        OutputError::missing("time of waking", "Wokeup 64 of 64 threads in 0.7931 ms", text)
    })?;
    let (value, unit) = number::first("time of waking", rest)?;
    if !unit.starts_with("ms") {
        return Err(OutputError::NoNumber {
            what: "the time of waking in ms".to_owned(),
            text: rest.to_owned(),
        });
    }
    Ok(vec![Quantity::lower("time", "ms").at(value)])
}

/// Parses `Averaged 1370624 operations/sec (+- 5.42%), total secs = 2`.
fn average(text: &str) -> Result<Vec<Reading>, OutputError> {
    let rest = content(text).find_map(|line| line.strip_prefix("Averaged ")).ok_or_else(|| {
        OutputError::missing("operations/sec", "Averaged 1370624 operations/sec", text)
    })?;
    let (value, _) = number::first("operations/sec", rest)?;
    Ok(vec![Quantity::higher("rate", "ops/s").at(value)])
}

/// Names of the values of `numa mem`: with `-q` after the value, otherwise after the unit.
const NUMA: [(&str, &str, &str, &str); 5] = [
    ("total-speed", "total-speed", "GB/sec total speed", "GB/s"),
    ("thread-speed", "thread-speed", "GB/sec/thread speed", "GB/s"),
    ("runtime-max", "runtime-max/thread", "secs slowest (max) thread-runtime", "s"),
    ("runtime-avg", "runtime-avg/thread", "secs average thread-runtime", "s"),
    ("convergence", "NUMA-convergence-latency", "secs latency to NUMA-converge", "s"),
];

fn numa_figure(name: &str, unit: &str) -> Quantity {
    match unit {
        "s" => Quantity::lower(name, unit),
        _ => Quantity::higher(name, unit),
    }
}

fn numa_metric(name: &str) -> Option<Quantity> {
    let figure = NUMA.iter().find(|(known, ..)| *known == name);
    figure.map(|(name, _, _, unit)| numa_figure(name, unit))
}

fn numa(text: &str) -> Result<Vec<Reading>, OutputError> {
    if let Some(line) = text.lines().find(|line| line.starts_with("Test not applicable")) {
        return Err(OutputError::NotApplicable { reason: line.trim().to_owned() });
    }
    let mut readings = Vec::new();
    for (name, field, words, unit) in NUMA {
        let Some(value) = content(text).find_map(|line| numa_value(line, field, words)) else {
            continue;
        };
        let metric = numa_figure(name, unit);
        readings.push(metric.at(number::whole(name, value)?));
    }
    if !readings.iter().any(|reading| reading.quantity.metric == "total-speed") {
        return Err(OutputError::missing("total speed", "4.177, GB/sec, total-speed", text));
    }
    Ok(readings)
}

fn numa_value<'a>(line: &'a str, field: &str, words: &str) -> Option<&'a str> {
    let mut columns = line.split(',').map(str::trim);
    if let (Some("main"), Some(value), Some(_), Some(name)) =
        (columns.next(), columns.next(), columns.next(), columns.next())
    {
        return (name == field).then_some(value);
    }
    line.strip_suffix(words).map(str::trim)
}
