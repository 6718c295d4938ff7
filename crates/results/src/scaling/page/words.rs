//! Findings about a scaling run in words.

use numalab_page::number::{count, figure, size};
use numalab_record::scaling::ScalingMetric;

use crate::scaling::{
    CacheFit, Cause, Difference, Plateau, RankSide, ScalingEvidence, ScalingFinding,
    ScalingObservation as Seen,
};

/// Returns the name of the rule behind a finding.
pub fn name(finding: &ScalingFinding) -> &'static str {
    match finding.what {
        Seen::Disturbance { .. } => "disturbance",
        Seen::Caches { .. } => "caches",
        Seen::Plateaus { .. } => "levels",
        Seen::SharedL3 { .. } => "shared L3",
        Seen::LocalAndRemote { .. } => "local and remote",
        Seen::Ccd { .. } => "CCD",
        Seen::MemoryControllers { .. } => "memory controllers",
        Seen::Contention { .. } => "contention",
        Seen::Concurrent { .. } => "concurrent and serial",
        Seen::PlacementUnknown => "placement",
    }
}

/// Returns a finding as a sentence without its full stop.
pub fn sentence(finding: &ScalingFinding) -> String {
    match &finding.what {
        Seen::Disturbance { steps } => disturbance(finding.evidence.len(), *steps),
        Seen::Caches { ranks, fits } => {
            let fits: Vec<String> = fits.iter().map(fit).collect();
            format!(
                "with {}, by the reported cache sizes: {}; sizes up to twice a cache are between two levels",
                count(*ranks, "rank"),
                fits.join("; ")
            )
        }
        Seen::Plateaus { plateaus } => {
            let plateaus: Vec<String> = plateaus.iter().map(plateau).collect();
            format!(
                "the curve is flat at {}; which caches these are is unknown: no architecture file next to the results has their sizes",
                plateaus.join(", ")
            )
        }
        Seen::SharedL3 { size_bytes, l3_bytes, ranks, alone_ns, shared_ns, shows } => format!(
            "{} of one rank fit in the L3 of {} ({} ns); the {ranks} ranks of a CCD need {}, too much for it, {}: {} ns, {}x",
            size(*size_bytes),
            size(*l3_bytes),
            figure(*alone_ns),
            size(size_bytes * ranks),
            if *shows { "which costs time" } else { "which costs next to nothing" },
            figure(*shared_ns),
            figure(shared_ns / alone_ns)
        ),
        Seen::LocalAndRemote { size_bytes, local, remote, difference } => {
            local_and_remote(*size_bytes, local, remote, difference)
        }
        Seen::Ccd { ranks, on_node, size_bytes, packed, spread, difference } => format!(
            "{ranks} ranks with {on_node} on a node's memory, at {} each: {}",
            size(*size_bytes),
            ccd(*packed, *spread, difference)
        ),
        Seen::MemoryControllers { series, few, many, in_ccd, size_bytes, difference } => format!(
            "{series}: {many} ranks instead of {few} on a node's memory, {in_ccd} in a CCD both \
             times, at {} each: {}; the cause is the load on the node's memory controllers",
            size(*size_bytes),
            slowdown(difference)
        ),
        Seen::Contention { series, few, many, size_bytes, difference, cause } => format!(
            "{series}: from {few} to {many} ranks, at {} each: {}{}",
            size(*size_bytes),
            slowdown(difference),
            cause.map_or("", cause_words)
        ),
        Seen::Concurrent { ranks, size_bytes, difference } => {
            concurrent(*ranks, *size_bytes, difference)
        }
        Seen::PlacementUnknown => "the placement of the ranks is unknown (no mapping_check.log, log or JSON matches these files): nothing can be said about CCDs, nodes and distance".to_owned(),
    }
}

fn disturbance(disturbed: usize, steps: usize) -> String {
    format!(
        "other work disturbed {}: nothing is concluded from {}",
        if disturbed == steps {
            "every step".to_owned()
        } else {
            format!("{disturbed} of {steps} steps")
        },
        if disturbed == 1 { "it" } else { "them" }
    )
}

fn local_and_remote(
    size_bytes: u64,
    local: &RankSide,
    remote: &RankSide,
    difference: &Difference,
) -> String {
    let (at, unit) = (size(size_bytes), difference.metric.unit());
    let (far, near) = (figure(remote.mean), figure(local.mean));
    if !difference.real {
        return format!(
            "at {at} remote and local ranks do not differ beyond their spread ({far} and {near} {unit})"
        );
    }
    format!(
        "at {at} remote memory is {}: {far} {unit} over {} compared with {near} {unit} over {} with local memory",
        change(difference),
        count(remote.ranks, "rank"),
        count(local.ranks, "rank")
    )
}

