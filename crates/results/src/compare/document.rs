//! Runs compared, in JSON.

use numalab_record::{CellId, Metric};
use serde::Serialize;

use super::{ComparedCell, Comparison, FactDifference};
use crate::document::{Bounds, bounds};
use crate::label::{answer_word, compared};
use crate::shape::FarEnd;

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
    /// Where the far ends of all cells of a kind differ, in parts of each run's median.
    pub far_end: Option<FarEnd>,
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
            far_end: row.far_end.clone(),
            pages_differ: row.pages_differ,
        }
    }
}
