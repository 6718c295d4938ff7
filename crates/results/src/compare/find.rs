//! Comparison of two sets of runs, such as before and after a change of the machine.

mod answer;
mod cells;
mod shifts;
mod tails;
mod tolerance;

pub(crate) use cells::units;
pub(crate) use shifts::answers;
pub(crate) use tails::tail_of;

use numalab_record::{Cell, CellId, Document, Environment, Fact, Metric};
use numalab_stats::{Interval, Verdict};
use serde::{Deserialize, Serialize};

pub use answer::AnswerWord;
pub use tolerance::Tolerance;

use crate::shape::Tail;

/// Minimum number of units on both sides together for a verdict. Two of the baseline may agree by
/// chance: with three units, 10 of 81 real comparisons without a difference exited with 4.
const FEWEST_UNITS: usize = 4;

#[derive(Clone, Debug, PartialEq)]
pub struct NamedRun {
    /// The run's directory, or its start time.
    pub name: String,
    pub document: Document,
}

/// The subject of a row of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    Cell(Cell),
    /// All cells of a kind together.
    Kind {
        /// The kind, such as `latency` or `bandwidth`.
        kind: &'static str,
        cells: usize,
    },
}

impl Compared {
    /// Returns the cell's name; `None` for all cells of a kind.
    pub fn cell(&self) -> Option<&CellId> {
        match self {
            Self::Cell(cell) => Some(&cell.id),
            Self::Kind { .. } => None,
        }
    }
}

/// The judgement of a change between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Not judged: with fewer than four units the variation between them is unknown. Round trips
    /// from cpu to cpu are never judged.
    NotJudged,
    /// A cell differs from its kind by more than the tolerance, but a side has only one run. Cells
    /// have states that last for a run, such as the placement of their pages in a cache.
    SeenOnce,
    /// The verdict, adjusted for all rows and for the tolerance.
    Judged(Verdict),
}

/// One metric of one cell, or of all cells of a kind, in all runs of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCell {
    pub of: Compared,
    pub metric: Metric,
    /// Geometric means over each side's runs of the runs' medians, in the metric's unit; `None` for
    /// a kind, which mixes cells of different sizes.
    pub means: Option<[f64; 2]>,
    /// The change of the mean in percent of the baseline.
    pub change_percent: f64,
    /// The standard deviation between units of the machine in percent; `None` with one per side.
    pub spread_percent: Option<f64>,
    /// The 95 % interval of the change in percent; `None` with one unit per side.
    pub interval_percent: Option<Interval>,
    /// The smallest change for the worse or better in percent that would have been shown; `None` if
    /// none would.
    pub least_percent: Option<f64>,
    /// The judgement of the change.
    pub answer: Answer,
    /// The difference of tails over all cells of a kind, in parts of each run's median.
    pub tail: Option<Tail>,
    /// The page sizes in bytes that held most of the memory on each side, if they differ.
    pub pages_differ: Option<(u64, u64)>,
}

/// A fact about the system that differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FactDifference {
    /// The fact's name.
    pub name: String,
    /// The baseline's value, if it has one.
    pub baseline: Option<Fact>,
    /// The candidate's value, if it has one.
    pub candidate: Option<Fact>,
}

/// All runs of two sides, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The tolerance that verdicts allow.
    pub tolerance: Tolerance,
    /// The names of the baseline's runs.
    pub baseline: Vec<String>,
    /// The names of the candidate's runs.
    pub candidate: Vec<String>,
    /// The number of units of each side; runs begun within half an hour of each other are one unit.
    pub units: [usize; 2],
    /// All cells of a kind together, one row per kind.
    pub kinds: Vec<ComparedCell>,
    /// One row per cell, in the baseline's order.
    pub rows: Vec<ComparedCell>,
    /// Cells with figures in the baseline only: planned differently, failed, or not reached in the
    /// candidate. They are listed, not judged.
    pub only_in_baseline: Vec<CellId>,
    /// Cells with figures in the candidate only.
    pub only_in_candidate: Vec<CellId>,
    /// Cells with figures on both sides, but not in every run; compared over the runs that have
    /// them.
    pub not_in_every_run: Vec<CellId>,
    /// Facts that differ between the two systems, without those that change from minute to minute.
    pub environment: Vec<FactDifference>,
}

impl Comparison {
    /// Returns `true` if there are verdicts, which need four units.
    pub fn is_judged(&self) -> bool {
        self.units.iter().sum::<usize>() >= FEWEST_UNITS
    }

    /// Returns `true` if anything is decided: a change is shown, or shown to be within the
    /// tolerance.
    pub fn is_decided(&self) -> bool {
        self.figures()
            .any(|row| matches!(row.answer, Answer::Judged(verdict) if verdict.is_decided()))
    }

    /// Returns `true` if anything is worse beyond the tolerance.
    pub fn any_worse(&self) -> bool {
        self.figures().any(|row| row.answer == Answer::Judged(Verdict::Worse))
    }

    /// Returns `true` if any figure is worse in the only run of a side, so that more runs must show
    /// whether it is.
    pub fn any_worse_once(&self) -> bool {
        self.figures().any(|row| {
            row.answer == Answer::SeenOnce
                && (row.change_percent > 0.0) == row.metric.lower_is_better()
        })
    }

    /// Reports whether the tail of any kind is shown to be worse beyond the tolerance.
    pub fn any_tail_worse(&self) -> bool {
        self.kinds.iter().any(|row| row.tail.as_ref().is_some_and(Tail::is_shown_worse))
    }

    /// Returns all rows, kinds first.
    pub fn figures(&self) -> impl Iterator<Item = &ComparedCell> {
        self.kinds.iter().chain(&self.rows)
    }
}

/// Compares runs of a baseline with runs of a candidate. Cells are matched by id, and only if their
/// whole experiment is equal, workers and nodes included.
///
/// The unit of analysis is the set of runs begun within half an hour, because neither the windows of
/// one run nor runs taken back to back show how the machine varies. Its figure is the mean of a
/// cell's medians, as logarithms. A kind's change is the median
/// of its cells' changes, which reveals a small change of everything. A cell's deviation from its
/// kind has its own variance, shrunk towards that of the kind's other cells
/// (`numalab_stats::moderate`). Kinds get half of the permitted error and cells the other half,
/// each adjusted among themselves (Holm); if a side has one unit, cells are not judged.
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
        units: [sides[0].units.len(), sides[1].units.len()],
        kinds,
        rows,
        only_in_baseline: unmatched.only_in_baseline,
        only_in_candidate: unmatched.only_in_candidate,
        not_in_every_run: unmatched.not_in_every_run,
        environment: lasting_differences(&first(baseline), &first(candidate)),
    }
}

/// Returns the facts that differ between two systems.
pub fn lasting_differences(before: &Environment, after: &Environment) -> Vec<FactDifference> {
    let differences = before.differences(after).into_iter();
    differences
        .map(|(name, baseline, candidate)| FactDifference {
            name: name.to_owned(),
            baseline: baseline.cloned(),
            candidate: candidate.cloned(),
        })
        .collect()
}
