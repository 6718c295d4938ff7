//! Findings about a study apart from its effects, as values.

use numalab_record::study::{CachedFile, EndReason, JournalEntry};
use numalab_stats::Ground;
use serde::Serialize;

use super::aa::AaArm;
use super::best::BestTreatment;
use super::published::PublishedMetric;
use super::walks::PageWalks;
use super::{Change, Effect, StudySummary, Subject};
use crate::Finding;
use crate::shape::{Tail, TwoModes};

/// The p-value below which the baseline differs from itself.
const FALSE_POSITIVE_P: f64 = 0.05;

/// A finding about a study as a whole; its evidence is the effects that show it.
pub type StudyFinding = Finding<StudyObservation, EffectOf>;

/// The name of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EffectOf {
    /// The workload's name.
    pub workload: String,
    /// The metric's name.
    pub metric: String,
    /// The change under test.
    #[serde(flatten)]
    pub change: Change,
}

impl EffectOf {
    fn new(subject: &Subject, effect: &Effect) -> Self {
        let (workload, metric) = (subject.name.clone(), subject.quantity.metric.clone());
        Self { workload, metric, change: effect.change.clone() }
    }
}

/// An observation about a study as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StudyObservation {
    /// No block is finished yet.
    Unfinished,
    /// Several metrics are tested, and no primary metric is named.
    NoPrimary,
    /// The primary metric has no values.
    PrimaryWithoutValues {
        /// The primary metric's name.
        primary: String,
    },
    /// The factor under study cannot act on this machine.
    CannotShow {
        /// The factor's name.
        factor: String,
        /// The upper bound on its cost.
        cost: Option<CostBound>,
    },
    /// No command mentions the factor under study, which is only passed as a variable.
    Unmentioned {
        /// The factor's name.
        factor: String,
        /// The variable that has its level.
        variable: String,
        /// The metric with the most noise; `None` if the blocks are too few.
        noise: Option<MetricNoise>,
    },
    /// The best of several treatments by the metric that answers the question.
    Best(BestTreatment),
    /// Figures were published for a metric, on another machine.
    Published(PublishedMetric),
    /// The memory emulator counted page walks.
    PageWalks(PageWalks),
    /// The tails of the two sides of an answer differ; the evidence is that answer.
    Tails {
        /// The percentile and the size of the difference.
        #[serde(flatten)]
        tail: Tail,
        /// The unit of the values.
        unit: String,
    },
    /// The values of a treatment have two modes.
    TwoModes {
        /// The workload's name.
        workload: String,
        /// The metric's name.
        metric: String,
        /// The unit of the values.
        unit: String,
        /// The treatment's name.
        treatment: String,
        /// The two groups of values.
        #[serde(flatten)]
        modes: TwoModes,
    },
    /// Some planned blocks are not finished.
    Incomplete {
        /// Number of blocks analysed.
        finished: usize,
        /// Number of blocks planned.
        planned: usize,
        /// The reason for the end of the last session; `None` if it was killed.
        reason: Option<EndReason>,
    },
    /// Some samples were disturbed; the evidence is the effects with a different verdict on first
    /// samples.
    Disturbed {
        /// Number of samples taken.
        samples: usize,
        /// Number of samples that were disturbed.
        disturbed: usize,
        /// True if disturbed samples are repeated.
        is_repeated: bool,
    },
    /// Other load disturbed most samples, so repeats stopped once that was evident.
    SharedMachine {
        /// Number of samples taken.
        samples: usize,
        /// Number of samples that were disturbed.
        disturbed: usize,
        /// True if intervals are at least as wide as the A/A arm's.
        is_allowed_for: bool,
    },
    /// Samples read large files. Their pages in the page cache are where the first reader placed
    /// them.
    Files {
        /// The largest number of bytes that were read again before a sample, under its own
        /// treatment.
        renewed_bytes: u64,
        /// The largest number of bytes of a sample that stayed in the page cache where another
        /// sample had read them.
        kept_bytes: u64,
        /// The file with most of the bytes that stayed.
        kept: Option<String>,
    },
    /// The baseline is compared with itself; the threshold is the p-value below which the two
    /// differ.
    BaselineAgainstItself {
        /// Number of metrics compared.
        metrics: usize,
        /// Number of metrics in which the baseline differs from itself.
        differing: usize,
        /// The consequence for effects.
        own: OwnDifference,
    },
}

