//! The three sentences at the top of a run's page.

use numalab_page::number::{approximate_size, figure, ratio, size};

use super::oddity;
use crate::label::{self, listed};
use crate::run::{Curve, LatencyMatrix, Level, LevelName, Remote, RemoteCost, Summary};

/// Maximum number of anomalies named in the sentence; the rest are counted.
const NAMED_ODDITIES: usize = 2;

/// Returns sentences on remote access, on caches and on anomalies.
pub(super) fn sentences(summary: &Summary<'_>) -> [String; 3] {
    [remote_sentence(summary), cache_sentence(summary), odd_sentence(summary)]
}

fn remote_sentence(summary: &Summary<'_>) -> String {
    match (&summary.remote, summary.matrices.first()) {
        (Remote::Measured(_), Some(matrix)) if summary.may_be_cached(matrix.size_bytes) => {
            format!(
                "The cost of a remote access is not shown: {} may fit in the caches. Use a larger \
                 --size.",
                size(matrix.size_bytes)
            )
        }
        (Remote::Measured(cost), Some(matrix)) => {
            let cost = remote_cost(cost, matrix);
            let bytes = size(matrix.size_bytes);
            match summary.is_emulated() && summary.cached_bytes().is_none() {
                true => format!("{cost} An emulated cache of {bytes} or more would hide it."),
                false => cost,
            }
        }
        (Remote::OneNode, _) => {
            let local = local_text(summary);
            // A hypervisor can spread a guest over several host nodes while showing it one.
            if summary.run.environment.fact("hypervisor").is_some() {
                return format!(
                    "This guest sees one memory node, which may hide several of its host's{local}."
                );
            }
            // Firmware that interleaves memory can hide nodes as well, and so can the kernel's
            // option numa=off.
            match summary.run.machine.packages().len() {
                0 | 1 => {
                    format!("This machine has one memory node, so no access is remote{local}.")
                }
                packages => format!(
                    "The memory of {packages} packages is shown as one node, so some accesses may be \
                     remote{local}."
                ),
            }
        }
        _ => {
            let forbidden = summary.run.machine.forbidden_local_nodes();
            let why = match forbidden.is_empty() {
                true => "this run does not compare nodes' memory".to_owned(),
                false => format!(
                    "memory of node {forbidden}, local to its cpus, is not allowed for this process"
                ),
            };
            format!("The cost of a remote access was not measured: {why}.")
        }
    }
}

fn remote_cost(cost: &RemoteCost, matrix: &LatencyMatrix) -> String {
    let Some((nearest, farthest)) = cost.extremes() else {
        return String::new();
    };
    let range = |low: String, high: String| {
        if low == high { low } else { format!("{low} to {high}") }
    };
    let latencies = cost.pairs.iter().map(|pair| pair.latency_ns);
    let lowest = latencies.clone().fold(f64::INFINITY, f64::min);
    let highest = latencies.fold(f64::NEG_INFINITY, f64::max);
    format!(
        "A remote access costs {} times a local one: {} ns against {} ns ({} over {}, {} pages, \
         slowest from node {} to node {}).",
        range(figure(nearest.ratio), figure(farthest.ratio)),
        range(figure(lowest), figure(highest)),
        figure(cost.local_ns),
        matrix.pattern,
        size(matrix.size_bytes),
        matrix.pages.name(),
        farthest.from,
        farthest.to
    )
}

/// Returns the local latency of a one-node machine, from the matrix or the curve.
fn local_text(summary: &Summary<'_>) -> String {
    if let Some(matrix) = summary.matrices.first() {
        if summary.may_be_cached(matrix.size_bytes) {
            return format!(
                "; {} may fit in the caches, so memory latency is not shown",
                size(matrix.size_bytes)
            );
        }
        let range = matrix.by_cpu.range();
        let text = range.map(|range| match (figure(range.lo), figure(range.hi)) {
            (low, high) if low == high => low,
            (low, high) => format!("{low} to {high}"),
        });
        return text.map_or_else(String::new, |text| {
            format!(
                "; an access to it takes {text} ns ({} over {}, {} pages)",
                matrix.pattern,
                size(matrix.size_bytes),
                matrix.pages.name()
            )
        });
    }
    let memory = summary.curves.first().and_then(|curve| {
        let last = curve.levels.last()?;
        (last.name == LevelName::Memory).then_some(last.latency_ns)
    });
    memory.map_or_else(String::new, |ns| format!("; an access to it takes {} ns", figure(ns)))
}

