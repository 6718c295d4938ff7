//! Contradictions between firmware distances and measured latencies.

use numalab_record::CellId;
use numalab_topology::{LOCAL_DISTANCE, Machine, NodeId};

use super::{Oddity, RunFinding, Target};
use crate::Finding;
use crate::run::Summary;
use crate::run::find::matrix::MatrixEntry;
use crate::run::find::remote::RemotePair;

/// Minimum ratio for two latencies to count as different.
const DIFFERENT_LATENCY: f64 = 1.05;
/// Minimum ratio between the measured and the promised figure for it to be reported.
const DISTANCE_OFF_BY: f64 = 1.25;

/// Returns the pair of targets with the strongest contradiction between distance and latency.
pub(super) fn order(summary: &Summary<'_>, machine: &Machine) -> Option<RunFinding> {
    let matrix = &summary.matrices.first()?.by_node;
    let mut worst: Option<(f64, u32, [Target; 2], Vec<CellId>)> = None;
    let mut pairs = 0;
    for &from in &matrix.rows {
        let target = |to: u32| {
            let distance = machine.cost_distance(NodeId(from), NodeId(to))?;
            let entry = matrix.get(from, to)?;
            Some((Target { node: NodeId(to), distance, latency_ns: entry.value }, entry))
        };
        let targets: Vec<_> = matrix.columns.iter().filter_map(|&to| target(to)).collect();
        for (near, slow) in &targets {
            for (far, fast) in targets.iter().filter(|(far, _)| far.distance > near.distance) {
                let factor = near.latency_ns / far.latency_ns;
                if factor <= DIFFERENT_LATENCY || !are_apart(fast, slow) {
                    continue;
                }
                pairs += 1;
                if worst.as_ref().is_none_or(|(most, ..)| factor > *most) {
                    let cells = [slow.cells.as_slice(), fast.cells.as_slice()].concat();
                    worst = Some((factor, from, [*near, *far], cells));
                }
            }
        }
    }
    let (_, from, [near, far], cells) = worst?;
    let order = Oddity::DistanceOrder { from: NodeId(from), near, far, pairs };
    Some(Finding::new(order).over(DIFFERENT_LATENCY).shown_by(cells))
}

/// Returns `true` if the spreads of two entries do not overlap, `low` being the smaller.
fn are_apart(low: &MatrixEntry, high: &MatrixEntry) -> bool {
    let top = low.spread.map_or(low.value, |spread| spread.hi);
    let bottom = high.spread.map_or(high.value, |spread| spread.lo);
    top < bottom
}

pub(super) fn ratio(pairs: &[RemotePair], summary: &Summary<'_>) -> Option<RunFinding> {
    let promised = |pair: &RemotePair| {
        let distance = f64::from(pair.distance?) / f64::from(LOCAL_DISTANCE);
        (distance > 0.0 && pair.ratio > 0.0).then_some(distance)
    };
    let off = |pair: &RemotePair, promised: f64| {
        let factor = pair.ratio / promised;
        factor.max(factor.recip())
    };
    let (pair, promised, off) = pairs
        .iter()
        .filter_map(|pair| promised(pair).map(|ratio| (pair, ratio, off(pair, ratio))))
        .max_by(|a, b| a.2.total_cmp(&b.2))?;
    let matrix = &summary.matrices.first()?.by_node;
    let cells = matrix.get(pair.from.0, pair.to.0).map_or_else(Vec::new, |e| e.cells.clone());
    let measured = pair.ratio;
    let ratio = Oddity::DistanceRatio { from: pair.from, to: pair.to, promised, measured };
    (off > DISTANCE_OFF_BY).then(|| Finding::new(ratio).over(DISTANCE_OFF_BY).shown_by(cells))
}