/// An upper bound on the cost of a change that cannot act, on the metric that answers the question.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CostBound {
    /// The worse end of the widest interval.
    Most {
        /// The workload and the metric.
        metric: String,
        /// The bound in percent; 0 if all intervals show a gain.
        percent: f64,
    },
    /// The blocks are too few for an interval.
    TooFew {
        /// Number of blocks analysed.
        blocks: usize,
        /// Minimum number of blocks that give an interval.
        needed: usize,
    },
}

/// The difference that a metric can show between runs in which nothing was changed.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MetricNoise {
    /// The workload and the metric.
    pub metric: String,
    /// The farther end of its interval in percent.
    pub percent: f64,
}

/// The effects that the study could detect, judged by the baseline against itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OwnDifference {
    /// With so few blocks no test can reach the level, so the absence of false positives proves
    /// nothing.
    TooFewBlocks {
        /// Number of blocks analysed.
        blocks: usize,
        /// Minimum number of blocks with which a test could reach it.
        needed: usize,
        /// The largest change of the baseline against itself, in percent.
        greatest_percent: Option<f64>,
    },
    /// The blocks suffice.
    Least {
        /// The smallest and largest of the metrics' minimum detectable effects, in percent.
        percent: Option<[f64; 2]>,
    },
}

impl StudySummary<'_> {
    /// Returns all findings about the study as a whole, in the order of its report.
    pub fn findings(&self) -> Vec<StudyFinding> {
        let best = self.best().map(|best| Finding::new(StudyObservation::Best(best)));
        let published = self.published().into_iter().map(StudyObservation::Published);
        let first = [self.unanswered(), self.cannot_show(), self.unmentioned(), best];
        let first = first.into_iter().flatten();
        let walks = self.page_walks().into_iter().map(StudyObservation::PageWalks);
        let first = first.chain(published.chain(walks).map(Finding::new));
        let shapes = self.tails().chain(self.modes()).chain(self.incomplete());
        let samples = [self.disturbances()].into_iter().chain(self.files());
        first.chain(shapes).chain(samples).chain(self.against_itself()).collect()
    }

    fn unanswered(&self) -> Option<StudyFinding> {
        let what = match (&self.document.run.rules.primary, self.asked()) {
            _ if self.answers().next().is_none() => StudyObservation::Unfinished,
            (Some(primary), asked) if !asked.is_some_and(|subject| subject.is_primary) => {
                StudyObservation::PrimaryWithoutValues { primary: primary.clone() }
            }
            // If the factor cannot act, that is the answer.
            (None, None) if self.cannot_show().is_none() => StudyObservation::NoPrimary,
            _ => return None,
        };
        Some(Finding::new(what))
    }

    fn tails(&self) -> impl Iterator<Item = StudyFinding> {
        self.answers().filter_map(|(subject, effect)| {
            let tail = effect.tail.clone()?;
            let unit = subject.quantity.unit.clone();
            let found = Finding::new(StudyObservation::Tails { tail, unit });
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
            Some(JournalEntry::Ended { reason: EndReason::Done, .. }) => return None,
            Some(JournalEntry::Ended { reason, .. }) => Some(reason.clone()),
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

    fn files(&self) -> Option<StudyFinding> {
        let samples = || self.document.samples().map(|sample| &sample.observation.files);
        let most = |bytes: fn(&CachedFile) -> u64| {
            samples().map(|files| files.iter().map(bytes).sum::<u64>()).max().unwrap_or(0)
        };
        let (renewed_bytes, kept_bytes) = (most(|of| of.dropped_bytes), most(|of| of.kept_bytes));
        let largest = samples().flatten().max_by_key(|of| of.kept_bytes);
        let kept = largest.filter(|of| of.kept_bytes > 0).map(|of| of.path.clone());
        let what = StudyObservation::Files { renewed_bytes, kept_bytes, kept };
        (renewed_bytes + kept_bytes > 0).then(|| Finding::new(what))
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
