//! What is odd about a machine or a run, with its evidence.

use numalab_stats::Sample;
use numalab_topology::{LOCAL_DISTANCE, Machine};

use numalab_analysis::run::{Entry, LevelName, Matrix, Remote, RemotePair, State, Summary};

use crate::number::{approximate_size, count, figure, ratio, share, size, trimmed};

/// A node must differ from its peers by this factor to be called slower.
const SLOWER_THAN_PEERS: f64 = 1.10;
/// Two latencies must differ by this factor to be called different.
const DIFFERENT_LATENCY: f64 = 1.05;
/// A measured ratio this many times off the distance is worth saying.
const DISTANCE_OFF_BY: f64 = 1.25;
/// A found cache this many times off the reported one is worth saying.
const CACHE_OFF_BY: f64 = 2.0;
/// Up to this share, disturbed windows are ordinary.
const DISTURBED_SHARE: f64 = 0.05;

/// What kind of oddity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OddityKind {
    /// A worker or its memory was not where it should be, or that is not proven.
    Misplaced,
    /// Cells could not be measured.
    Failed,
    /// The run ended before all cells did.
    Unmeasured,
    /// A nearer node by distance is measured as farther.
    DistanceRank,
    /// A distance promises another ratio than was measured.
    DistanceRatio,
    /// A node is slower than the others.
    SlowNode,
    /// Huge pages were asked for and not had.
    HugePagesMissing,
    /// A cache ends elsewhere than reported.
    CacheSize,
    /// The machine's memory is emulated.
    VirtualTime,
    /// The clock does not run evenly.
    ClockNotInvariant,
    /// Many windows were disturbed.
    Disturbed,
    /// Intervals are wider than asked for.
    NotPrecise,
}

/// Something odd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// What kind.
    pub kind: OddityKind,
    /// What was seen, with its figures; no full stop.
    pub text: String,
}

/// Everything odd, what casts most doubt first.
#[must_use]
pub fn oddities(summary: &Summary<'_>) -> Vec<Oddity> {
    let machine = &summary.run.machine;
    let mut found = Vec::new();
    let mut say = |kind, text: Option<String>| {
        found.extend(text.map(|text| Oddity { kind, text }));
    };
    say(OddityKind::Misplaced, misplaced(summary));
    say(OddityKind::Failed, failed(summary));
    say(OddityKind::Unmeasured, unmeasured(summary));
    if let Remote::Measured(cost) = &summary.remote {
        say(OddityKind::DistanceRank, distance_rank(summary, machine));
        say(OddityKind::DistanceRatio, distance_ratio(&cost.pairs));
    }
    say(OddityKind::SlowNode, slow_node(summary));
    say(OddityKind::HugePagesMissing, huge_pages(summary));
    say(OddityKind::CacheSize, cache_size(summary));
    say(OddityKind::VirtualTime, virtual_time(summary));
    say(OddityKind::ClockNotInvariant, clock(summary));
    say(OddityKind::Disturbed, disturbed(summary));
    say(OddityKind::NotPrecise, not_precise(summary));
    found
}

fn misplaced(summary: &Summary<'_>) -> Option<String> {
    let proof = &summary.proof;
    if proof.misplaced() == 0 && proof.unproven_cells > 0 {
        return Some(format!(
            "{} with figures but without proof of placement",
            count(proof.unproven_cells, "cell")
        ));
    }
    (proof.misplaced() > 0).then(|| {
        format!(
            "{} of {} were not where they should be: {} pinned, {} with all memory on its node",
            proof.misplaced(),
            count(proof.workers, "worker"),
            proof.pinned,
            proof.on_node
        )
    })
}

fn failed(summary: &Summary<'_>) -> Option<String> {
    let failed = summary.progress.failed;
    let first = summary.cells.iter().find_map(|cell| match cell.state {
        State::Failed(reason) => Some((cell.cell.id.clone(), reason)),
        _ => None,
    });
    first.map(|(id, reason)| {
        format!(
            "{} of {} could not be measured, the first `{id}`: {reason}",
            failed,
            count(summary.progress.planned, "cell")
        )
    })
}

fn unmeasured(summary: &Summary<'_>) -> Option<String> {
    let progress = &summary.progress;
    (progress.unmeasured > 0).then(|| {
        format!(
            "the run ended early: {} of {} not measured",
            progress.unmeasured,
            count(progress.planned, "cell")
        )
    })
}

/// The pair of targets whose order by distance and by latency disagree most.
fn distance_rank(summary: &Summary<'_>, machine: &Machine) -> Option<String> {
    let matrix = &summary.matrices.first()?.by_node;
    let mut worst: Option<(f64, String)> = None;
    let mut disagreements = 0;
    for &from in &matrix.rows {
        for &near in &matrix.columns {
            for &far in &matrix.columns {
                let Some(factor) = reversed(matrix, machine, from, near, far) else {
                    continue;
                };
                disagreements += 1;
                if worst.as_ref().is_none_or(|(most, _)| factor > *most) {
                    worst = Some((factor, rank_text(matrix, machine, from, near, far)));
                }
            }
        }
    }
    let (_, text) = worst?;
    Some(match disagreements {
        1 => text,
        more => format!("{text} ({more} such pairs)"),
    })
}

/// By what factor `near` is slower than `far` although its distance from `from` is
/// smaller; `None` if that is not so beyond the intervals.
fn reversed(matrix: &Matrix, machine: &Machine, from: u32, near: u32, far: u32) -> Option<f64> {
    let distance = |to: u32| machine.distance(from_id(from), from_id(to));
    if distance(near)? >= distance(far)? {
        return None;
    }
    let (near, far) = (matrix.get(from, near)?, matrix.get(from, far)?);
    let factor = near.value / far.value;
    (factor > DIFFERENT_LATENCY && are_apart(far, near)).then_some(factor)
}

