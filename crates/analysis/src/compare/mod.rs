//! Two runs compared.

mod batch;

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{Cell, CellId, Document, Environment, Experiment, Metric, Placement};
use numalab_stats::{
    Criteria, Direction, Error, Interval, Margin, Sample, Verdict, adjust_verdicts,
};

use crate::run::CellSummary;
use batch::batch_medians;

/// By how much two runs may differ without anything having changed. Windows of one
/// run do not show how much the machine varies from one run to the next, from one
/// boot to the next: this margin stands for that, and no verdict of better or worse
/// is given unless the whole interval of the change lies beyond it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance(Margin);

/// The default of [`Tolerance`] in percent.
const DEFAULT_PERCENT: f64 = 5.0;

impl Tolerance {
    /// A tolerance in percent of the baseline.
    ///
    /// # Errors
    /// As [`Margin::percent`]: what is not a positive, finite percentage.
    pub fn percent(percent: f64) -> Result<Self, Error> {
        Margin::percent(percent).map(Self)
    }

    /// The tolerance as a margin of equivalence.
    #[must_use]
    pub fn margin(self) -> Margin {
        self.0
    }

    /// The tolerance in percent.
    #[must_use]
    pub fn as_percent(self) -> f64 {
        self.0.as_percent()
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self(Margin::percent(DEFAULT_PERCENT).unwrap_or(Margin::TWO_PERCENT))
    }
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

/// One metric of one cell, or of all cells of a kind, in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCell {
    /// What is compared.
    pub of: Compared,
    /// The metric.
    pub metric: Metric,
    /// The baseline's median in the metric's unit.
    pub baseline: f64,
    /// The candidate's median in the metric's unit.
    pub candidate: f64,
    /// The change in percent of the baseline, if it is not zero.
    pub change_percent: Option<f64>,
    /// Its 95 % interval in percent; `None` with too few values.
    pub interval_percent: Option<Interval>,
    /// Values that were compared, of the smaller side: batch medians of a cell, or
    /// cells of a kind.
    pub values: usize,
    /// The answer, after Holm's adjustment over all rows and beyond the tolerance.
    pub verdict: Verdict,
    /// The sizes of page in bytes that most of the memory had in the baseline and in the
    /// candidate, where they differ.
    pub pages_differ: Option<(u64, u64)>,
}

/// A fact about the system that is not the same in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactDifference {
    /// Its name.
    pub name: String,
    /// The baseline's value, if it has one.
    pub baseline: Option<String>,
    /// The candidate's value, if it has one.
    pub candidate: Option<String>,
}

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The tolerance applied.
    pub tolerance: Tolerance,
    /// All cells of a kind taken together, each cell one pair.
    pub kinds: Vec<ComparedCell>,
    /// Cell by cell, in the baseline's order.
    pub rows: Vec<ComparedCell>,
    /// Cells with figures in the baseline only: not planned alike, failed or not
    /// reached in the candidate. They are listed, not judged.
    pub only_in_baseline: Vec<CellId>,
    /// Cells with figures in the candidate only.
    pub only_in_candidate: Vec<CellId>,
    /// What differs between the two systems, without what differs from minute to minute.
    pub environment: Vec<FactDifference>,
}

impl Comparison {
    /// Whether anything is worse beyond the tolerance.
    #[must_use]
    pub fn any_worse(&self) -> bool {
        self.judged().any(|row| row.verdict == Verdict::Worse)
    }

    /// Every row with a verdict, kinds first.
    pub fn judged(&self) -> impl Iterator<Item = &ComparedCell> {
        self.kinds.iter().chain(&self.rows)
    }
}

