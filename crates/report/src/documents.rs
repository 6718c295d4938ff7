//! Results in JSON: one type for each document, findings included.

mod explore;
mod extremes;
mod machine;
mod run;
mod study;
mod tiering;

use numalab_analysis::VerdictWord;
use numalab_analysis::compare::{ComparedCell, Comparison, FactDifference};
use numalab_analysis::samples::{Published, PublishedRow, SampleComparison};
use numalab_analysis::study::{PairRow, StudyPair};
use numalab_record::{CellId, Kind, Metric};
use numalab_stats::{Interval, Sample};
use serde::Serialize;

use crate::label::{answer_word, compared};

pub use explore::{ExploreDocument, FoundNow};
pub use extremes::ComparedExtreme;
pub use machine::{ComparedMachine, FigurePair};
pub use run::{RunDocument, RunResults};
pub use study::{AaFound, EffectFound, Found, StudyResults};
pub use tiering::{TieringDocument, TieringFinding};

/// Indented JSON of a document: its kind, and what it holds.
///
/// # Errors
/// Whatever `serde_json` cannot write.
pub fn document(kind: Kind, of: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        schema: Kind,
        #[serde(flatten)]
        of: &'a T,
    }
    serde_json::to_string_pretty(&Document { schema: kind, of })
}

/// Lower and upper bound.
type Bounds = [f64; 2];

fn bounds(interval: Option<Interval>) -> Option<Bounds> {
    interval.map(|interval| [interval.lo, interval.hi])
}

/// Runs compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunComparison<'a> {
    /// What the runs of the baseline are called.
    pub baseline: &'a [String],
    /// What the runs of the candidate are called.
    pub candidate: &'a [String],
    /// Changes up to this many percent count as none.
    pub tolerance_percent: f64,
    /// Whether there are verdicts: with one run a side there are none.
    pub judged: bool,
    /// Whether anything is worse beyond the tolerance.
    pub any_worse: bool,
    /// All cells of a kind taken together.
    pub kinds: Vec<ComparedRow>,
    /// Cell by cell.
    pub cells: Vec<ComparedRow>,
    /// Cells with figures in the baseline only.
    pub only_in_baseline: &'a [CellId],
    /// Cells with figures in the candidate only.
    pub only_in_candidate: &'a [CellId],
    /// Cells with figures on both sides, but not in every run.
    pub not_in_every_run: &'a [CellId],
    /// What differs between the systems.
    pub environment: &'a [FactDifference],
}

/// A metric of a cell, or of all cells of a kind, on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedRow {
    /// The cell; `None` for all cells of a kind.
    pub cell: Option<CellId>,
    /// What was measured, in words.
    pub what: String,
    /// The metric.
    pub metric: Metric,
    /// Its unit.
    pub unit: String,
    /// The baseline's mean; `None` for all cells of a kind.
    pub baseline: Option<f64>,
    /// The candidate's mean; `None` for all cells of a kind.
    pub candidate: Option<f64>,
    /// The change in percent.
    pub change_percent: f64,
    /// Its 95 % interval in percent; `None` with one run a side.
    pub interval_percent: Option<Bounds>,
    /// How runs of the machine differ, one standard deviation in percent; `None` with one run
    /// a side.
    pub spread_percent: Option<f64>,
    /// The answer: a verdict, `not judged` or `seen once`.
    pub verdict: &'static str,
    /// The sizes of page in bytes that most of the memory had on each side, where they differ.
    pub pages_differ: Option<(u64, u64)>,
}

impl<'a> RunComparison<'a> {
    pub(crate) fn of(of: &'a Comparison) -> Self {
        let rows = |rows: &[ComparedCell]| rows.iter().map(ComparedRow::of).collect();
        Self {
            baseline: &of.baseline,
            candidate: &of.candidate,
            tolerance_percent: of.tolerance.as_percent(),
            judged: of.is_judged(),
            any_worse: of.any_worse(),
            kinds: rows(&of.kinds),
            cells: rows(&of.rows),
            only_in_baseline: &of.only_in_baseline,
            only_in_candidate: &of.only_in_candidate,
            not_in_every_run: &of.not_in_every_run,
            environment: &of.environment,
        }
    }
}

impl ComparedRow {
    fn of(row: &ComparedCell) -> Self {
        Self {
            cell: row.of.cell().cloned(),
            what: compared(row),
            metric: row.metric,
            unit: row.metric.unit().to_string(),
            baseline: row.means.map(|[baseline, _]| baseline),
            candidate: row.means.map(|[_, candidate]| candidate),
            change_percent: row.change_percent,
            interval_percent: bounds(row.interval_percent),
            spread_percent: row.spread_percent,
            verdict: answer_word(row.answer),
            pages_differ: row.pages_differ,
        }
    }
}

/// Two runs of a study compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyComparison<'a> {
    /// Whether there are verdicts: with one session a side there are none.
    pub judged: bool,
    /// Changes up to this many percent count as none.
    pub margin_percent: f64,
    /// Every metric under every treatment that both runs have.
    pub values: Vec<PairedValue>,
    /// What differs between the systems.
    pub environment: &'a [FactDifference],
    /// Whether anything is worse beyond the margin.
    pub any_worse: bool,
}

