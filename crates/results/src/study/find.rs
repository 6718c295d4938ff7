//! Analysis of a study: samples in blocks become effects and verdicts.

use std::collections::BTreeMap;

use numalab_record::study::{
    Cells, Counted, JournalEntry, Notice, Quantity, SampleEntry, StudyDocument,
};
use numalab_record::{Fact, SharedMachine};
use numalab_stats::{
    Comparison, Confidence, Criteria, Direction, Draws, Estimate, Extreme, Margin, Resampling,
    Sample, Test, Verdict, bootstrap_bca, paired_permutation,
};

use crate::shape::{Tail, TwoModes};

mod aa;
mod adjust;
mod best;
mod contrasts;
mod finding;
mod guests;
mod looks;
mod pair;
mod published;
mod shapes;
mod walks;
mod without_effect;
mod worse;

use aa::aa_arm;
use adjust::adjust;
use contrasts::{PlannedContrast, asked};
use looks::Looks;
use shapes::{modes, tails};

pub use aa::AaArm;
pub use best::BestTreatment;
pub use contrasts::{Change, EffectKind, HeldLevel, LevelChange};
pub use finding::{
    CostBound, EffectOf, MetricNoise, OwnDifference, StudyFinding, StudyObservation,
};
pub use guests::GuestMap;
pub use pair::{PairRow, StudyPair};
pub use published::{PublishedChange, PublishedMetric};
pub use walks::{PageWalks, TreatmentWalks};

/// Number of random sign patterns where an exact permutation test would be too large, and of
/// bootstrap resamples. With the observed one there are 10,000, so p-values are multiples of
/// 0.0001.
const DRAWS: usize = 9_999;
const RESAMPLES: usize = 2_999;

/// A study with all its effects and findings.
#[derive(Clone, Debug)]
pub struct StudySummary<'a> {
    pub document: &'a StudyDocument,
    /// All metrics of all workloads, the primary one first.
    pub subjects: Vec<Subject>,
    /// Number of times the results could have been looked at, including now: each look gets its
    /// share of the permitted error (`Confidence::at_look`).
    pub looks: usize,
    /// The confidence level of all intervals and tests.
    pub confidence: Confidence,
    /// True if other load disturbed most samples; intervals are then at least as wide as the A/A
    /// arm's.
    pub is_shared: bool,
}

/// The results for one metric of one workload.
#[derive(Clone, Debug)]
pub struct Subject {
    pub workload: usize,
    pub name: String,
    /// The metric with its unit and direction.
    pub quantity: Quantity,
    /// True if the metric answers the study's question.
    pub is_primary: bool,
    /// True if the metric is shown but not tested: it has no effects and no A/A arm.
    pub is_fact: bool,
    /// The equivalence margin in percent: smaller changes count as none.
    pub margin_percent: f64,
    /// The values that count, by block and treatment.
    pub cells: Cells,
    /// The comparisons that the study makes.
    pub effects: Vec<Effect>,
    /// The baseline against itself, if measured.
    pub aa: Option<AaArm>,
    /// For each treatment, its values' two modes, if there are two; always `None` for facts.
    pub modes: Vec<Option<TwoModes>>,
}

/// One comparison on one metric.
#[derive(Clone, Debug)]
pub struct Effect {
    pub kind: EffectKind,
    pub change: Change,
    /// The treatments of the two sides, if there are exactly two.
    pub sides: Option<(usize, usize)>,
    /// The result. Its verdict is adjusted for all effects and metrics of the study (`adjust`).
    pub found: Comparison,
    /// The result with the first sample of each cell, disturbed or not.
    pub first: Option<Comparison>,
    /// The effect in each block, as a log ratio, or as a difference where ratios do not exist.
    pub differences: Vec<f64>,
    /// The mean effect (of log ratios: the geometric mean) with its BCa bootstrap interval.
    pub bootstrap: Estimate,
    /// The permutation test on the mean effect.
    pub permutation: Test,
    /// Percentiles of the worse tail for which both sides have enough values.
    pub extremes: Vec<Extreme>,
    /// The percentile at which the two sides' tails differ.
    pub tail: Option<Tail>,
}

impl<'a> StudySummary<'a> {
    /// Analyses all finished blocks of a study.
    pub fn of(document: &'a StudyDocument) -> Self {
        let asked = asked(&document.run);
        let Looks { now: looks, later } = Looks::of(&document.journal);
        let confidence = Confidence::P95.at_look(looks);
        let levels = [confidence, Confidence::P95.at_look(later)];
        let mut subjects: Vec<Subject> = quantities(document)
            .into_iter()
            .map(|(workload, quantity)| subject(document, &asked, (workload, quantity), levels))
            .collect();
        subjects.sort_by_key(|subject| !subject.is_primary);
        adjust(&mut subjects);
        let is_shared = SharedMachine::of(document.samples()).is_found();
        if is_shared {
            subjects.iter_mut().for_each(Subject::widen_to_aa);
        }
        Self { document, subjects, looks, confidence, is_shared }
    }

