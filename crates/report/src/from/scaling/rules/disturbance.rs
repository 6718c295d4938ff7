//! Whether other work took part in what was measured.

use numalab_record::scaling::Scaling;

use super::Explanation;
use crate::number::figure;

/// Disturbed windows beyond this share of a step's show in its means.
const MUCH: f64 = 0.05;

pub(super) fn explain(scaling: &Scaling) -> Option<Explanation> {
    let shares = scaling.steps.iter().map(|step| (step, step.disturbed.unwrap_or(0.0)));
    let evidence: Vec<String> = shares
        .filter(|(_, share)| *share > MUCH)
        .map(|(step, share)| format!("{} % of its windows; {}", figure(share * 100.0), step.file))
        .collect();
    let says = format!(
        "other work disturbed {} of {} steps: their means are its doing too, and so may be what follows; the medians in their JSON leave the disturbed windows out",
        evidence.len(),
        scaling.steps.len()
    );
    (!evidence.is_empty()).then(|| Explanation::new("disturbance", says, evidence))
}