/// A metric under a treatment in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedValue {
    /// Workload and metric.
    pub metric: String,
    /// The treatment.
    pub treatment: String,
    /// The first run's median.
    pub baseline_median: f64,
    /// The second run's.
    pub candidate_median: f64,
    /// Sessions of the first and the second run.
    pub sessions: [usize; 2],
    /// The change in percent; `None` where a value is not positive.
    pub change_percent: Option<f64>,
    /// Its 95 % interval in percent, by how sessions differ; `None` with one session a side.
    pub interval_percent: Option<Bounds>,
    /// The answer: a verdict, or `not judged`.
    pub verdict: &'static str,
}

impl<'a> StudyComparison<'a> {
    pub(crate) fn of(pair: &'a StudyPair<'_>) -> Self {
        let value = |row: &PairRow| PairedValue {
            metric: row.metric.clone(),
            treatment: row.treatment.clone(),
            baseline_median: row.medians[0],
            candidate_median: row.medians[1],
            sessions: row.sessions,
            change_percent: row.change_percent,
            interval_percent: bounds(row.interval_percent),
            verdict: answer_word(row.answer),
        };
        Self {
            judged: pair.is_judged(),
            margin_percent: pair.tolerance.as_percent(),
            values: pair.rows.iter().map(value).collect(),
            environment: &pair.environment,
            any_worse: pair.any_worse(),
        }
    }
}

/// Two files of numbers compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedSamples {
    /// The unit of the values; empty if it is not known.
    pub unit: String,
    /// The baseline.
    pub baseline: ComparedSample,
    /// The candidate.
    pub candidate: ComparedSample,
    /// Changes up to this many percent count as none.
    pub margin_percent: f64,
    /// The answer.
    pub verdict: VerdictWord,
    /// The change in percent.
    pub change_percent: Option<f64>,
    /// Its 95 % interval in percent.
    pub interval_percent: Option<Bounds>,
    /// How much each value resembles the one before it, 0 to 1.
    pub autocorrelation: f64,
    /// As many independent values as all of them are worth.
    pub effective_values: f64,
    /// Whether the baseline and the candidate drift.
    pub drifts: [bool; 2],
    /// The tests of a drift.
    pub trend_p: [f64; 2],
    /// The rank-sum test of a difference.
    pub rank_sum_p: f64,
    /// The test of equivalence within the margin.
    pub equivalence_p: f64,
    /// By how much better the candidate's mean is, in percent.
    pub gain_of_means_percent: Option<f64>,
    /// Its interval in percent.
    pub gain_of_means_interval_percent: Option<Bounds>,
    /// Percentiles of the bad end, where there are values enough: 300 for p99, 3,000 for p99.9.
    pub extremes: Vec<ComparedExtreme>,
}

/// One side of two files compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedSample {
    /// What it is called.
    pub name: String,
    /// Its values in the order taken.
    pub values: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// Their mean.
    pub mean: f64,
}

impl ComparedSamples {
    pub(crate) fn of(of: &SampleComparison) -> Self {
        let side = |name: &String, sample: &Sample| ComparedSample {
            name: name.clone(),
            values: sample.values().to_vec(),
            median: sample.median(),
            mean: sample.mean(),
        };
        let gain = of.gain_of_means();
        Self {
            unit: of.unit.clone(),
            baseline: side(&of.names[0], &of.baseline),
            candidate: side(&of.names[1], &of.candidate),
            margin_percent: of.margin.as_percent(),
            verdict: of.found.verdict.into(),
            change_percent: of.found.percent(),
            interval_percent: bounds(of.found.percent_interval()),
            autocorrelation: of.order.autocorrelation,
            effective_values: of.order.effective_size,
            drifts: of.order.trends.map(|trend| trend.is_shown()),
            trend_p: of.order.trends.map(|trend| trend.p),
            rank_sum_p: of.found.difference.p,
            equivalence_p: of.found.equivalence.p(),
            gain_of_means_percent: gain.map(|gain| gain.value),
            gain_of_means_interval_percent: bounds(gain.map(|gain| gain.interval)),
            extremes: of.extremes.iter().map(ComparedExtreme::of).collect(),
        }
    }
}

/// Published figures with the gains that follow from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedGains {
    /// The rows.
    pub published: Vec<PublishedGain>,
}

/// A row of published figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedGain {
    /// What was measured.
    pub what: String,
    /// The baseline's figure.
    pub baseline: f64,
    /// The candidate's figure.
    pub candidate: f64,
    /// The gain of these figures in percent.
    pub gain_percent: f64,
    /// The gains of all figures that round to these.
    pub gain_range_percent: Bounds,
    /// The gain as it was published, in percent.
    pub published_percent: Option<f64>,
    /// Whether it follows; `None` where none was published.
    pub follows: Option<bool>,
}

impl PublishedGains {
    pub(crate) fn of(of: &Published) -> Self {
        let row = |row: &PublishedRow| PublishedGain {
            what: row.what.clone(),
            baseline: row.baseline,
            candidate: row.candidate,
            gain_percent: of.gain(row),
            gain_range_percent: [of.gain_range(row).lo, of.gain_range(row).hi],
            published_percent: row.gain.map(|(gain, _)| gain),
            follows: row.gain.map(|_| of.follows(row)),
        };
        Self { published: of.rows.iter().map(row).collect() }
    }
}
