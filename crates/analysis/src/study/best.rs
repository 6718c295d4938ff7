//! Which treatment is best on the metric that answers the question.

use numalab_record::study::FactorKind;
use numalab_stats::{Direction, Verdict};

use super::{Effect, StudySummary, Subject};

/// The treatment with the best median of the metric that a study asks about.
#[derive(Clone, Copy, Debug)]
pub struct Best<'a> {
    /// The metric.
    pub subject: &'a Subject,
    /// The treatment.
    pub treatment: usize,
    /// Its median.
    pub median: f64,
    /// The median of the baseline.
    pub baseline: f64,
    /// What was found of it against the baseline; `None` if it is the baseline.
    pub effect: Option<&'a Effect>,
}

impl Best<'_> {
    /// Whether it is shown to be better than the baseline: the best of several medians always
    /// looks better than it is.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.effect.is_some_and(|effect| effect.found.verdict == Verdict::Better)
    }
}

impl StudySummary<'_> {
    /// The metric that answers the question: the primary one, or the only one that is tested.
    #[must_use]
    pub fn asked(&self) -> Option<&Subject> {
        let mut tested = self.subjects.iter().filter(|subject| !subject.is_fact);
        match (tested.next(), tested.next()) {
            (Some(first), second) if first.is_primary || second.is_none() => Some(first),
            _ => None,
        }
    }

    /// The best treatment, where treatments are choices and some block is finished. Of equal
    /// ones it is the first.
    #[must_use]
    pub fn best(&self) -> Option<Best<'_>> {
        let run = &self.document.run;
        let subject = self.asked()?;
        if run.factors.iter().any(|factor| factor.kind == FactorKind::Scale) {
            return None;
        }
        let medians: Option<Vec<f64>> =
            (0..run.treatments.len()).map(|treatment| subject.median(treatment)).collect();
        let medians = medians?;
        let is_better = |one: f64, other: f64| match subject.quantity.better {
            Direction::LowerIsBetter => one < other,
            Direction::HigherIsBetter => one > other,
        };
        let (mut treatment, baseline) = (0, *medians.first()?);
        for (at, median) in medians.iter().enumerate() {
            if is_better(*median, medians[treatment]) {
                treatment = at;
            }
        }
        let against = |effect: &&Effect| effect.sides == Some((0, treatment));
        let effect = subject.effects.iter().find(against);
        Some(Best { subject, treatment, median: medians[treatment], baseline, effect })
    }
}