/// Compares two runs. Cells are matched by id, and only where the whole of what was
/// to be done is equal, workers and nodes included.
///
/// The windows of a cell resemble their neighbours, which a rank test must not take
/// for evidence; each cell's windows are therefore first made into as many medians of
/// consecutive windows as they are worth. All cells of a kind together are compared
/// in pairs, one pair a cell, which sees a small change of everything that no single
/// cell shows. Verdicts are Holm-adjusted over all rows.
#[must_use]
pub fn compare(baseline: &Document, candidate: &Document, tolerance: &Tolerance) -> Comparison {
    let before = measured(baseline);
    let after = measured(candidate);
    let mut rows = Vec::new();
    let mut kinds: BTreeMap<(&'static str, Metric), Vec<(f64, f64)>> = BTreeMap::new();
    let mut matched: BTreeSet<(&CellId, Metric)> = BTreeSet::new();
    for (key, old) in &before {
        let Some(new) = after.get(key) else { continue };
        if old.summary.cell.experiment != new.summary.cell.experiment {
            continue;
        }
        matched.insert(*key);
        let kind = (kind(&old.summary.cell.experiment), key.1);
        kinds.entry(kind).or_default().push((old.median, new.median));
        rows.extend(compare_cell(old, new, key.1, *tolerance));
    }
    let mut judged: Vec<Judged> = kinds
        .into_iter()
        .filter_map(|((kind, metric), pairs)| compare_kind(kind, metric, &pairs, *tolerance))
        .collect();
    let kind_count = judged.len();
    rows.sort_by_key(|row: &Judged| row.position);
    judged.extend(rows);
    let mut rows = adjusted(judged, *tolerance);
    let kinds = rows.drain(..kind_count).collect();
    let unmatched = |cells: &Measured<'_>| {
        let ids = cells.keys().filter(|key| !matched.contains(*key));
        let ids: BTreeSet<CellId> = ids.map(|(id, _)| (*id).clone()).collect();
        ids.into_iter().collect()
    };
    Comparison {
        tolerance: *tolerance,
        kinds,
        rows,
        only_in_baseline: unmatched(&before),
        only_in_candidate: unmatched(&after),
        environment: environment(baseline, candidate),
    }
}

/// A cell's windows of one metric.
struct MeasuredCell<'a> {
    summary: CellSummary<'a>,
    values: Vec<f64>,
    median: f64,
    position: usize,
}

type Measured<'a> = BTreeMap<(&'a CellId, Metric), MeasuredCell<'a>>;

fn measured(document: &Document) -> Measured<'_> {
    let mut cells = BTreeMap::new();
    for (position, result) in document.cells.iter().enumerate() {
        let summary = CellSummary::of(result);
        for metric in Metric::ALL {
            let Some(figure) = summary.figure(metric) else {
                continue;
            };
            let mut values = result.values(metric);
            values.retain(|value| value.is_finite());
            if values.is_empty() {
                continue;
            }
            let cell =
                MeasuredCell { median: figure.median, summary: summary.clone(), values, position };
            cells.insert((&result.cell.id, metric), cell);
        }
    }
    cells
}

/// A row before verdicts are adjusted.
struct Judged {
    row: ComparedCell,
    found: numalab_stats::Comparison,
    position: usize,
}

fn criteria(metric: Metric, tolerance: Tolerance) -> Criteria {
    let direction =
        if metric.lower_is_better() { Direction::LowerIsBetter } else { Direction::HigherIsBetter };
    Criteria { margin: tolerance.0, ..Criteria::new(direction) }
}

fn compare_cell(
    old: &MeasuredCell<'_>,
    new: &MeasuredCell<'_>,
    metric: Metric,
    tolerance: Tolerance,
) -> Option<Judged> {
    let before = Sample::new(batch_medians(&old.values)).ok()?;
    let after = Sample::new(batch_medians(&new.values)).ok()?;
    let found = numalab_stats::compare(&before, &after, &criteria(metric, tolerance));
    let row = ComparedCell {
        of: Compared::Cell(old.summary.cell.clone()),
        metric,
        baseline: old.median,
        candidate: new.median,
        change_percent: found.percent(),
        interval_percent: found.percent_interval(),
        values: before.len().min(after.len()),
        verdict: found.verdict,
        pages_differ: different_pages(old.summary.placements, new.summary.placements),
    };
    Some(Judged { row, found, position: old.position })
}