fn ccd(packed: usize, spread: usize, difference: &Difference) -> String {
    if !difference.real {
        return format!(
            "packing {packed} to a CCD instead of {spread} makes no difference beyond the spread of the ranks"
        );
    }
    format!(
        "packed {packed} to a CCD they are {} than {spread} to a CCD; the node's memory controllers \
         carry the same load both times, so the cause is a resource that the ranks of a CCD share: \
         its L3 and its link",
        change(difference)
    )
}

fn concurrent(ranks: usize, size_bytes: u64, difference: &Difference) -> String {
    let at = size(size_bytes);
    if !difference.real {
        return format!(
            "{ranks} ranks at the same time and one at a time do not differ beyond their spread, at {at} each"
        );
    }
    format!(
        "{ranks} ranks at the same time are {} than one at a time, at {at} each, because they \
         contend",
        change(difference)
    )
}

fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Ccd => {
            "; each node's memory serves the same number of ranks both times, so the cause is \
             a resource that the ranks of a CCD share"
        }
        Cause::BetweenNodes => {
            "; neither a CCD nor a node's memory has more ranks, which leaves the other resources \
             that nodes share (links between them, power)"
        }
        Cause::CcdOrMemory => {
            "; CCDs and memory controllers are both loaded more, so this step cannot separate them"
        }
        Cause::Unknown => {
            "; which shared resource causes this is unknown, because the nodes or the CCDs of the \
             ranks are not recorded"
        }
    }
}

/// Describes the sizes that fit a cache: `256K to 512K fall in L2 (512K): 4.00 to 4.20 ns`.
fn fit(fit: &CacheFit) -> String {
    let sizes = match fit.from_bytes == fit.to_bytes {
        true => size(fit.from_bytes),
        false => format!("{} to {}", size(fit.from_bytes), size(fit.to_bytes)),
    };
    let name = fit.level.map_or_else(|| "memory".to_owned(), |level| format!("L{level}"));
    let capacity =
        fit.capacity_bytes.map_or_else(String::new, |bytes| format!(" ({})", size(bytes)));
    let (least, most) = (figure(fit.least_ns), figure(fit.most_ns));
    match fit.as_slow_as_memory {
        true => format!(
            "{sizes} would fit in {name}{capacity}, but take as long as memory: {least} to {most} ns"
        ),
        false => format!("{sizes} fall in {name}{capacity}: {least} to {most} ns"),
    }
}

fn plateau(of: &Plateau) -> String {
    format!("{} ns from {} to {}", figure(of.latency_ns), size(of.from_bytes), size(of.to_bytes))
}

fn slowdown(of: &Difference) -> String {
    match of.real {
        true => change(of),
        false => "no slowdown beyond the spread of the ranks".to_owned(),
    }
}

/// Describes a ratio of means: `34 % slower`.
fn change(of: &Difference) -> String {
    let slowdown = match of.metric {
        ScalingMetric::Latency => of.ratio,
        ScalingMetric::Bandwidth => 1.0 / of.ratio,
    };
    match slowdown >= 1.0 {
        true => format!("{} % slower", figure((slowdown - 1.0) * 100.0)),
        false => format!("{} % faster", figure((1.0 / slowdown - 1.0) * 100.0)),
    }
}

/// Describes a figure behind a finding.
pub(super) fn evidence(evidence: &ScalingEvidence) -> String {
    match evidence {
        // `8M: 86.6 ns over 8 ranks, 85.1 to 88.0; file`
        ScalingEvidence::Ranks { file, size_bytes, metric, ranks, mean, min, max } => format!(
            "{}: {} {} over {}, {} to {}; {file}",
            size(*size_bytes),
            figure(*mean),
            metric.unit(),
            count(*ranks, "rank"),
            figure(*min),
            figure(*max)
        ),
        ScalingEvidence::Disturbed { file, share } => {
            format!("{} % of its windows; {file}", figure(share * 100.0))
        }
        ScalingEvidence::Nodes { file, cpu_node, memory_node, distance, metric, ranks, mean } => {
            let distance = distance.map_or_else(String::new, |d| format!(", distance {d}"));
            format!(
                "{file}: cpus of node {cpu_node}, memory of node {memory_node}{distance}: {} {} over {}",
                figure(*mean),
                metric.unit(),
                count(*ranks, "rank")
            )
        }
    }
}
