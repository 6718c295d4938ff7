//! One row per value of a study.

use numalab_page::rows::{Field, Holds, Rows};
use numalab_record::study::{Arm, StudyDocument};
use numalab_stats::Verdict;

use super::notices;
use crate::label::change_words;
use crate::study::{Effect, StudySummary, Subject};

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
                Field::from(sample.block.to_string()),
                (sample.block >= run.rules.warm_ups).to_string().into(),
                treatment.into(),
                arm.into(),
                workload.into(),
                sample.attempt.to_string().into(),
                sample.unix_ms.into(),
                sample.took_s.into(),
                quantity.metric.as_str().into(),
                reading.value.into(),
                quantity.unit.as_str().into(),
                better.into(),
                disturbed.join("; ").into(),
            ]
        })
    });
    value_columns().rows(rows)
}

pub(crate) fn value_columns() -> Rows {
    Rows::new("study sample")
        .labels(["block", "judged", "treatment", "arm", "workload", "attempt"])
        .texts(["unix_ms"])
        .values("s", [("took_s", "the time that the sample took")])
        .with(Holds::Metric, ["metric"])
        .values("", [("value", "the value of the sample")])
        .with(Holds::Unit, ["unit"])
        .texts(["better", "disturbed"])
}

/// Returns every effect of a study on every metric, with its verdict.
pub(super) fn effect_rows(summary: &StudySummary<'_>) -> Rows {
    let of_subject = |subject: &Subject| -> Vec<Vec<Field>> {
        subject.effects.iter().map(|effect| effect_row(subject, effect)).collect()
    };
    effect_columns().rows(summary.subjects.iter().flat_map(of_subject))
}

fn effect_row(subject: &Subject, effect: &Effect) -> Vec<Field> {
    let found = &effect.found;
    let interval = found.percent_interval();
    let verdict = match found.verdict {
        Verdict::Better => Field::Number(1.0),
        Verdict::Equivalent => Field::Number(0.0),
        Verdict::Worse => Field::Number(-1.0),
        Verdict::Inconclusive { .. } => Field::Empty,
    };
    vec![
        subject.name.as_str().into(),
        subject.quantity.metric.as_str().into(),
        change_words(effect.kind, &effect.change).into(),
        found.percent().into(),
        interval.map(|interval| interval.lo).into(),
        interval.map(|interval| interval.hi).into(),
        subject.margin_percent.into(),
        verdict,
    ]
}

pub(crate) fn effect_columns() -> Rows {
    let verdict = "1 if the change is better, -1 if it is worse, 0 if it is equivalent within the \
                   margin; left out while nothing is decided";
    Rows::new("study effect")
        .labels(["workload", "metric", "change"])
        .values(
            "%",
            [
                ("change_percent", "the change of the metric, from pairs within blocks"),
                ("lo_percent", "the lower end of the change's interval"),
                ("hi_percent", "the upper end of the change's interval"),
                ("margin_percent", "the margin within which changes are equivalent"),
            ],
        )
        .values("", [("verdict", verdict)])
}