fn compare_kind(
    kind: &'static str,
    metric: Metric,
    pairs: &[(f64, f64)],
    tolerance: Tolerance,
) -> Option<Judged> {
    // One cell is a row of its own already.
    if pairs.len() < 2 {
        return None;
    }
    let side = |of: fn(&(f64, f64)) -> f64| Sample::new(pairs.iter().map(of).collect::<Vec<_>>());
    let (before, after) = (side(|pair| pair.0).ok()?, side(|pair| pair.1).ok()?);
    let criteria = criteria(metric, tolerance);
    let found = numalab_stats::compare_paired(&before, &after, &criteria).ok()?;
    let row = ComparedCell {
        of: Compared::Kind { kind, cells: pairs.len() },
        metric,
        baseline: before.median(),
        candidate: after.median(),
        change_percent: found.percent(),
        interval_percent: found.percent_interval(),
        values: pairs.len(),
        verdict: found.verdict,
        pages_differ: None,
    };
    Some(Judged { row, found, position: 0 })
}

/// The rows with verdicts that allow for their number and for the tolerance.
fn adjusted(judged: Vec<Judged>, tolerance: Tolerance) -> Vec<ComparedCell> {
    let (mut rows, mut found): (Vec<ComparedCell>, Vec<numalab_stats::Comparison>) =
        judged.into_iter().map(|judged| (judged.row, judged.found)).unzip();
    adjust_verdicts(&mut found);
    for (row, found) in rows.iter_mut().zip(found) {
        row.verdict = beyond(found.verdict, row.interval_percent, tolerance);
    }
    rows
}

/// The verdict, but better or worse only where the whole interval lies beyond the
/// tolerance.
#[must_use]
pub fn beyond(verdict: Verdict, interval: Option<Interval>, tolerance: Tolerance) -> Verdict {
    let least = tolerance.as_percent();
    let is_beyond = interval.is_some_and(|interval| {
        // Symmetric in ratio, as the margin is: +5 % is undone by -4.76 %.
        interval.lo > least || interval.hi < -100.0 * least / (100.0 + least)
    });
    match verdict {
        Verdict::Better | Verdict::Worse if !is_beyond => {
            Verdict::Inconclusive { further_blocks: None }
        }
        verdict => verdict,
    }
}

fn kind(experiment: &Experiment) -> &'static str {
    match experiment {
        Experiment::Latency(_) => "latency",
        Experiment::Bandwidth(_) => "bandwidth",
        Experiment::Loaded(_) => "loaded",
        Experiment::C2c(_) => "core-to-core",
        Experiment::Core { .. } => "core",
        Experiment::Frames(_) => "frames",
    }
}

/// The sizes of page of two cells, where they differ.
fn different_pages(old: &[Placement], new: &[Placement]) -> Option<(u64, u64)> {
    let most = |placements: &[Placement]| {
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        for (&page, &bytes) in placements.iter().flat_map(|p| &p.bytes_per_page_size) {
            let sum = sizes.entry(page).or_default();
            *sum = sum.saturating_add(bytes);
        }
        sizes.into_iter().max_by_key(|&(_, bytes)| bytes).map(|(page, _)| page)
    };
    let (old, new) = (most(old)?, most(new)?);
    (old != new).then_some((old, new))
}

fn environment(baseline: &Document, candidate: &Document) -> Vec<FactDifference> {
    lasting_differences(&baseline.run.environment, &candidate.run.environment)
}

/// What differs between two systems, without what differs from minute to minute.
#[must_use]
pub fn lasting_differences(before: &Environment, after: &Environment) -> Vec<FactDifference> {
    let differences = before.differences(after).into_iter();
    differences
        .filter(|(name, _, _)| Environment::lasts(name))
        .map(|(name, baseline, candidate)| FactDifference {
            name: name.to_owned(),
            baseline: baseline.map(str::to_owned),
            candidate: candidate.map(str::to_owned),
        })
        .collect()
}
