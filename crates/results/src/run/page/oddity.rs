//! Anomalies of a run in words.

use numalab_page::number::{approximate_size, count, figure, ratio, share, size, trimmed};
use numalab_record::{Metric, is_shared};
use numalab_topology::NodeId;

use crate::run::{Oddity, Progress, RunFinding, Target};

/// Returns a finding as a sentence without its full stop.
pub(crate) fn sentence(finding: &RunFinding) -> String {
    let cells = finding.evidence.len();
    let of = |all: usize| format!("{cells} of {}", count(all, "cell"));
    match &finding.what {
        Oddity::Misplaced { workers, misplaced, pinned, on_node } => format!(
            "{misplaced} of {} were not where they should be: {pinned} pinned, {on_node} with all \
             memory on its node",
            count(*workers, "worker")
        ),
        Oddity::Unproven { cells } => {
            format!("{} with figures but without proof of placement", count(*cells, "cell"))
        }
        Oddity::Failed { planned, reason } => failed(finding, &of(*planned), reason),
        Oddity::Unmeasured { planned } => {
            format!("the run ended early: {} not measured", of(*planned))
        }
        Oddity::HugePagesMissing { asked, missing } => format!(
            "huge pages are missing: {missing} of {} that requested them got smaller ones",
            count(*asked, "cell")
        ),
        Oddity::HugePagesSplit { lines, huge_ns, small_ns, walk_ns } => {
            split_pages(*lines, [*huge_ns, *small_ns], *walk_ns)
        }
        Oddity::EmulatedTime { time } => {
            format!("time is {time}: this machine's memory is emulated")
        }
        Oddity::ClockNotInvariant => "the clock is not invariant: times may be off".to_owned(),
        Oddity::CpuQuota { cpus, usable, windows, disturbed } => {
            quota(*cpus, *usable, [*disturbed, *windows])
        }
        Oddity::Disturbed { windows, disturbed } => disturbances(*windows, *disturbed),
        Oddity::Bursty { cells: all, too_short } => bursts(&of(*all), *too_short),
        Oddity::NotPrecise { planned, precision } => {
            let (cells, percent) = (of(*planned), trimmed(precision * 100.0));
            format!("{cells} had not reached {percent} % when the budget ended")
        }
        Oddity::DistanceOrder { from, near, far, pairs } => order(*from, [near, far], *pairs),
        Oddity::DistanceRatio { from, to, promised, measured } => {
            distance_ratio([*from, *to], [*promised, *measured])
        }
        Oddity::SlowNode { node, metric, value, peers } => {
            slow_node(*node, *metric, [*value, *peers])
        }
        Oddity::HiddenNodes { groups, cpus, within_ns, across_ns } => {
            hidden_nodes(*groups, cpus, [*within_ns, *across_ns])
        }
        Oddity::SharedCacheFar { pairs, one_way_ns, cache_ns, is_guest } => {
            far_in_cache(*pairs, [*one_way_ns, *cache_ns], *is_guest)
        }
        Oddity::CacheSize { level, found_bytes, reported_bytes } => {
            let (found, reported) = (approximate_size(*found_bytes), size(*reported_bytes));
            format!("L{level} ends at {found}, the system reports {reported}")
        }
        Oddity::ChannelsEmpty { channels } => {
            format!("memory channels without a module: {channels}")
        }
        Oddity::ModulesSlow { modules } => {
            format!("memory modules run slower than they or the others could: {modules}")
        }
    }
}

fn failed(finding: &RunFinding, cells: &str, reason: &str) -> String {
    let first = finding.evidence.first().map_or("", |cell| cell.0.as_str());
    format!("{cells} could not be measured, the first `{first}`: {reason}")
}

fn bursts(cells: &str, too_short: f64) -> String {
    format!(
        "windows come in bursts in {cells}: intervals are too narrow, by up to about {}",
        ratio(too_short)
    )
}

fn split_pages(lines: u64, [huge_ns, small_ns]: [f64; 2], walk_ns: Option<f64>) -> String {
    let walk = walk_ns.map(|ns| format!("; random access costs {} ns more", figure(ns)));
    format!(
        "this guest's huge pages are backed by small ones on its host: over {lines} lines 4K apart, \
         translating an address takes {} ns, and {} ns on 4k pages{}",
        figure(huge_ns),
        figure(small_ns),
        walk.unwrap_or_default()
    )
}

fn quota(cpus: f64, usable: usize, [disturbed, windows]: [usize; 2]) -> String {
    let effect = match disturbed {
        0 => "no window was disturbed".to_owned(),
        _ => format!(
            "{} of {} were disturbed by that or by other load",
            share(disturbed, windows),
            count(windows, "window")
        ),
    };
    format!(
        "a control group allows the time of {} of {}: the kernel stops threads that use more; {effect}",
        figure(cpus),
        count(usable, "cpu")
    )
}

fn disturbances(windows: usize, disturbed: usize) -> String {
    let (share, taken) = (share(disturbed, windows), count(windows, "window"));
    match is_shared(windows, disturbed) {
        true => format!(
            "this machine is shared: other load disturbed {share} of {taken}; cells with few \
             undisturbed windows use all their windows, and their intervals are wider"
        ),
        false => format!("{share} of {taken} were disturbed by other load"),
    }
}

fn order(from: NodeId, targets: [&Target; 2], pairs: usize) -> String {
    let [near, far] = targets.map(|Target { node, distance, latency_ns }| {
        format!("node {node} (distance {distance}) takes {} ns", figure(*latency_ns))
    });
    let more = if pairs > 1 { format!(" ({pairs} such pairs)") } else { String::new() };
    format!("distances are out of order: from node {from}, {near} but {far}{more}")
}

fn distance_ratio([from, to]: [NodeId; 2], ratios: [f64; 2]) -> String {
    let [promised, measured] = ratios.map(ratio);
    format!(
        "the distance from node {from} to node {to} implies {promised}, but {measured} was measured"
    )
}

fn slow_node(node: NodeId, metric: Metric, values: [f64; 2]) -> String {
    let [value, peers] = values.map(figure);
    let unit = match metric {
        Metric::Bandwidth => "GB/s from its own memory",
        _ => "ns to its own memory",
    };
    format!("node {node} is slower than the other nodes: {value} {unit}, theirs {peers}")
}

fn hidden_nodes(groups: usize, cpus: &str, [within_ns, across_ns]: [f64; 2]) -> String {
    format!(
        "this guest sees one node, but its host seems to have {groups} nodes, or caches that the \
         guest cannot see: cpus {cpus} are {} ns from each other and {} ns from the rest (round \
         trip)",
        figure(within_ns),
        figure(across_ns)
    )
}

fn far_in_cache(pairs: usize, [one_way_ns, cache_ns]: [f64; 2], is_guest: bool) -> String {
    let check = match is_guest {
        true => {
            "the hypervisor may have put them on different caches, or moved them: on its host, check \
             where the guest's cpus are pinned (virsh vcpupin, or taskset -cp of each vcpu's thread)"
        }
        false => "compare cache/index3/shared_cpu_list of each cpu in /sys/devices/system/cpu",
    };
    format!(
        "cpus that share an L3, by the system's report, seem not to: a line takes {} ns one way (median \
         of {}), and the cache {} ns; {check}",
        figure(one_way_ns),
        count(pairs, "pair"),
        figure(cache_ns)
    )
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
