//! What a study's samples say beside its effects, as values.

use numalab_record::study::{EndReason, Entry};
use numalab_stats::Ground;
use serde::Serialize;

use super::aa::AaArm;
use super::best::BestTreatment;
use super::{Change, Effect, StudySummary, Subject};
use crate::Finding;
use crate::shape::{FarEnd, TwoModes};

/// Below this p the baseline differs from itself.
const FALSE_POSITIVE_P: f64 = 0.05;

/// Something found about a study as a whole; the evidence is the effects that show it.
pub type StudyFinding = Finding<StudyObservation, EffectOf>;

/// An effect by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectOf {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// What is changed.
    #[serde(flatten)]
    pub change: Change,
}

impl EffectOf {
    fn new(subject: &Subject, effect: &Effect) -> Self {
        let (workload, metric) = (subject.name.clone(), subject.quantity.metric.clone());
        Self { workload, metric, change: effect.change.clone() }
    }
}

/// What was found about a study as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StudyObservation {
    /// No block is finished.
    Unfinished,
    /// Several metrics are tested, and none is named that answers the question.
    NoPrimary,
    /// The metric that answers the question has no values.
    PrimaryWithoutValues {
        /// Its name.
        primary: String,
    },
    /// What the study changes cannot act on this machine.
    CannotShow {
        /// The factor.
        factor: String,
        /// What it costs at most.
        cost: Option<CostBound>,
    },
    /// The best of several treatments on the metric that answers the question.
    Best(BestTreatment),
    /// The far ends of an answer's two sides differ; the evidence is the answer.
    FarEnds {
        /// Where they differ, and by how much.
        #[serde(flatten)]
        far_end: FarEnd,
        /// The unit of the values.
        unit: String,
    },
    /// The values of a treatment have two modes.
    TwoModes {
        /// The workload.
        workload: String,
        /// The metric.
        metric: String,
        /// Its unit.
        unit: String,
        /// The treatment.
        treatment: String,
        /// The two groups.
        #[serde(flatten)]
        modes: TwoModes,
    },
    /// Not every planned block is finished.
    Incomplete {
        /// Blocks that are judged.
        finished: usize,
        /// Blocks that were planned.
        planned: usize,
        /// Why the last session ended; `None` if it was killed.
        reason: Option<EndReason>,
    },
    /// How many samples were disturbed; the evidence is the effects which have another verdict
    /// with the samples as they first came.
    Disturbed {
        /// Samples taken.
        samples: usize,
        /// Those of them that were disturbed.
        disturbed: usize,
        /// Whether disturbed samples are taken again.
        is_repeated: bool,
    },
    /// Other load disturbed most samples, so that none was taken again once that was seen.
    SharedMachine {
        /// Samples taken.
        samples: usize,
        /// Those of them that were disturbed.
        disturbed: usize,
        /// Whether intervals are at least as wide as that of the baseline against itself.
        is_allowed_for: bool,
    },
    /// The baseline against itself; the threshold is the p below which it differs.
    BaselineAgainstItself {
        /// Metrics compared.
        metrics: usize,
        /// Those in which it differs from itself.
        differing: usize,
        /// What follows for effects.
        own: OwnDifference,
    },
}

/// What a change that cannot act costs at most on the metric that answers the question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CostBound {
    /// The worse end of the widest interval, in percent.
    Most {
        /// The metric with its workload.
        metric: String,
        /// The bound; 0 where every interval says that it gains.
        percent: f64,
    },
    /// There is no interval with so few blocks.
    TooFew {
        /// Blocks that are judged.
        blocks: usize,
        /// The fewest with which there is one.
        needed: usize,
    },
}

/// What the baseline against itself says of the effects that the study could see.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OwnDifference {
    /// No test can reach the level with so few blocks: that none does reassures nobody.
    TooFewBlocks {
        /// Blocks that are judged.
        blocks: usize,
        /// The fewest with which a test could.
        needed: usize,
        /// The greatest change of the baseline against itself, in percent.
        greatest_percent: Option<f64>,
    },
    /// There are enough blocks.
    Least {
        /// The least and the greatest of the effects that could just be seen, in percent.
        percent: Option<[f64; 2]>,
    },
}