fn cache_sentence(summary: &Summary<'_>) -> String {
    let Some(curve) = summary.curves.first() else {
        let why = match summary.progress.unmeasured > 0 {
            true => "the run ended before its sweep over sizes",
            false => "this run has no sweep over sizes",
        };
        return format!("Cache sizes were not measured: {why}.");
    };
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else {
        return String::new();
    };
    let swept = format!(
        "{} on {} pages, {} to {}, {}",
        curve.pattern,
        curve.pages.name(),
        size(first.size_bytes),
        size(last.size_bytes),
        label::worker(curve.worker)
    );
    let ends: Vec<String> = curve.levels.iter().filter_map(end_text).collect();
    let before_last = curve.levels.split_last().map_or(&[][..], |(_, before)| before);
    let unended: Vec<String> = before_last.iter().filter_map(unended_text).collect();
    let open = if unended.is_empty() { String::new() } else { unended.join("; ") + "; " };
    let (beyond, lost) = (beyond_text(curve), lost_text(curve));
    match ends.len() {
        0 if open.is_empty() && is_sparse(curve) => {
            format!("These sizes are too far apart to show where caches end ({swept}).")
        }
        0 if open.is_empty() => format!("No cache end was found ({swept}).{lost}"),
        0 => format!("No cache end was found; {open}{beyond} ({swept}).{lost}"),
        1 => format!("The one cache end found is at {}; {open}{beyond} ({swept}).{lost}", ends[0]),
        _ => format!("The caches end at {}; {open}{beyond} ({swept}).{lost}", listed(&ends)),
    }
}

/// Returns true if no two sizes are an octave or less apart, as those of a plateau are.
fn is_sparse(curve: &Curve) -> bool {
    curve.points.windows(2).all(|pair| pair[1].size_bytes > 2 * pair[0].size_bytes)
}

/// Describes a cache before the last level if its end is unknown.
fn unended_text(level: &Level) -> Option<String> {
    let LevelName::Cache(_) = level.name else { return None };
    let (name, latency) = (level.name, figure(level.latency_ns));
    match level.capacity_bytes {
        Some(_) => None,
        None if level.at_most => Some(format!("{name} shows no plateau, at most {latency} ns")),
        None => Some(format!(
            "{name} takes {} ns up to {} at least",
            latencies(level, figure),
            size(level.to_bytes)
        )),
    }
}

/// Names the caches that the system reports and the sweep does not find.
fn lost_text(curve: &Curve) -> String {
    let lost: Vec<String> = curve
        .not_found
        .iter()
        .map(|(level, bytes)| format!("L{level} (reported at {})", size(*bytes)))
        .collect();
    let verb = if lost.len() == 1 { "was" } else { "were" };
    if lost.is_empty() { String::new() } else { format!(" {} {verb} not found.", listed(&lost)) }
}

fn end_text(level: &Level) -> Option<String> {
    if matches!(level.name, LevelName::Tlb(_)) {
        return None;
    }
    let capacity = approximate_size(level.capacity_bytes?);
    Some(format!("{capacity} ({}, {} ns)", level.name, latencies(level, figure)))
}

/// Returns the latency of a level, or its bound, or that of its fastest and of its slowest part.
pub(super) fn latencies(level: &Level, text: impl Fn(f64) -> String) -> String {
    let latencies = [Some(level.latency_ns), level.slowest_ns].into_iter().flatten();
    let text = latencies.map(text).collect::<Vec<_>>().join(" to ");
    if level.at_most { format!("≤ {text}") } else { text }
}

fn beyond_text(curve: &Curve) -> String {
    match (curve.levels.last(), curve.points.last()) {
        (Some(last), _) if last.name == LevelName::Memory => {
            format!("memory takes {} ns", figure(last.latency_ns))
        }
        (Some(last), Some(largest)) if last.to_bytes < largest.size_bytes => format!(
            "{} takes {} ns up to {} at least; the largest size takes {} ns, and one size alone \
             does not show the latency of memory",
            last.name,
            figure(last.latency_ns),
            size(last.to_bytes),
            figure(largest.figure.median)
        ),
        (Some(last), _) => format!(
            "the sweep ended at {} ns, possibly before it reached memory",
            figure(last.latency_ns)
        ),
        _ => "nothing is known beyond that".to_owned(),
    }
}

fn odd_sentence(summary: &Summary<'_>) -> String {
    if summary.progress.planned == 0 {
        return "Nothing was planned, so nothing was measured.".to_owned();
    }
    if summary.findings.is_empty() {
        return oddity::nothing_odd(&summary.progress, summary.run.precision);
    }
    let named: Vec<String> =
        summary.findings.iter().take(NAMED_ODDITIES).map(oddity::sentence).collect();
    let more = match summary.findings.len() - named.len() {
        0 => String::new(),
        more => format!("; {more} more below"),
    };
    format!("Unexpected: {}{more}.", named.join("; "))
}

/// Returns nanoseconds as core cycles, if the clock is known.
pub(super) fn cycles(ns: f64, clock_ghz: Option<f64>) -> String {
    clock_ghz.map_or_else(|| "–".to_owned(), |ghz| figure(ns * ghz))
}

/// Returns ratio and latency of the farthest node, for a tile.
pub(super) fn remote_tile(cost: &RemoteCost) -> Option<(String, String)> {
    let (_, farthest) = cost.extremes()?;
    let detail = format!(
        "{} ns, node {} → node {}",
        figure(farthest.latency_ns),
        farthest.from,
        farthest.to
    );
    Some((ratio(farthest.ratio), detail))
}
