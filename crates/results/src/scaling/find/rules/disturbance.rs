//! Interference by other work.

use numalab_record::scaling::{Scaling, ScalingStep};

use super::{Finding, ScalingEvidence, ScalingFinding, ScalingObservation};

/// Share of disturbed windows above which a step counts as disturbed.
const MUCH: f64 = 0.05;

pub(super) fn find(scaling: &Scaling) -> Option<ScalingFinding> {
    let disturbed = scaling.steps.iter().filter_map(|step| Some((step, much(step)?)));
    let evidence: Vec<ScalingEvidence> = disturbed
        .map(|(step, share)| ScalingEvidence::Disturbed { file: step.file.clone(), share })
        .collect();
    let what = ScalingObservation::Disturbance { steps: scaling.steps.len() };
    (!evidence.is_empty()).then(|| Finding::new(what).over(MUCH).shown_by(evidence))
}

/// Returns the run without its disturbed steps.
pub(super) fn without(scaling: &Scaling) -> Scaling {
    let clean = scaling.steps.iter().filter(|step| much(step).is_none());
    Scaling { steps: clean.cloned().collect(), ..scaling.clone() }
}

/// Returns the share of a step's disturbed windows if it is too high.
fn much(step: &ScalingStep) -> Option<f64> {
    step.disturbed.filter(|share| *share > MUCH)
}