impl StudySummary<'_> {
    /// Everything found about the study as a whole, in the order of its report.
    #[must_use]
    pub fn findings(&self) -> Vec<StudyFinding> {
        let best = self.best().map(|best| Finding::new(StudyObservation::Best(best)));
        let first = [self.unanswered(), self.cannot_show(), best].into_iter().flatten();
        let shapes = self.far_ends().chain(self.modes()).chain(self.incomplete());
        first.chain(shapes).chain([self.disturbances()]).chain(self.against_itself()).collect()
    }

    fn unanswered(&self) -> Option<StudyFinding> {
        let what = match (&self.document.run.rules.primary, self.asked()) {
            _ if self.answers().next().is_none() => StudyObservation::Unfinished,
            (Some(primary), asked) if !asked.is_some_and(|subject| subject.is_primary) => {
                StudyObservation::PrimaryWithoutValues { primary: primary.clone() }
            }
            (None, None) => StudyObservation::NoPrimary,
            _ => return None,
        };
        Some(Finding::new(what))
    }

    fn far_ends(&self) -> impl Iterator<Item = StudyFinding> {
        self.answers().filter_map(|(subject, effect)| {
            let far_end = effect.far_end.clone()?;
            let unit = subject.quantity.unit.clone();
            let found = Finding::new(StudyObservation::FarEnds { far_end, unit });
            Some(found.shown_by(vec![EffectOf::new(subject, effect)]))
        })
    }

    fn modes(&self) -> impl Iterator<Item = StudyFinding> {
        self.subjects.iter().flat_map(|subject| {
            let treatments = self.document.run.treatments.iter().zip(&subject.modes);
            treatments.filter_map(|(treatment, modes)| {
                Some(Finding::new(StudyObservation::TwoModes {
                    workload: subject.name.clone(),
                    metric: subject.quantity.metric.clone(),
                    unit: subject.quantity.unit.clone(),
                    treatment: treatment.name.clone(),
                    modes: modes.clone()?,
                }))
            })
        })
    }

    fn incomplete(&self) -> Option<StudyFinding> {
        let reason = match self.document.journal.last() {
            Some(Entry::Ended { reason: EndReason::Done, .. }) => return None,
            Some(Entry::Ended { reason, .. }) => Some(reason.clone()),
            _ => None,
        };
        let finished = self.subjects.iter().map(Subject::blocks).min().unwrap_or(0);
        let planned = self.document.run.rules.blocks;
        Some(Finding::new(StudyObservation::Incomplete { finished, planned, reason }))
    }

    fn disturbances(&self) -> StudyFinding {
        let (samples, disturbed) = self
            .disturbed()
            .into_iter()
            .fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
        let is_repeated = self.document.run.rules.repeats > 0;
        let is_allowed_for = self.subjects.iter().any(|subject| subject.aa.is_some());
        let what = match self.is_shared {
            true => StudyObservation::SharedMachine { samples, disturbed, is_allowed_for },
            false => StudyObservation::Disturbed { samples, disturbed, is_repeated },
        };
        let differ = self.answers().filter(|(_, effect)| effect.verdicts_differ());
        let differ = differ.map(|(subject, effect)| EffectOf::new(subject, effect));
        Finding::new(what).shown_by(differ.collect())
    }

    fn against_itself(&self) -> Option<StudyFinding> {
        let arms: Vec<_> = self.subjects.iter().filter_map(|s| s.aa.as_ref()).collect();
        let blocks = self.subjects.iter().map(Subject::blocks).min().unwrap_or(0);
        let what = StudyObservation::BaselineAgainstItself {
            metrics: arms.len(),
            differing: arms.iter().filter(|arm| arm.found.difference.p <= FALSE_POSITIVE_P).count(),
            own: own_difference(&arms, blocks),
        };
        (!arms.is_empty()).then(|| Finding::new(what).over(FALSE_POSITIVE_P))
    }
}

fn own_difference(arms: &[&AaArm], blocks: usize) -> OwnDifference {
    let needed = arms.iter().filter_map(|arm| match arm.found.ground {
        Ground::TooFew { needed } => Some(needed),
        _ => None,
    });
    if let Some(needed) = needed.max() {
        let changes = arms.iter().filter_map(|arm| arm.found.percent()).map(f64::abs);
        let greatest_percent = changes.max_by(f64::total_cmp);
        return OwnDifference::TooFewBlocks { blocks, needed, greatest_percent };
    }
    let least = arms.iter().filter_map(|arm| arm.found.least_detectable_percent());
    let percent = least.fold(None, |range: Option<[f64; 2]>, least| match range {
        None => Some([least; 2]),
        Some([low, high]) => Some([low.min(least), high.max(least)]),
    });
    OwnDifference::Least { percent }
}