    /// Returns the effects of one kind with their subjects, in order.
    pub fn effects(&self, kind: EffectKind) -> impl Iterator<Item = (&Subject, &Effect)> {
        self.subjects.iter().flat_map(move |subject| {
            let of_kind = subject.effects.iter().filter(move |effect| effect.kind == kind);
            of_kind.map(move |effect| (subject, effect))
        })
    }

    /// Returns the effects that answer the study's question: main effects, or trends if there are
    /// none.
    pub fn answers(&self) -> impl Iterator<Item = (&Subject, &Effect)> {
        let main = self.effects(EffectKind::Main).next().is_some();
        self.effects(if main { EffectKind::Main } else { EffectKind::Trend })
    }

    /// Returns `true` if every answer's interval extends at most `percent` to either side.
    pub fn is_precise(&self, percent: f64) -> bool {
        let mut answers = self.answers().peekable();
        let narrow = |effect: &Effect| {
            let interval = effect.found.percent_interval();
            interval.is_some_and(|interval| interval.half_width() <= percent)
        };
        answers.peek().is_some() && answers.all(|(_, effect)| narrow(effect))
    }

    /// Returns the backend's notices from before the start, without duplicates.
    pub fn notices(&self) -> Vec<&Notice> {
        let mut notices: Vec<&Notice> = Vec::new();
        for entry in &self.document.journal {
            let JournalEntry::Began { notices: found, .. } = entry else { continue };
            for notice in found {
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
        notices
    }

    /// Returns the environment of the first session.
    pub fn first_facts(&self) -> BTreeMap<String, Fact> {
        let mut began = self.document.journal.iter().filter_map(|entry| match entry {
            JournalEntry::Began { environment, .. } => Some(environment.facts.clone()),
            _ => None,
        });
        began.next().unwrap_or_default()
    }

    /// Returns the facts of the environment that differ between sessions: one value per session, by
    /// name.
    pub fn changed_facts(&self) -> BTreeMap<String, Vec<String>> {
        let sessions: Vec<_> = self
            .document
            .journal
            .iter()
            .filter_map(|entry| match entry {
                JournalEntry::Began { environment, .. } => Some(environment),
                _ => None,
            })
            .collect();
        let mut changed = BTreeMap::new();
        let Some((first, rest)) = sessions.split_first() else { return changed };
        for other in rest {
            for (name, ..) in first.differences(other) {
                let value = |session: &&numalab_record::Environment| {
                    session.fact(name).map_or_else(|| "–".to_owned(), ToString::to_string)
                };
                changed.insert(name.to_owned(), sessions.iter().map(value).collect());
            }
        }
        changed
    }

    /// Returns, for each treatment, the number of samples taken and the number of those disturbed,
    /// without warm-ups.
    pub fn disturbed(&self) -> Vec<(usize, usize)> {
        let mut counts = vec![(0, 0); self.document.run.treatments.len()];
        let warm_ups = self.document.run.rules.warm_ups;
        for sample in self.document.samples().filter(|sample| sample.block >= warm_ups) {
            if let Some((taken, disturbed)) = counts.get_mut(sample.treatment) {
                *taken += 1;
                *disturbed += usize::from(!sample.observation.disturbances.is_empty());
            }
        }
        counts
    }

    /// Returns the medians of a workload's counters, by counter and treatment.
    pub fn counters(&self, workload: usize) -> BTreeMap<String, Vec<Option<f64>>> {
        let treatments = self.document.run.treatments.len();
        let warm_ups = self.document.run.rules.warm_ups;
        let counted = self.document.counted(Counted::Undisturbed);
        let samples: Vec<&SampleEntry> = counted
            .into_values()
            .filter(|sample| sample.workload == workload && sample.block >= warm_ups)
            .collect();
        let mut values: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
        for sample in samples {
            for (name, value) in &sample.observation.counters {
                let columns = values.entry(name.clone()).or_insert(vec![Vec::new(); treatments]);
                if let Some(column) = columns.get_mut(sample.treatment) {
                    column.push(*value);
                }
            }
        }
        let median = |column: Vec<f64>| Sample::new(column).ok().map(|sample| sample.median());
        let medians = |columns: Vec<Vec<f64>>| columns.into_iter().map(median).collect();
        values.into_iter().map(|(name, columns)| (name, medians(columns))).collect()
    }
}

impl Subject {
    /// Returns workload and metric: `sched-pipe time-per-op`.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.quantity.metric)
    }

    /// Returns the median of a treatment.
    pub fn median(&self, treatment: usize) -> Option<f64> {
        let column = self.cells.treatments.get(treatment)?;
        Sample::new(column.clone()).ok().map(|sample| sample.median())
    }

    /// Returns the change in percent between two treatments: as the study estimates it, or of the
    /// medians if it does not compare these two.
    pub fn change_percent(&self, (baseline, changed): (usize, usize)) -> Option<f64> {
        let mut effects = self.effects.iter();
        let effect = effects.find(|effect| effect.sides == Some((baseline, changed)));
        let of_medians = || {
            let [from, to] = [self.median(baseline)?, self.median(changed)?];
            (from > 0.0).then(|| 100.0 * (to / from - 1.0))
        };
        effect.and_then(|effect| effect.found.percent()).or_else(of_medians)
    }

    /// Widens intervals to at least the A/A arm's: an error that a shared machine shows between
    /// equal treatments can occur between different ones too.
    fn widen_to_aa(&mut self) {
        let Some(aa) = &self.aa else { return };
        let effects = self.effects.iter_mut();
        let found =
            effects.flat_map(|effect| std::iter::once(&mut effect.found).chain(&mut effect.first));
        found.for_each(|found| found.widen_to(&aa.found));
    }

    /// Returns the number of blocks analysed.
    pub fn blocks(&self) -> usize {
        self.cells.blocks.len()
    }
}

impl Effect {
    /// Returns `true` if the first samples of each cell lead to another verdict.
    pub fn verdicts_differ(&self) -> bool {
        let word = |verdict: Verdict| std::mem::discriminant(&verdict);
        self.first.as_ref().is_some_and(|first| word(first.verdict) != word(self.found.verdict))
    }
}

/// Returns every metric that any sample has, in the order of workloads and of their output.
fn quantities(document: &StudyDocument) -> Vec<(usize, Quantity)> {
    let mut found: Vec<(usize, Quantity)> = Vec::new();
    for sample in document.samples() {
        for reading in &sample.observation.readings {
            let is_known = found.iter().any(|(workload, quantity)| {
                *workload == sample.workload && quantity.metric == reading.quantity.metric
            });
            if !is_known {
                found.push((sample.workload, reading.quantity.clone()));
            }
        }
    }
    found.sort_by_key(|(workload, _)| *workload);
    found
}

fn subject(
    document: &StudyDocument,
    asked: &[PlannedContrast],
    (workload, quantity): (usize, Quantity),
    [confidence, later]: [Confidence; 2],
) -> Subject {
    let run = &document.run;
    let name = run.workloads.get(workload).map_or_else(String::new, |w| w.name.clone());
    let margin_percent = run.rules.margin_of(&name, &quantity.metric);
    let criteria = Criteria { confidence, later, ..criteria(quantity.better, margin_percent) };
    let cells = document.cells(workload, &quantity.metric, Counted::Undisturbed);
    let first = document.cells(workload, &quantity.metric, Counted::First);
    let is_fact = run.rules.is_fact(&name, &quantity.metric);
    let tested = if is_fact { &[] } else { asked };
    let effects = tested
        .iter()
        .filter_map(|asked| effect(asked, &cells, &first, &criteria, run.seed))
        .collect();
    let aa = (!is_fact).then(|| aa_arm(&cells, &criteria)).flatten();
    let is_primary = run.rules.is_primary(&name, &quantity.metric);
    let modes = if is_fact { Vec::new() } else { modes(&cells, criteria.margin) };
    Subject {
        workload,
        name,
        quantity,
        is_primary,
        is_fact,
        margin_percent,
        cells,
        effects,
        aa,
        modes,
    }
}

fn criteria(better: Direction, margin_percent: f64) -> Criteria {
    let margin = Margin::percent(margin_percent).unwrap_or(Margin::TWO_PERCENT);
    Criteria { margin, ..Criteria::new(better) }
}

fn effect(
    asked: &PlannedContrast,
    cells: &Cells,
    first: &Cells,
    criteria: &Criteria,
    seed: u64,
) -> Option<Effect> {
    let columns = asked.columns(cells);
    let found = asked.contrast.compare(&columns, criteria).ok()?;
    let differences = asked.contrast.differences(&columns).ok()?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let resampling = Resampling { resamples: RESAMPLES, ..Resampling::new(seed) };
    let both = first != cells;
    let extremes = tails(asked.sides, cells, criteria.direction);
    Some(Effect {
        kind: asked.kind,
        change: asked.change.clone(),
        sides: asked.sides,
        found,
        first: both.then(|| asked.contrast.compare(&asked.columns(first), criteria).ok()).flatten(),
        bootstrap: bootstrap_bca(&differences, mean, &resampling),
        permutation: paired_permutation(
            &differences,
            numalab_stats::Alternative::TwoSided,
            &Draws { draws: DRAWS, seed },
        ),
        differences: differences.values().to_vec(),
        tail: Tail::of(&extremes, criteria.direction, criteria.margin),
        extremes,
    })
}
