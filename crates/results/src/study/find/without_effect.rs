//! Studies of factors that cannot act on the machine they ran on, or that no command mentions.

use numalab_record::study::Notice;
use numalab_stats::{Direction, Ground, Interval};

use super::{CostBound, MetricNoise, StudyFinding, StudyObservation, StudySummary};
use crate::Finding;

impl StudySummary<'_> {
    /// Returns the notice, given before the start, that explains why a factor cannot act.
    pub fn why_without_effect(&self, factor: &str) -> Option<&Notice> {
        let of_factor = |knob: &str| factor == knob || factor.ends_with(&format!(":{knob}"));
        self.notices().into_iter().find(|notice| match notice {
            Notice::KnobWithoutEffect { knob, .. } | Notice::GuestOfOneNode { knob } => {
                of_factor(knob)
            }
            Notice::PolicyWithoutEffect => of_factor("policy"),
            _ => false,
        })
    }

    /// Returns a finding if the study's only factor cannot act on this machine.
    pub(super) fn cannot_show(&self) -> Option<StudyFinding> {
        let [factor] = &self.document.run.factors[..] else { return None };
        self.why_without_effect(&factor.name)?;
        let factor = factor.name.clone();
        Some(Finding::new(StudyObservation::CannotShow { factor, cost: self.cost() }))
    }

    /// Returns a finding if the study's only factor is a variable that no command mentions, so that
    /// its levels are probably the same.
    pub(super) fn unmentioned(&self) -> Option<StudyFinding> {
        let [factor] = &self.document.run.factors[..] else { return None };
        let variable = self.notices().into_iter().find_map(|notice| match notice {
            Notice::OnlyInEnvironment { setting, variable } if *setting == factor.name => {
                Some(variable.clone())
            }
            _ => None,
        })?;
        let farthest = |interval: Interval| interval.lo.abs().max(interval.hi.abs());
        let noise = self.answers().filter_map(|(subject, effect)| {
            let percent = farthest(effect.found.percent_interval()?);
            Some(MetricNoise { metric: subject.title(), percent })
        });
        let noise = noise.max_by(|a, b| a.percent.total_cmp(&b.percent));
        let factor = factor.name.clone();
        Some(Finding::new(StudyObservation::Unmentioned { factor, variable, noise }))
    }

    /// Bounds the cost on the metric that answers the question, or else on the one with the loosest
    /// bound.
    fn cost(&self) -> Option<CostBound> {
        let asked = self.asked();
        let is_asked = |subject| asked.is_none_or(|asked| std::ptr::eq(asked, subject));
        let answers: Vec<_> = self.answers().filter(|(subject, _)| is_asked(*subject)).collect();
        let too_few = answers.iter().find_map(|(subject, effect)| match effect.found.ground {
            Ground::TooFew { needed } => {
                Some(CostBound::TooFew { blocks: subject.blocks(), needed })
            }
            _ => None,
        });
        let bounds = answers.iter().filter_map(|(subject, effect)| {
            // Without variance there is no interval, and the effect is exact.
            let exact = effect.found.percent().map(|percent| Interval { lo: percent, hi: percent });
            let interval = effect.found.percent_interval().or(exact)?;
            let worse = match subject.quantity.better {
                Direction::LowerIsBetter => interval.hi,
                Direction::HigherIsBetter => -interval.lo,
            };
            Some((subject.title(), worse.max(0.0)))
        });
        let most = bounds.max_by(|a, b| a.1.total_cmp(&b.1));
        let most = most.map(|(metric, percent)| CostBound::Most { metric, percent });
        too_few.or(most)
    }
}
