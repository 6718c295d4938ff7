//! Rules for findings about a scaling run, each with its evidence.

mod caches;
mod contention;
mod disturbance;
mod remote;

use numalab_record::scaling::{Scaling, ScalingMetric, ScalingStep};
use numalab_stats::{Alternative, Sample, rank_sum};

use super::{Difference, ScalingEvidence, ScalingFinding, ScalingObservation};
use crate::Finding;

/// Minimum relative difference between means that counts.
const LEAST_DIFFERENCE: f64 = 0.03;
/// Significance level for differences between ranks.
const LEVEL: f64 = 0.05;

pub(super) fn all(scaling: &Scaling) -> Vec<ScalingFinding> {
    let mut found = Vec::new();
    // Otherwise the effects of other work would be blamed on the ranks.
    let clean = disturbance::without(scaling);
    found.extend(contention::find(&clean));
    found.extend(remote::find(&clean));
    found.extend(caches::find(&clean));
    found.extend(disturbance::find(scaling));
    let placed = scaling.steps.iter().any(|step| step.places.iter().any(Option::is_some));
    if !placed {
        found.push(Finding::new(ScalingObservation::PlacementUnknown));
    }
    found
}

/// Returns the ranks of the given steps at one size, as evidence.
fn cited<'a>(
    steps: impl IntoIterator<Item = &'a ScalingStep>,
    size_bytes: u64,
) -> Vec<ScalingEvidence> {
    let ranks = |step: &ScalingStep| {
        let sample = Sample::new(step.at(size_bytes)?).ok()?;
        Some(ScalingEvidence::Ranks {
            file: step.file.clone(),
            size_bytes,
            metric: step.metric,
            ranks: sample.len(),
            mean: sample.mean(),
            min: sample.min(),
            max: sample.max(),
        })
    };
    steps.into_iter().filter_map(ranks).collect()
}

/// Compares the figures of two sets of ranks.
fn difference(metric: ScalingMetric, baseline: &[f64], candidate: &[f64]) -> Option<Difference> {
    let (a, b) = (Sample::new(baseline).ok()?, Sample::new(candidate).ok()?);
    let ratio = b.mean() / a.mean();
    // With fewer than four ranks per side the test cannot reach the level; then the ranges must not
    // overlap.
    let real = match a.len() >= 4 && b.len() >= 4 {
        true => rank_sum(&a, &b, Alternative::TwoSided).p < LEVEL,
        false => b.min() > a.max() || b.max() < a.min(),
    };
    Some(Difference { metric, ratio, real: real && (ratio - 1.0).abs() >= LEAST_DIFFERENCE })
}

/// Compares two steps at one size, as a finding of `what`.
fn compared(
    (from, to): (&ScalingStep, &ScalingStep),
    size_bytes: u64,
    what: impl FnOnce(Difference) -> ScalingObservation,
) -> Option<ScalingFinding> {
    let of = difference(to.metric, from.at(size_bytes)?, to.at(size_bytes)?)?;
    let evidence = cited([from, to], size_bytes);
    Some(Finding::new(what(of)).over(LEAST_DIFFERENCE).shown_by(evidence))
}
