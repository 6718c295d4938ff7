//! One row per value of a study.

use numalab_page::rows::{Holds, Rows};
use numalab_record::study::{Arm, StudyDocument};

use super::notices;

/// Returns every value of a study as taken, including warm-ups and disturbed samples.
pub fn value_rows(document: &StudyDocument) -> Rows {
    let run = &document.run;
    let rows = document.samples().flat_map(|sample| {
        let treatment = run.treatments.get(sample.treatment).map_or("", |t| t.name.as_str());
        let workload = run.workloads.get(sample.workload).map_or("", |w| w.name.as_str());
        let arm = match sample.arm {
            Arm::Main => "main",
            Arm::Again => "again",
        };
        let disturbances = sample.observation.disturbances.iter();
        let disturbed: Vec<String> = disturbances.map(notices::disturbance).collect();
        sample.observation.readings.iter().map(move |reading| {
            let quantity = &reading.quantity;
            let better = quantity.better.name();
            vec![
                sample.block.to_string(),
                (sample.block >= run.rules.warm_ups).to_string(),
                treatment.to_owned(),
                arm.to_owned(),
                workload.to_owned(),
                sample.attempt.to_string(),
                sample.unix_ms.to_string(),
                sample.took_s.to_string(),
                quantity.metric.clone(),
                reading.value.to_string(),
                quantity.unit.clone(),
                better.to_owned(),
                disturbed.join("; "),
            ]
        })
    });
    Rows::new("study sample")
        .labels(["block", "judged", "treatment", "arm", "workload", "attempt"])
        .texts(["unix_ms"])
        .values("s", ["took_s"])
        .with(Holds::Metric, ["metric"])
        .values("", ["value"])
        .with(Holds::Unit, ["unit"])
        .texts(["better", "disturbed"])
        .rows(rows)
}
