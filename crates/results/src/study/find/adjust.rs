//! Adjustment of verdicts for testing several metrics.

use numalab_stats::{Comparison, adjust_verdicts_in_order};

use super::{Effect, EffectKind, Subject};

/// Adjusts the effects of one kind: the primary metric's first, at the full level, then the others
/// as one family; without a primary metric, all of them are one family. The verdicts from first
/// samples are adjusted likewise.
pub(super) fn adjust(subjects: &mut [Subject], kind: EffectKind) {
    let flagged = subjects.iter_mut().flat_map(|subject| {
        let is_primary = subject.is_primary;
        subject.effects.iter_mut().map(move |effect| (is_primary, effect))
    });
    let (primary, rest): (Vec<_>, Vec<_>) =
        flagged.filter(|(_, effect)| effect.kind == kind).partition(|(primary, _)| *primary);
    let mut primary: Vec<&mut Effect> = primary.into_iter().map(|(_, effect)| effect).collect();
    let mut rest: Vec<&mut Effect> = rest.into_iter().map(|(_, effect)| effect).collect();
    let found = |effects: &[&mut Effect]| -> Vec<Comparison> {
        effects.iter().map(|effect| effect.found.clone()).collect()
    };
    let (mut first, mut others) = (found(&primary), found(&rest));
    adjust_verdicts_in_order(&mut first, &mut others);
    put(&mut primary, first, |effect, found| effect.found = found);
    put(&mut rest, others, |effect, found| effect.found = found);
    let as_first_taken = |effects: &[&mut Effect]| -> Vec<Comparison> {
        let of = effects.iter().map(|effect| effect.first.as_ref().unwrap_or(&effect.found));
        of.cloned().collect()
    };
    let (mut first, mut others) = (as_first_taken(&primary), as_first_taken(&rest));
    adjust_verdicts_in_order(&mut first, &mut others);
    let keep = |effect: &mut Effect, found| effect.first = effect.first.is_some().then_some(found);
    put(&mut primary, first, keep);
    put(&mut rest, others, keep);
}

fn put(effects: &mut [&mut Effect], found: Vec<Comparison>, to: impl Fn(&mut Effect, Comparison)) {
    effects.iter_mut().zip(found).for_each(|(effect, found)| to(effect, found));
}
