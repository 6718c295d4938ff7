//! `sysbench`: a report of `label: value` lines. The labels depend on the test: mutex has only
//! times, `--memory-oper=none` transfers nothing, and the label of the percentile follows
//! `--percentile`.

use numalab_record::study::{Quantity, Reading};

use super::{Parser, ToolEntry};
use crate::error::OutputError;
use crate::need::KernelNeed;
use crate::number;
use crate::option::option;

const HUGE_PAGE_BYTES: u64 = 2 << 20;

// The test's name comes first, then its options, then `run`.
pub(super) const ENTRIES: &[ToolEntry] = &[
    ToolEntry {
        name: "sysbench-cpu",
        summary: "prime numbers",
        command: &["sysbench", "cpu"],
        arguments: &["--time=10", "--threads=4", "--cpu-max-prime=10000"],
        metrics: &["events-per-second"],
        ..SYSBENCH
    },
    ToolEntry {
        name: "sysbench-memory",
        summary: "writes to or reads from memory, block by block",
        command: &["sysbench", "memory"],
        arguments: &["--memory-access-mode=rnd", "--threads=4"],
        metrics: &["throughput"],
        ..SYSBENCH
    },
    ToolEntry {
        name: "sysbench-threads",
        summary: "threads that lock and yield",
        command: &["sysbench", "threads"],
        arguments: &["--threads=4"],
        metrics: &["events-per-second"],
        ..SYSBENCH
    },
    ToolEntry {
        name: "sysbench-mutex",
        summary: "threads that lock mutexes",
        command: &["sysbench", "mutex"],
        arguments: &["--mutex-num=1", "--threads=32"],
        metrics: &["time"],
        ..SYSBENCH
    },
];

/// The common fields of all tools.
const SYSBENCH: ToolEntry = ToolEntry {
    end: &["run"],
    timeout_s: 600,
    programs: &[("sysbench", "sysbench", "--version")],
    ..ToolEntry::of(Parser { read: |_, finished| parse(finished.stdout), metric })
};

fn metric(name: &str) -> Option<Quantity> {
    Some(match name {
        "time" => Quantity::lower(name, "s"),
        "events" => Quantity::higher(name, "events"),
        "events-per-second" => Quantity::higher(name, "events/s"),
        "operations" | "reads" | "writes" | "fsyncs" => Quantity::higher(name, "ops/s"),
        "throughput" | "read" | "written" => Quantity::higher(name, "MiB/s"),
        _ if name.starts_with("latency-") => Quantity::lower(name, "ms"),
        _ => return None,
    })
}

/// Returns the requirements on the kernel and the machine.
pub(super) fn kernel_needs(command: &[String]) -> Vec<KernelNeed> {
    let pages = sysbench_huge_pages(command);
    let need = |pages| KernelNeed::HugePages { page_kib: HUGE_PAGE_BYTES >> 10, pages };
    pages.map(need).into_iter().collect()
}

/// Returns the number of huge pages that `--memory-hugetlb=on` takes: for a buffer, sysbench
/// allocates one byte less than two pages more than its block (6,291,455 bytes for 2 MiB), which
/// the kernel rounds up. There is one buffer for all threads, or one for each.
fn sysbench_huge_pages(command: &[String]) -> Option<u64> {
    if command.first().map(String::as_str) != Some("sysbench") {
        return None;
    }
    let is_on =
        |word: &&String| matches!(word.as_str(), "--memory-hugetlb" | "--memory-hugetlb=on");
    command.iter().find(is_on)?;
    let block = option(command, &["--memory-block-size"]).and_then(bytes).unwrap_or(1 << 10);
    let threads = option(command, &["--threads"]).and_then(|text| text.parse().ok());
    let buffers = match option(command, &["--memory-scope"]) {
        Some("local") => threads.unwrap_or(1),
        _ => 1,
    };
    let each = block.saturating_add(2 * HUGE_PAGE_BYTES - 1).div_ceil(HUGE_PAGE_BYTES);
    Some(each.saturating_mul(buffers))
}

/// Returns the bytes of a size in sysbench's notation, such as `2M`.
fn bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    if let Some(line) = text.lines().find(|line| line.starts_with("FATAL: ")) {
        return Err(OutputError::NotApplicable { reason: line.trim().to_owned() });
    }
    let time = value(text, "total time:")?;
    let events = value(text, "total number of events:")?;
    let mut readings = vec![
        Quantity::lower("time", "s").at(time),
        Quantity::higher("events", "events").at(events),
    ];
    if let Some(rest) = labelled(text, "events per second:") {
        let rate = number::whole("events per second", rest)?;
        readings.push(Quantity::higher("events-per-second", "events/s").at(rate));
    } else if time > 0.0 {
        readings.push(Quantity::higher("events-per-second", "events/s").at(events / time));
    }
    readings.extend(memory(text)?);
    readings.extend(file_operations(text)?);
    readings.extend(latency(text)?);
    Ok(readings)
}

/// Returns the text after the label of the first line that has it.
fn labelled<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label))
}

/// Returns the number after a label that every report has; a unit may follow, as in `3.0105s`.
fn value(text: &str, label: &'static str) -> Result<f64, OutputError> {
    let rest = labelled(text, label).ok_or_else(|| {
        OutputError::missing(label.trim_end_matches(':'), "a finished report of sysbench", text)
    })?;
    Ok(number::first(label, rest)?.0)
}

/// Parses `Total operations: 512 ( 3948.27 per second)` and `1024.00 MiB transferred (7896.54
/// MiB/sec)`.
fn memory(text: &str) -> Result<Vec<Reading>, OutputError> {
    let mut readings = Vec::new();
    if let Some(rest) = labelled(text, "Total operations:").and_then(parenthesis) {
        let (value, _) = number::first("operations per second", rest)?;
        readings.push(Quantity::higher("operations", "ops/s").at(value));
    }
    let transferred = text.lines().find(|line| line.contains(" MiB transferred ("));
    if let Some(rest) = transferred.and_then(parenthesis) {
        let (value, _) = number::first("throughput", rest)?;
        readings.push(Quantity::higher("throughput", "MiB/s").at(value));
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
        Some(number::whole(name, rest).map(|value| Quantity::higher(name, unit).at(value)))
    });
    found.collect()
}

/// Parses `avg:`, `max:` and `95th percentile:` below `Latency (ms):`.
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
        readings.push(Quantity::lower(name, "ms").at(value));
    }
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn huge_pages_are_counted_as_sysbench_allocates_them() {
        let pages = |text: &str| sysbench_huge_pages(&words(text));
        assert_eq!(
            pages("sysbench memory --memory-hugetlb=on --memory-block-size=2M run"),
            Some(3)
        );
        assert_eq!(pages("sysbench memory --memory-hugetlb=on run"), Some(3));
        let local = "sysbench memory --memory-hugetlb --memory-scope=local --threads=4 run";
        assert_eq!(pages(local), Some(12));
        assert_eq!(pages("sysbench memory --memory-hugetlb=off run"), None);
        assert_eq!(pages("stress-ng --memory-hugetlb=on"), None);
    }
}
