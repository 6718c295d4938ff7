//! Anomalies of a run in words.

use numalab_page::number::{approximate_size, count, figure, ratio, share, size, trimmed};
use numalab_record::{Metric, is_shared};

use crate::run::{Oddity, Progress, RunFinding, Target};

/// Returns a finding as a sentence without its full stop.
pub(super) fn sentence(finding: &RunFinding) -> String {
    let cells = finding.evidence.len();
    match &finding.what {
        Oddity::Misplaced { workers, misplaced, pinned, on_node } => format!(
            "{misplaced} of {} were not where they should be: {pinned} pinned, {on_node} with all \
             memory on its node",
            count(*workers, "worker")
        ),
        Oddity::Unproven { cells } => {
            format!("{} with figures but without proof of placement", count(*cells, "cell"))
        }
        Oddity::Failed { planned, reason } => format!(
            "{cells} of {} could not be measured, the first `{}`: {reason}",
            count(*planned, "cell"),
            finding.evidence.first().map_or("", |cell| cell.0.as_str())
        ),
        Oddity::Unmeasured { planned } => {
            format!("the run ended early: {cells} of {} not measured", count(*planned, "cell"))
        }
        Oddity::HugePagesMissing { asked, missing } => format!(
            "huge pages are missing: {missing} of {} that requested them got smaller ones",
            count(*asked, "cell")
        ),
        Oddity::HugePagesSplit { lines, huge_ns, small_ns, walk_ns } => {
            let walk = walk_ns.map(|ns| format!("; random access costs {} ns more", figure(ns)));
            format!(
                "this guest's huge pages are backed by small ones on its host: over {lines} lines \
                 4K apart, translating an address takes {} ns, and {} ns on 4k pages{}",
                figure(*huge_ns),
                figure(*small_ns),
                walk.unwrap_or_default()
            )
        }
        Oddity::EmulatedTime { time } => {
            format!("time is {time}: this machine's memory is emulated")
        }
        Oddity::ClockNotInvariant => "the clock is not invariant: times may be off".to_owned(),
        Oddity::Disturbed { windows, disturbed } => {
            let share = share(*disturbed, *windows);
            let taken = count(*windows, "window");
            match is_shared(*windows, *disturbed) {
                true => format!(
                    "this machine is shared: other load disturbed {share} of {taken}; cells with \
                     few clean windows use all of theirs, and their intervals are wider"
                ),
                false => format!("{share} of {taken} were disturbed by other load"),
            }
        }
        Oddity::Bursty { cells: all, too_short } => format!(
            "bursty: in {cells} of {} windows come in bursts, and intervals are too short by \
             up to about {}",
            count(*all, "cell"),
            ratio(*too_short)
        ),
        Oddity::NotPrecise { planned, precision } => format!(
            "{cells} of {} had not reached {} % when the budget ended",
            count(*planned, "cell"),
            trimmed(precision * 100.0)
        ),
        machine => of_machine(machine),
    }
}

/// Describes anomalies of the machine rather than of the run.
fn of_machine(oddity: &Oddity) -> String {
    match oddity {
        Oddity::DistanceOrder { from, near, far, pairs } => {
            let one = |target: &Target| {
                let Target { node, distance, latency_ns } = target;
                format!("node {node} (distance {distance}) takes {} ns", figure(*latency_ns))
            };
            let more = if *pairs > 1 { format!(" ({pairs} such pairs)") } else { String::new() };
            format!(
                "distances are out of order: from node {from}, {} but {}{more}",
                one(near),
                one(far)
            )
        }
        Oddity::DistanceRatio { from, to, promised, measured } => format!(
            "the distance from node {from} to node {to} promises {}, but {} was measured",
            ratio(*promised),
            ratio(*measured)
        ),
        Oddity::SlowNode { node, metric, value, peers } => format!(
            "node {node} is slower than the other nodes: {} {}, theirs {}",
            figure(*value),
            match metric {
                Metric::Bandwidth => "GB/s from its own memory",
                _ => "ns to its own memory",
            },
            figure(*peers)
        ),
        Oddity::HiddenNodes { groups, cpus, within_ns, across_ns } => format!(
            "this guest sees one node, but its host seems to have {groups} nodes, or caches that \
             the guest cannot see: cpus {cpus} are {} ns from each other and {} ns from the rest \
             (round trip)",
            figure(*within_ns),
            figure(*across_ns)
        ),
        Oddity::CacheSize { level, found_bytes, reported_bytes } => format!(
            "L{level} ends at {}, the system reports {}",
            approximate_size(*found_bytes),
            size(*reported_bytes)
        ),
        Oddity::ChannelsEmpty { channels } => {
            format!("memory channels without a module: {channels}")
        }
        Oddity::ModulesSlow { modules } => {
            format!("memory modules run slower than they or the others could: {modules}")
        }
        // `sentence` describes those of the run.
        Oddity::Misplaced { .. }
        | Oddity::Unproven { .. }
        | Oddity::Failed { .. }
        | Oddity::Unmeasured { .. }
        | Oddity::HugePagesMissing { .. }
        | Oddity::HugePagesSplit { .. }
        | Oddity::EmulatedTime { .. }
        | Oddity::ClockNotInvariant
        | Oddity::Disturbed { .. }
        | Oddity::Bursty { .. }
        | Oddity::NotPrecise { .. } => String::new(),
    }
}

/// Returns the sentence for a run without anomalies.
pub(super) fn nothing_odd(progress: &Progress, precision: f64) -> String {
    format!(
        "No anomalies: {} within {} %, each proven in place, {} of windows disturbed.",
        count(progress.precise, "cell"),
        trimmed(precision * 100.0),
        share(progress.disturbed, progress.windows)
    )
}
