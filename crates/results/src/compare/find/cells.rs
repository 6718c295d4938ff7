//! Cells that both sides have, run by run.

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{Cell, CellId, Metric, Placement, Sample};

use super::NamedRun;
use crate::run::CellSummary;

/// Runs that begin within this time of each other share the state of the machine and of its
/// neighbours. Of real sets of three runs taken back to back, 5 % of neighbouring ones differed
/// falsely with the run as the unit, and 33 % of those farther apart.
const ONE_STATE_MS: u64 = 30 * 60 * 1000;

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
pub(super) struct MeasuredSide<'a> {
    runs: Vec<Run<'a>>,
    /// The indices of the runs of each unit.
    pub(super) units: Vec<Vec<usize>>,
}

impl<'a> MeasuredSide<'a> {
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
pub(super) fn measured(runs: &[NamedRun]) -> MeasuredSide<'_> {
    MeasuredSide { runs: runs.iter().map(medians).collect(), units: units(runs) }
}

/// Returns the units of analysis: runs of one host begun within half an hour of the first of them are
/// one.
pub(crate) fn units(runs: &[NamedRun]) -> Vec<Vec<usize>> {
    let began = |run: &usize| runs[*run].document.run.started_unix_ms;
    let host = |run: &usize| runs[*run].document.run.environment.fact("hostname");
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(began);
    let mut units: Vec<Vec<usize>> = Vec::new();
    for run in order {
        // In virtual time there is no state of the machine that runs could share.
        let is_virtual = runs[run].document.run.environment.fact("time").is_some();
        // Units are in the order in which they began.
        let is_recent = |unit: &&mut Vec<usize>| began(&run) - began(&unit[0]) < ONE_STATE_MS;
        let mut recent = units.iter_mut().rev().take_while(is_recent);
        let shares = |unit: &&mut Vec<usize>| host(&run) == host(&unit[0]);
        match recent.find(shares).filter(|_| !is_virtual) {
            Some(unit) => unit.push(run),
            None => units.push(vec![run]),
        }
    }
    units
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
    /// The mean logarithms of its medians by side and unit; `None` for units without it.
    pub logs: [Vec<Option<f64>>; 2],
    /// Its clean windows in each unit, as parts of their run's median.
    pub windows: [Vec<Vec<f64>>; 2],
    /// The page sizes in bytes that held most of the memory on each side, if they differ.
    pub pages_differ: Option<(u64, u64)>,
}

pub(super) fn matched<'a>(sides: &'a [MeasuredSide<'a>; 2]) -> Vec<MatchedCell<'a>> {
    let matched = |key: (&'a CellId, Metric)| {
        let (before, after) = (sides[0].by_run(&key)?, sides[1].by_run(&key)?);
        let (old, new) = (before.iter().flatten().next()?, after.iter().flatten().next()?);
        if old.cell.experiment != new.cell.experiment {
            return None;
        }
        let of_unit = |cells: &[Option<&'a MeasuredCell<'a>>], unit: &[usize]| {
            unit.iter().filter_map(|&run| cells[run]).collect::<Vec<_>>()
        };
        let logs = |cells: &[_], side: usize| {
            let log = |unit: &Vec<usize>| {
                let logs: Vec<f64> =
                    of_unit(cells, unit).iter().map(|cell| cell.median.ln()).collect();
                (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
            };
            sides[side].units.iter().map(log).collect()
        };
        let windows = |cells: &[_], side: usize| {
            let windows = |unit: &Vec<usize>| {
                of_unit(cells, unit).iter().flat_map(|cell| cell.windows.iter().copied()).collect()
            };
            sides[side].units.iter().map(windows).collect()
        };
        Some(MatchedCell {
            cell: old.cell,
            metric: key.1,
            position: old.position,
            logs: [logs(&before, 0), logs(&after, 1)],
            windows: [windows(&before, 0), windows(&after, 1)],
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

pub(super) fn unmatched(sides: &[MeasuredSide<'_>; 2]) -> Unmatched {
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
