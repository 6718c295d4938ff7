//! The answer of a study with few treatments, in one sentence that compares each with the first.

use numalab_page::Lead;
use numalab_page::number::figure;
use numalab_record::study::FactorKind;

use super::words;
use crate::label::listed;
use crate::study::{Effect, StudySummary, Subject};

/// Maximum number of treatments in one sentence.
const FEW: usize = 5;

/// Returns the answer on the metric that answers the question; `None` for two treatments, for too
/// many, and for a study over a number.
pub(super) fn answer(summary: &StudySummary<'_>) -> Option<Lead> {
    let run = &summary.document.run;
    let is_choice = run.factors.iter().all(|factor| factor.kind == FactorKind::Choice);
    if !is_choice || !(3..=FEW).contains(&run.treatments.len()) {
        return None;
    }
    let subject = summary.asked()?;
    let against_first = |at| subject.effects.iter().find(|effect| effect.sides == Some((0, at)));
    let effects = (1..run.treatments.len()).map(against_first).collect::<Option<Vec<_>>>()?;
    let named: Vec<(&Effect, String)> = effects
        .iter()
        .zip(&run.treatments[1..])
        .map(|(effect, treatment)| (*effect, treatment.name.clone()))
        .collect();
    let mood = words::mood_of(effects.iter().map(|effect| effect.found.verdict));
    Some(Lead::new("Answer", sentence(summary, subject, &named), mood))
}

/// Describes every treatment against the first: `chase latency against pages=4k (150 ns): -3.9 %
/// under pages=thp (144 ns; -4.0 to -3.8 %) and -9 % under pages=2m (136 ns; -9.1 to -8.9 %): better
/// under each (96.8 % intervals).`
fn sentence(summary: &StudySummary<'_>, subject: &Subject, named: &[(&Effect, String)]) -> String {
    let median = |at: usize| {
        subject.median(at).map(|median| format!("{} {}", figure(median), subject.quantity.unit))
    };
    let in_brackets = |facts: Vec<String>| match facts.is_empty() {
        true => String::new(),
        false => format!(" ({})", facts.join("; ")),
    };
    let change = |(effect, name): &(&Effect, String)| {
        let interval = effect.found.percent_interval();
        let median = effect.sides.and_then(|(_, at)| median(at));
        let facts = median.into_iter().chain(interval.as_ref().map(words::range)).collect();
        format!("{} under {name}{}", words::change(subject, &effect.found), in_brackets(facts))
    };
    let changes: Vec<String> = named.iter().map(change).collect();
    let is_bounded = named.iter().any(|(effect, _)| effect.found.percent_interval().is_some());
    let level = match is_bounded {
        true => format!(" ({} intervals)", words::level(summary)),
        false => String::new(),
    };
    format!(
        "{} against {}{}: {}: {}{level}.",
        subject.title(),
        summary.document.run.treatments[0].name,
        in_brackets(median(0).into_iter().collect()),
        listed(&changes),
        words::verdicts(named, subject.margin_percent, "under")
    )
}
