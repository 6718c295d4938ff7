//! A study's values, a row each.

use numalab_analysis::study::StudySummary;
use numalab_record::study::Arm;

use crate::csv::quote;

const HEADER: &str = "block,judged,treatment,arm,workload,attempt,unix_ms,took_s,metric,value,\
                      unit,better,disturbed\n";

/// Every value as it was taken, warm-ups and disturbed ones included.
pub(super) fn csv(summary: &StudySummary<'_>) -> String {
    let run = &summary.document.run;
    let mut out = HEADER.to_owned();
    for sample in summary.document.samples() {
        let treatment = run.treatments.get(sample.treatment).map_or("", |t| t.name.as_str());
        let workload = run.workloads.get(sample.workload).map_or("", |w| w.name.as_str());
        let judged = sample.block >= run.rules.warm_ups;
        let arm = match sample.arm {
            Arm::Main => "main",
            Arm::Again => "again",
        };
        for reading in &sample.taken.readings {
            let quantity = &reading.quantity;
            let better = quantity.better.name();
            let row = [
                sample.block.to_string(),
                judged.to_string(),
                quote(treatment),
                arm.to_owned(),
                quote(workload),
                sample.attempt.to_string(),
                sample.unix_ms.to_string(),
                sample.took_s.to_string(),
                quote(&quantity.metric),
                reading.value.to_string(),
                quote(&quantity.unit),
                better.to_owned(),
                quote(&sample.taken.disturbances.join("; ")),
            ];
            out.push_str(&row.join(","));
            out.push('\n');
        }
    }
    out
}
