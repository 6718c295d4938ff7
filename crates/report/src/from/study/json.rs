//! A study for other programs.

use numalab_analysis::study::{Effect, StudySummary, Subject};
use numalab_stats::{Comparison, Interval, Verdict};
use serde_json::{Value, json};

use crate::label::verdict_word;

/// What was known before, the whole journal with every raw sample, and every effect.
pub(super) fn json(summary: &StudySummary<'_>) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(summary.document)?;
    let effects: Vec<Value> = summary
        .subjects
        .iter()
        .flat_map(|subject| subject.effects.iter().map(|effect| effect_json(subject, effect)))
        .collect();
    let aa: Vec<Value> = summary
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
        members.insert("any_worse".to_owned(), summary.any_worse().into());
    }
    serde_json::to_string_pretty(&value)
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
