//! Adjustment of verdicts for testing several effects on several metrics. The answers of a study
//! are its main effects and interactions, or its trends if it has no main effects: they are one
//! family (Holm). All other effects explain them, and each kind of these is a family. A level has
//! no effect at fixed levels of other factors unless it has one on average or an interaction, so an
//! explaining verdict counts only if an answer about one of its changes permits it. The primary
//! metric precedes the others in the same way.

use numalab_stats::{Comparison, adjust_verdicts, gate};

use super::{Effect, EffectKind, Subject};

/// Adjusts the verdicts of all effects, and likewise those from first samples.
pub(super) fn adjust(subjects: &mut [Subject]) {
    let found = adjusted(subjects, |effect| &effect.found);
    let first = adjusted(subjects, |effect| effect.first.as_ref().unwrap_or(&effect.found));
    let effects = subjects.iter_mut().flat_map(|subject| &mut subject.effects);
    for ((effect, found), first) in effects.zip(found).zip(first) {
        effect.found = found;
        effect.first = effect.first.is_some().then_some(first);
    }
}

/// Returns the adjusted comparisons of all effects, in order.
fn adjusted(subjects: &[Subject], of: impl Fn(&Effect) -> &Comparison) -> Vec<Comparison> {
    let effects: Vec<(&Subject, &Effect)> = subjects
        .iter()
        .flat_map(|subject| subject.effects.iter().map(move |effect| (subject, effect)))
        .collect();
    let mut found: Vec<Comparison> = effects.iter().map(|(_, effect)| of(effect).clone()).collect();
    let has_main = effects.iter().any(|(_, effect)| effect.kind == EffectKind::Main);
    let is_answer = |effect: &Effect| match effect.kind {
        EffectKind::Main | EffectKind::Interaction => true,
        EffectKind::Within | EffectKind::Together => false,
        EffectKind::Trend => !has_main,
    };
    let family = |is_in: &dyn Fn(&Effect) -> bool, is_primary: bool| -> Vec<usize> {
        let of = |at: &usize| effects[*at].0.is_primary == is_primary && is_in(effects[*at].1);
        (0..effects.len()).filter(of).collect()
    };
    for is_primary in [true, false] {
        change(&mut found, &family(&is_answer, is_primary), adjust_verdicts);
        for kind in EffectKind::ALL {
            let explains = |effect: &Effect| effect.kind == kind && !is_answer(effect);
            change(&mut found, &family(&explains, is_primary), adjust_verdicts);
        }
    }
    let answers = picked(&found, &family(&is_answer, true));
    change(&mut found, &family(&|_| true, false), |rest| gate(&answers, rest));
    let explaining = (0..effects.len()).filter(|at| !is_answer(effects[*at].1));
    for at in explaining {
        let (of, effect) = effects[at];
        let is_about = |by: &usize| {
            let (subject, answer) = effects[*by];
            std::ptr::eq(subject, of) && is_answer(answer) && shares_a_change(answer, effect)
        };
        let about: Vec<usize> = (0..effects.len()).filter(is_about).collect();
        let answers = picked(&found, &about);
        change(&mut found, &[at], |explaining| gate(&answers, explaining));
    }
    found
}

fn shares_a_change(one: &Effect, other: &Effect) -> bool {
    one.change.changed.iter().any(|change| other.change.changed.contains(change))
}

fn picked(found: &[Comparison], places: &[usize]) -> Vec<Comparison> {
    places.iter().map(|at| found[*at].clone()).collect()
}

/// Changes the comparisons at some places together.
fn change(found: &mut [Comparison], places: &[usize], by: impl FnOnce(&mut [Comparison])) {
    let mut of_places = picked(found, places);
    by(&mut of_places);
    for (at, comparison) in places.iter().zip(of_places) {
        found[*at] = comparison;
    }
}
