//! Runs compared: what the machine did before, and what it does now.

mod cells;
mod far_ends;
mod shifts;
mod tolerance;

pub(crate) use far_ends::far_end_of;
pub(crate) use shifts::answers;

use numalab_record::{Cell, CellId, Document, Environment, Metric};
use numalab_stats::{Interval, Verdict};
use serde::Serialize;

pub use tolerance::Tolerance;

use crate::shape::FarEnd;

/// A run and what it is called.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRun {
    /// Its directory, or when it began.
    pub name: String,
    /// The run.
    pub document: Document,
}

/// What a row of a comparison is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// One cell.
    Cell(Cell),
    /// All cells of a kind taken together.
    Kind {
        /// The kind: `latency`, `bandwidth`.
        kind: &'static str,
        /// How many cells.
        cells: usize,
    },
}

impl Compared {
    /// The cell's name; `None` for all cells of a kind.
    #[must_use]
    pub fn cell(&self) -> Option<&CellId> {
        match self {
            Self::Cell(cell) => Some(&cell.id),
            Self::Kind { .. } => None,
        }
    }
}

/// What is to be made of a change between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is one run a side, and how runs of the machine differ is unknown.
    NotJudged,
    /// A cell leaves its kind by more than the tolerance, but a side has one run: cells have
    /// states, such as where their pages lie in a cache, which last for a run.
    SeenOnce,
    /// The verdict, which allows for all rows and for the tolerance.
    Judged(Verdict),
}

/// One metric of one cell, or of all cells of a kind, in all runs of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCell {
    /// What is compared.
    pub of: Compared,
    /// The metric.
    pub metric: Metric,
    /// Geometric means over the runs of the baseline and of the candidate, of each run's
    /// median, in the metric's unit; `None` for all cells of a kind, which are of different sizes.
    pub means: Option<[f64; 2]>,
    /// The change of the mean in percent of the baseline.
    pub change_percent: f64,
    /// How one run of the machine differs from another, one standard deviation in percent;
    /// `None` with one run a side.
    pub spread_percent: Option<f64>,
    /// The 95 % interval of the change in percent; `None` with one run a side.
    pub interval_percent: Option<Interval>,
    /// What is to be made of it.
    pub answer: Answer,
    /// Where the far ends of all cells of a kind differ, in parts of each run's median.
    pub far_end: Option<FarEnd>,
    /// The sizes of page in bytes that most of the memory had in the baseline and in the
    /// candidate, where they differ.
    pub pages_differ: Option<(u64, u64)>,
}

/// A fact about the system that is not the same in both runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactDifference {
    /// Its name.
    pub name: String,
    /// The baseline's value, if it has one.
    pub baseline: Option<String>,
    /// The candidate's value, if it has one.
    pub candidate: Option<String>,
}

/// The runs of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The tolerance applied.
    pub tolerance: Tolerance,
    /// What the runs of the baseline are called.
    pub baseline: Vec<String>,
    /// What the runs of the candidate are called.
    pub candidate: Vec<String>,
    /// All cells of a kind taken together.
    pub kinds: Vec<ComparedCell>,
    /// Cell by cell, in the baseline's order.
    pub rows: Vec<ComparedCell>,
    /// Cells with figures in the baseline only: not planned alike, failed or not
    /// reached in the candidate. They are listed, not judged.
    pub only_in_baseline: Vec<CellId>,
    /// Cells with figures in the candidate only.
    pub only_in_candidate: Vec<CellId>,
    /// Cells with figures on both sides, but not in every run: compared by those that have them.
    pub not_in_every_run: Vec<CellId>,
    /// What differs between the two systems, without what differs from minute to minute.
    pub environment: Vec<FactDifference>,
}

impl Comparison {
    /// Whether there is a verdict: with one run a side there is none.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.baseline.len() + self.candidate.len() > 2
    }

    /// Whether anything is worse beyond the tolerance.
    #[must_use]
    pub fn any_worse(&self) -> bool {
        self.figures().any(|row| row.answer == Answer::Judged(Verdict::Worse))
    }

    /// Reports whether the far end of any kind is shown to be worse beyond the tolerance.
    #[must_use]
    pub fn any_far_end_worse(&self) -> bool {
        self.kinds.iter().any(|row| row.far_end.as_ref().is_some_and(FarEnd::is_shown_worse))
    }

    /// Every row, kinds first.
    pub fn figures(&self) -> impl Iterator<Item = &ComparedCell> {
        self.kinds.iter().chain(&self.rows)
    }
}

/// Compares runs of a baseline with runs of a candidate. Cells are matched by id, and only where
/// the whole of what was to be done is equal, workers and nodes included.
///
/// The unit is the run: windows of one run do not show how runs of the same machine differ. A
/// figure of a run is a cell's median, in logarithms. All cells of a kind together move by the
/// median of their cells' changes, which a small change of everything shows in; what a cell does
/// beyond its kind has a variance of its own, drawn towards that of the kind's other cells
/// (`numalab_stats::moderate`). Kinds may err in half of the level allowed and cells in the other
/// half, each adjusted among themselves (Holm); where a side has one run, cells are not judged.
#[must_use]
pub fn compare(baseline: &[NamedRun], candidate: &[NamedRun], tolerance: &Tolerance) -> Comparison {
    let sides = [cells::measured(baseline), cells::measured(candidate)];
    let matched = cells::matched(&sides);
    let (kinds, rows) = shifts::rows(&matched, *tolerance);
    let unmatched = cells::unmatched(&sides);
    let names = |runs: &[NamedRun]| runs.iter().map(|run| run.name.clone()).collect();
    let first = |runs: &[NamedRun]| {
        runs.first().map(|run| run.document.run.environment.clone()).unwrap_or_default()
    };
    Comparison {
        tolerance: *tolerance,
        baseline: names(baseline),
        candidate: names(candidate),
        kinds,
        rows,
        only_in_baseline: unmatched.only_in_baseline,
        only_in_candidate: unmatched.only_in_candidate,
        not_in_every_run: unmatched.not_in_every_run,
        environment: lasting_differences(&first(baseline), &first(candidate)),
    }
}

/// What differs between two systems.
#[must_use]
pub fn lasting_differences(before: &Environment, after: &Environment) -> Vec<FactDifference> {
    let differences = before.differences(after).into_iter();
    differences
        .map(|(name, baseline, candidate)| FactDifference {
            name: name.to_owned(),
            baseline: baseline.map(str::to_owned),
            candidate: candidate.map(str::to_owned),
        })
        .collect()
}
