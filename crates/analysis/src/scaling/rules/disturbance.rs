//! Whether other work took part in what was measured.

use numalab_record::scaling::Scaling;

use super::{Finding, ScalingEvidence, ScalingFinding, ScalingObservation};

/// Disturbed windows beyond this share of a step's show in its means.
const MUCH: f64 = 0.05;

pub(super) fn find(scaling: &Scaling) -> Option<ScalingFinding> {
    let shares = scaling.steps.iter().map(|step| (step, step.disturbed.unwrap_or(0.0)));
    let evidence: Vec<ScalingEvidence> = shares
        .filter(|(_, share)| *share > MUCH)
        .map(|(step, share)| ScalingEvidence::Disturbed { file: step.file.clone(), share })
        .collect();
    let what = ScalingObservation::Disturbance { steps: scaling.steps.len() };
    (!evidence.is_empty()).then(|| Finding::new(what).over(MUCH).shown_by(evidence))
}
