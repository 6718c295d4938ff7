//! Cells that both sides have, run by run.

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{Cell, CellId, Metric, Placement, Sample};

use super::NamedRun;
use crate::run::CellSummary;

/// One cell's median of one metric in one run.
struct MeasuredCell<'a> {
    cell: &'a Cell,
    placements: &'a [Placement],
    median: f64,
    /// The windows that nothing disturbed, as parts of the median.
    windows: Vec<f64>,
    position: usize,
}

/// The cells measured in the runs of one side.
pub(super) struct Side<'a> {
    runs: Vec<Run<'a>>,
}

impl<'a> Side<'a> {
    /// Returns the cell from each run that has it, if all of them ran the same experiment.
    fn by_run(&self, key: &(&'a CellId, Metric)) -> Option<Vec<Option<&MeasuredCell<'a>>>> {
        let cells: Vec<_> = self.runs.iter().map(|run| run.get(key)).collect();
        let first = &cells.iter().flatten().next()?.cell.experiment;
        let is_same = cells.iter().flatten().all(|cell| cell.cell.experiment == *first);
        is_same.then_some(cells)
    }

    fn keys(&self) -> BTreeSet<(&'a CellId, Metric)> {
        self.runs.iter().flat_map(|run| run.keys().copied()).collect()
    }

    fn ids(&self) -> BTreeSet<&'a CellId> {
        self.keys().into_iter().map(|(id, _)| id).collect()
    }
}

type Run<'a> = BTreeMap<(&'a CellId, Metric), MeasuredCell<'a>>;

/// Returns the medians of a side's cells that count.
pub(super) fn measured(runs: &[NamedRun]) -> Side<'_> {
    Side { runs: runs.iter().map(medians).collect() }
}

fn medians(run: &NamedRun) -> Run<'_> {
    let mut cells = BTreeMap::new();
    for (position, result) in run.document.cells.iter().enumerate() {
        let summary = CellSummary::of(result);
        for metric in Metric::ALL.into_iter().filter(|metric| metric.is_compared()) {
            // A value at or below zero has no ratio.
            let figure = summary.figure(metric).filter(|figure| figure.median > 0.0);
            let Some(median) = figure.map(|figure| figure.median) else { continue };
            let (cell, placements) = (&result.cell, &result.placements[..]);
            let is_clean = |sample: &&Sample| {
                sample.metric == metric && sample.value.is_finite() && sample.disturbed.is_none()
            };
            let clean = result.samples.iter().filter(is_clean);
            let windows = clean.map(|sample| sample.value / median).collect();
            let measured = MeasuredCell { cell, placements, median, windows, position };
            cells.insert((&result.cell.id, metric), measured);
        }
    }
    cells
}

/// One metric of a cell that both sides measured.
pub(super) struct MatchedCell<'a> {
    pub cell: &'a Cell,
    pub metric: Metric,
    /// Position in the baseline's plan.
    pub position: usize,
    /// The logarithms of its medians by side and run; `None` for runs without it.
    pub logs: [Vec<Option<f64>>; 2],
    /// Clean windows of each run, as ratios to the run's median.
    pub windows: [Vec<&'a [f64]>; 2],
    /// The page sizes in bytes that held most of the memory on each side, if they differ.
    pub pages_differ: Option<(u64, u64)>,
}

/// Returns the cells that both sides have.
pub(super) fn matched<'a>(sides: &'a [Side<'a>; 2]) -> Vec<MatchedCell<'a>> {
    let matched = |key: (&'a CellId, Metric)| {
        let (before, after) = (sides[0].by_run(&key)?, sides[1].by_run(&key)?);
        let (old, new) = (before.iter().flatten().next()?, after.iter().flatten().next()?);
        if old.cell.experiment != new.cell.experiment {
            return None;
        }
        let logs = |cells: &[Option<&MeasuredCell<'_>>]| {
            cells.iter().map(|cell| cell.map(|cell| cell.median.ln())).collect()
        };
        let windows = |cells: &[Option<&'a MeasuredCell<'a>>]| {
            cells.iter().map(|cell| cell.map_or(&[][..], |cell| &cell.windows)).collect()
        };
        Some(MatchedCell {
            cell: old.cell,
            metric: key.1,
            position: old.position,
            logs: [logs(&before), logs(&after)],
            windows: [windows(&before), windows(&after)],
            pages_differ: different_pages(old.placements, new.placements),
        })
    };
    let mut cells: Vec<MatchedCell<'a>> = sides[0].keys().into_iter().filter_map(matched).collect();
    cells.sort_by_key(|cell| cell.position);
    cells
}

pub(super) struct Unmatched {
    pub only_in_baseline: Vec<CellId>,
    pub only_in_candidate: Vec<CellId>,
    pub not_in_every_run: Vec<CellId>,
}

/// Returns the cells that some runs lack.
pub(super) fn unmatched(sides: &[Side<'_>; 2]) -> Unmatched {
    let [before, after] = [sides[0].ids(), sides[1].ids()];
    let is_everywhere = |id: &CellId| {
        let has = |run: &Run<'_>| run.keys().any(|(other, _)| *other == id);
        sides.iter().all(|side| side.runs.iter().all(has))
    };
    let owned = |ids: &mut dyn Iterator<Item = &&CellId>| ids.map(|id| (*id).clone()).collect();
    Unmatched {
        only_in_baseline: owned(&mut before.difference(&after)),
        only_in_candidate: owned(&mut after.difference(&before)),
        not_in_every_run: owned(&mut before.intersection(&after).filter(|id| !is_everywhere(id))),
    }
}

/// Returns the page sizes of two cells in bytes, if they differ.
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
