//! The JSON document of runs compared.

use numalab_record::{CellId, Experiment, Metric};
use serde::{Deserialize, Serialize};

use super::{AnswerWord, Compared, ComparedCell, Comparison, FactDifference};
use crate::document::{Bounds, bounds};
use crate::label::compared;
use crate::shape::Tail;

/// Runs compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunComparison {
    /// The names of the baseline's runs.
    pub baseline: Vec<String>,
    /// The names of the candidate's runs.
    pub candidate: Vec<String>,
    /// The tolerance in percent: smaller changes count as none.
    pub tolerance_percent: f64,
    /// The numbers of units of baseline and candidate; runs begun within half an hour of each other
    /// are one unit.
    #[serde(default)]
    pub units: [usize; 2],
    /// True if there are verdicts, which need four units.
    pub judged: bool,
    /// True if anything is worse beyond the tolerance.
    pub any_worse: bool,
    /// All cells of a kind together, one row per kind.
    pub kinds: Vec<ComparedRow>,
    /// One row per cell.
    pub cells: Vec<ComparedRow>,
    /// Cells with figures in the baseline only.
    pub only_in_baseline: Vec<CellId>,
    /// Cells with figures in the candidate only.
    pub only_in_candidate: Vec<CellId>,
    /// Cells with figures on both sides, but not in every run.
    pub not_in_every_run: Vec<CellId>,
    /// Facts that differ between the systems.
    pub environment: Vec<FactDifference>,
}

/// A metric of a cell, or of all cells of a kind, on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ComparedRow {
    /// The cell; `None` for all cells of a kind.
    pub cell: Option<CellId>,
    /// The experiment; `None` for all cells of a kind.
    #[serde(default)]
    pub experiment: Option<Experiment>,
    /// A description of the experiment.
    pub what: String,
    /// The metric compared.
    pub metric: Metric,
    /// The unit of both means.
    pub unit: String,
    /// The baseline's mean; `None` for all cells of a kind.
    pub baseline: Option<f64>,
    /// The candidate's mean; `None` for all cells of a kind.
    pub candidate: Option<f64>,
    pub change_percent: f64,
    /// The 95 % interval of the change in percent; `None` with one unit per side.
    pub interval_percent: Option<Bounds>,
    /// The standard deviation between units of the machine in percent; `None` with one per side.
    pub spread_percent: Option<f64>,
    /// The smallest change in percent that would have been shown; `None` if none would.
    #[serde(default)]
    pub least_percent: Option<f64>,
    /// The verdict, or `not judged` or `seen once`.
    pub verdict: AnswerWord,
    /// The difference of tails over all cells of a kind, in parts of each run's median.
    #[serde(alias = "far_end")]
    pub tail: Option<Tail>,
    /// The page sizes in bytes that held most of the memory on each side, if they differ.
    pub pages_differ: Option<(u64, u64)>,
}

impl Comparison {
    /// Returns the document, which has each row in words.
    pub fn document(&self) -> RunComparison {
        let rows = |rows: &[ComparedCell]| rows.iter().map(ComparedRow::of).collect();
        RunComparison {
            baseline: self.baseline.clone(),
            candidate: self.candidate.clone(),
            tolerance_percent: self.tolerance.as_percent(),
            units: self.units,
            judged: self.is_judged(),
            any_worse: self.any_worse(),
            kinds: rows(&self.kinds),
            cells: rows(&self.rows),
            only_in_baseline: self.only_in_baseline.clone(),
            only_in_candidate: self.only_in_candidate.clone(),
            not_in_every_run: self.not_in_every_run.clone(),
            environment: self.environment.clone(),
        }
    }
}

impl ComparedRow {
    fn of(row: &ComparedCell) -> Self {
        Self {
            cell: row.of.cell().cloned(),
            experiment: match &row.of {
                Compared::Cell(cell) => Some(cell.experiment.clone()),
                Compared::Kind { .. } => None,
            },
            what: compared(row),
            metric: row.metric,
            unit: row.metric.unit().to_string(),
            baseline: row.means.map(|[baseline, _]| baseline),
            candidate: row.means.map(|[_, candidate]| candidate),
            change_percent: row.change_percent,
            interval_percent: bounds(row.interval_percent),
            spread_percent: row.spread_percent,
            least_percent: row.least_percent,
            verdict: row.answer.into(),
            tail: row.tail.clone(),
            pages_differ: row.pages_differ,
        }
    }
}
