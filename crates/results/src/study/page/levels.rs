//! The answer of a study over a number, such as the number of guests: its effect at each level,
//! because the mean over levels answers no question, and its growth.

use numalab_page::Lead;
use numalab_record::study::{Factor, FactorKind};

use super::words;
use crate::label::{self, listed};
use crate::study::{Effect, EffectKind, StudySummary, Subject};

/// Returns the numeric factor, if there is one.
fn number<'s>(summary: &'s StudySummary<'_>) -> Option<&'s Factor> {
    let mut numbers =
        summary.document.run.factors.iter().filter(|factor| factor.kind == FactorKind::Scale);
    numbers.next().filter(|_| numbers.next().is_none())
}

/// Returns the effects at each level of the number on the metric that answers the question; empty
/// if another factor is held as well.
pub(super) fn effects<'s>(summary: &'s StudySummary<'_>) -> Vec<(&'s Subject, &'s Effect)> {
    let (Some(number), Some(subject)) = (number(summary), summary.asked()) else {
        return Vec::new();
    };
    let is_at_level = |effect: &&Effect| {
        let held = &effect.change.held;
        effect.kind == EffectKind::Within && held.len() == 1 && held[0].factor == number.name
    };
    subject.effects.iter().filter(is_at_level).map(|effect| (subject, effect)).collect()
}

/// Returns the answer, one sentence per change.
pub(super) fn answer(summary: &StudySummary<'_>) -> Option<Lead> {
    let number = number(summary)?;
    let all = effects(summary);
    let mut changes: Vec<Vec<(&Subject, &Effect)>> = Vec::new();
    for (subject, effect) in &all {
        match changes.iter_mut().find(|of| of[0].1.change.changed == effect.change.changed) {
            Some(of) => of.push((subject, effect)),
            None => changes.push(vec![(subject, effect)]),
        }
    }
    let sentences: Vec<String> = changes.iter().map(|of| sentence(number, of)).collect();
    let mood = words::mood_of(all.iter().map(|(_, effect)| effect.found.verdict));
    (!sentences.is_empty()).then(|| Lead::new("Answer", sentences.join(" "), mood))
}

/// Describes one change over the number: `numa off → on: dbench throughput changes by +0.10, +4.20
/// and +12.1 % at 4, 8 and 16 guests: better at 8 and 16, no change that matters (within 2 %) at
/// 4.`
fn sentence(number: &Factor, of: &[(&Subject, &Effect)]) -> String {
    let (subject, first) = of[0];
    let level = |effect: &Effect| effect.change.held[0].level.clone();
    let changes: Vec<String> = of.iter().map(|(of, effect)| signed(of, effect)).collect();
    let levels: Vec<String> = of.iter().map(|(_, effect)| level(effect)).collect();
    let named: Vec<(&Effect, String)> =
        of.iter().map(|(_, effect)| (*effect, level(effect))).collect();
    let unit = if first.found.percent().is_some() { " %" } else { "" };
    let changed = crate::study::Change { held: Vec::new(), ..first.change.clone() };
    format!(
        "{}: {} changes by {}{unit} at {} {}: {}.",
        label::change_words(EffectKind::Within, &changed),
        subject.title(),
        listed(&changes),
        listed(&levels),
        number.name,
        words::verdicts(&named, subject.margin_percent, "at")
    )
}

/// Formats a change with its sign: `+4.20`.
fn signed(subject: &Subject, effect: &Effect) -> String {
    words::change(subject, &effect.found).trim_end_matches(" %").to_owned()
}

/// Returns the growth of the answer with the number, one sentence per change of another factor.
pub(super) fn trends(summary: &StudySummary<'_>) -> Vec<Lead> {
    let Some(subject) = summary.asked().filter(|_| !effects(summary).is_empty()) else {
        return Vec::new();
    };
    let grows =
        |effect: &&Effect| effect.kind == EffectKind::Trend && !effect.change.changed.is_empty();
    let lead = |effect: &Effect| {
        let sentence = format!(
            "{}: {} {}, {}.",
            words::label(effect),
            subject.title(),
            words::change_with_interval(subject, &effect.found),
            words::verdict(&effect.found, subject.margin_percent)
        );
        Lead::new("Trend", sentence, words::mood_of([effect.found.verdict]))
    };
    subject.effects.iter().filter(grows).map(lead).collect()
}