fn rank_text(matrix: &Matrix, machine: &Machine, from: u32, near: u32, far: u32) -> String {
    let one = |to: u32| {
        let distance = machine.distance(from_id(from), from_id(to));
        let latency = matrix.get(from, to).map_or(f64::NAN, |entry| entry.value);
        format!(
            "node {to} (distance {}) takes {} ns",
            distance.map_or_else(|| "unknown".to_owned(), |distance| distance.to_string()),
            figure(latency)
        )
    };
    format!("distances are out of order: from node {from}, {} but {}", one(near), one(far))
}

fn from_id(number: u32) -> numalab_topology::NodeId {
    numalab_topology::NodeId(number)
}

/// Whether the spreads of two entries do not touch, `low` being the smaller.
fn are_apart(low: &Entry, high: &Entry) -> bool {
    let top = low.spread.map_or(low.value, |spread| spread.hi);
    let bottom = high.spread.map_or(high.value, |spread| spread.lo);
    top < bottom
}

fn distance_ratio(pairs: &[RemotePair]) -> Option<String> {
    let promised = |pair: &RemotePair| {
        let distance = f64::from(pair.distance?) / f64::from(LOCAL_DISTANCE);
        (distance > 0.0 && pair.ratio > 0.0).then_some(distance)
    };
    let off = |pair: &RemotePair, promised: f64| {
        let factor = pair.ratio / promised;
        factor.max(factor.recip())
    };
    let worst = pairs
        .iter()
        .filter_map(|pair| promised(pair).map(|ratio| (pair, ratio, off(pair, ratio))))
        .max_by(|a, b| a.2.total_cmp(&b.2))?;
    let (pair, said, off) = worst;
    (off > DISTANCE_OFF_BY).then(|| {
        format!(
            "the distance from node {} to node {} says {}, measured is {}",
            pair.from,
            pair.to,
            ratio(said),
            ratio(pair.ratio)
        )
    })
}

/// The slowest node by local latency, or else by local bandwidth.
fn slow_node(summary: &Summary<'_>) -> Option<String> {
    let latency = summary.matrices.first().map(|found| &found.by_node);
    let bandwidth = summary.bandwidth.by_node.as_ref();
    latency
        .and_then(|matrix| slower(matrix, |value, peers| value / peers, "ns to its own memory"))
        .or_else(|| {
            bandwidth.and_then(|matrix| {
                slower(matrix, |value, peers| peers / value, "GB/s from its own memory")
            })
        })
}

fn slower(matrix: &Matrix, slowness: impl Fn(f64, f64) -> f64, what: &str) -> Option<String> {
    let local = |&node: &u32| matrix.get(node, node).map(|entry| (node, entry.value));
    let locals: Vec<(u32, f64)> = matrix.rows.iter().filter_map(local).collect();
    let worst = locals.iter().map(|&(node, value)| {
        let others = locals.iter().filter(|(other, _)| *other != node);
        let peers = Sample::new(others.map(|&(_, value)| value).collect::<Vec<f64>>());
        let peers = peers.map_or(f64::NAN, |peers| peers.median());
        (node, value, peers, slowness(value, peers))
    });
    let (node, value, peers, factor) =
        worst.filter(|found| found.3.is_finite()).max_by(|a, b| a.3.total_cmp(&b.3))?;
    (factor > SLOWER_THAN_PEERS).then(|| {
        format!(
            "node {node} is slower than its peers: {} {what}, theirs {}",
            figure(value),
            figure(peers)
        )
    })
}

fn huge_pages(summary: &Summary<'_>) -> Option<String> {
    let proof = &summary.proof;
    (proof.not_huge_cells > 0).then(|| {
        format!(
            "huge pages are missing: {} of {} that asked for them got smaller ones",
            proof.not_huge_cells,
            count(proof.huge_cells, "cell")
        )
    })
}

#[expect(clippy::cast_precision_loss, reason = "compared by factors")]
fn cache_size(summary: &Summary<'_>) -> Option<String> {
    let levels = &summary.curves.first()?.levels;
    levels.iter().find_map(|level| {
        let (found, reported) = (level.capacity_bytes?, level.reported_bytes?);
        let factor = found / reported as f64;
        let is_cache = matches!(level.name, LevelName::Cache(_));
        (is_cache && factor.max(factor.recip()) > CACHE_OFF_BY).then(|| {
            format!(
                "{} ends at {}, the system reports {}",
                level.name,
                approximate_size(found),
                size(reported)
            )
        })
    })
}

fn clock(summary: &Summary<'_>) -> Option<String> {
    let fact = summary.run.environment.facts.get("clock_invariant")?;
    (fact == "no").then(|| "the clock is not invariant: times may be off".to_owned())
}

fn virtual_time(summary: &Summary<'_>) -> Option<String> {
    let time = summary.run.environment.facts.get("time")?;
    Some(format!("time is {time}: this machine's memory is emulated"))
}

fn disturbed(summary: &Summary<'_>) -> Option<String> {
    let progress = &summary.progress;
    (progress.disturbed_share() > DISTURBED_SHARE).then(|| {
        format!(
            "{} of {} were disturbed by other load",
            share(progress.disturbed, progress.windows),
            count(progress.windows, "window")
        )
    })
}

fn not_precise(summary: &Summary<'_>) -> Option<String> {
    let progress = &summary.progress;
    (progress.budget_spent > 0).then(|| {
        format!(
            "{} of {} had not reached {} % when the budget ended",
            progress.budget_spent,
            count(progress.planned, "cell"),
            trimmed(summary.run.precision * 100.0)
        )
    })
}
