//! A study for other programs: JSON with everything, CSV with every value.

use numalab_record::study::Arm;
use numalab_stats::{Comparison, Interval, Verdict};
use serde_json::{Value, json};

use numalab_analysis::study::{Effect, Subject};

use super::StudyPage;
use crate::label::verdict_word;

/// The columns of [`StudyPage::csv`].
const HEADER: &str = "block,judged,treatment,arm,workload,attempt,unix_ms,took_s,metric,value,\
                      unit,better,disturbed\n";

impl StudyPage<'_> {
    /// The study as JSON: what was known before, the whole journal
    /// with every raw sample, and every effect.
    ///
    /// # Errors
    /// Whatever `serde_json` cannot write.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let mut value = serde_json::to_value(self.document)?;
        let effects: Vec<Value> = self
            .subjects
            .iter()
            .flat_map(|subject| subject.effects.iter().map(|effect| effect_json(subject, effect)))
            .collect();
        let aa: Vec<Value> = self
            .subjects
            .iter()
            .filter_map(|subject| {
                let found = &subject.aa.as_ref()?.found;
                Some(json!({
                    "workload": subject.name,
                    "metric": subject.quantity.metric,
                    "found": found_json(found),
                    "least_detectable_percent": found.least_detectable_percent(),
                }))
            })
            .collect();
        if let Value::Object(members) = &mut value {
            members.insert("effects".to_owned(), Value::Array(effects));
            members.insert("aa".to_owned(), Value::Array(aa));
            members.insert("any_worse".to_owned(), self.any_worse().into());
        }
        serde_json::to_string_pretty(&value)
    }

    /// Every value as it was taken, warm-ups and disturbed ones included, a row a value.
    #[must_use]
    pub fn csv(&self) -> String {
        let run = &self.document.run;
        let mut out = HEADER.to_owned();
        for sample in self.document.samples() {
            let treatment = run.treatments.get(sample.treatment).map_or("", |t| t.name.as_str());
            let workload = run.workloads.get(sample.workload).map_or("", |w| w.name.as_str());
            let judged = sample.block >= run.rules.warm_ups;
            let arm = match sample.arm {
                Arm::Main => "main",
                Arm::Again => "again",
            };
            for reading in &sample.taken.readings {
                let quantity = &reading.quantity;
                let better = match quantity.better {
                    numalab_record::study::Better::Lower => "lower",
                    numalab_record::study::Better::Higher => "higher",
                };
                let row = [
                    sample.block.to_string(),
                    judged.to_string(),
                    field(treatment),
                    arm.to_owned(),
                    field(workload),
                    sample.attempt.to_string(),
                    sample.unix_ms.to_string(),
                    sample.took_s.to_string(),
                    field(&quantity.metric),
                    reading.value.to_string(),
                    field(&quantity.unit),
                    better.to_owned(),
                    field(&sample.taken.disturbances.join("; ")),
                ];
                out.push_str(&row.join(","));
                out.push('\n');
            }
        }
        out
    }
}

fn effect_json(subject: &Subject, effect: &Effect) -> Value {
    json!({
        "workload": subject.name,
        "metric": subject.quantity.metric,
        "unit": subject.quantity.unit,
        "kind": effect.kind.name(),
        "change": effect.label,
        "blocks": subject.blocks(),
        "margin_percent": subject.margin_percent,
        "found": found_json(&effect.found),
        "first_samples": effect.first.as_ref().map(found_json),
        "bootstrap_log_mean": [
            effect.bootstrap.value,
            effect.bootstrap.interval.lo,
            effect.bootstrap.interval.hi,
        ],
        "permutation_p": effect.permutation.p,
        "differences": effect.differences,
    })
}

fn found_json(found: &Comparison) -> Value {
    let interval = |interval: Option<Interval>| interval.map(|i| [i.lo, i.hi]);
    let verdict = verdict_word(found.verdict);
    let further = match found.verdict {
        Verdict::Inconclusive { further_blocks } => further_blocks,
        _ => None,
    };
    json!({
        "verdict": verdict,
        "further_blocks": further,
        "change_percent": found.percent(),
        "interval_percent": interval(found.percent_interval()),
        "effect": found.effect,
        "signed_rank_p": found.difference.p,
        "equivalence_p": found.equivalence.p(),
    })
}

/// A field of CSV (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
