//! The figures of each rank of a launch, read from the cells of its run.

use std::collections::BTreeMap;

use numalab_stats::median;
use numalab_topology::NodeId;

use crate::document::{CellResult, Document};
use crate::experiment::BandwidthCell;
use crate::metric::Metric;
use crate::placement::Placement;
use crate::sample::Sample;

/// The figures of a launch's ranks, as in the suite's table and CSV.
#[derive(Clone, Debug, PartialEq)]
pub struct RankTable {
    /// The metric: latency or bandwidth.
    pub metric: Metric,
    /// True if the ranks took turns.
    pub serial: bool,
    /// The sizes that all ranks have finished, in the order measured.
    pub sizes_bytes: Vec<u64>,
    pub ranks: Vec<RankFigures>,
}

/// The figures of one rank; the vectors are by size.
#[derive(Clone, Debug, PartialEq)]
pub struct RankFigures {
    pub placement: Placement,
    /// The mean over all its loads, or over all rounds of a stream.
    pub mean: Vec<f64>,
    /// The median of the undisturbed windows, or of all windows if none is undisturbed.
    pub median: Vec<f64>,
    pub windows: Vec<usize>,
    /// The disturbances of its windows, by window number.
    pub disturbed: Vec<BTreeMap<usize, String>>,
}

impl RankTable {
    /// Returns the share of disturbed windows, from 0 to 1; `None` without windows.
    pub fn disturbed_share(&self) -> Option<f64> {
        let sum = |of: fn(&RankFigures) -> usize| self.ranks.iter().map(of).sum::<usize>();
        let (windows, disturbed) = (sum(RankFigures::all_windows), sum(RankFigures::all_disturbed));
        (windows > 0).then(|| disturbed as f64 / windows as f64)
    }
}

impl RankFigures {
    /// Returns the number of its windows at all sizes.
    pub fn all_windows(&self) -> usize {
        self.windows.iter().sum()
    }

    /// Returns the number of its disturbed windows at all sizes.
    pub fn all_disturbed(&self) -> usize {
        self.disturbed.iter().map(BTreeMap::len).sum()
    }

    /// Returns the node with most of its pages.
    pub fn memory_node(&self) -> NodeId {
        self.placement.main_node()
    }

    fn add(&mut self, windows: &[&Sample]) {
        self.mean.push(mean_of(windows.iter().copied()));
        let values = |clean: bool| -> Vec<f64> {
            let taken = windows.iter().filter(|sample| !clean || sample.disturbed.is_none());
            taken.map(|sample| sample.value).collect()
        };
        let clean = values(true);
        let counted = if clean.is_empty() { values(false) } else { clean };
        self.median.push(median(&counted).unwrap_or(f64::NAN));
        self.windows.push(windows.len());
        let numbered = windows.iter().enumerate();
        let disturbed = numbered.filter_map(|(at, sample)| Some((at, sample.disturbed.clone()?)));
        self.disturbed.push(disturbed.collect());
    }
}

/// Returns the mean of a rank's windows, weighted by their loads if the value is the time per load;
/// NaN without windows.
pub fn mean_of<'a>(windows: impl IntoIterator<Item = &'a Sample>) -> f64 {
    let weight = |sample: &Sample| match sample.metric {
        Metric::Latency => sample.work as f64,
        _ => 1.0,
    };
    let (mut sum, mut weights) = (0.0, 0.0);
    for sample in windows {
        sum += sample.value * weight(sample);
        weights += weight(sample);
    }
    sum / weights
}

impl Document {
    /// Returns the figures of each rank; `None` for a run without ranks, or before a size was
    /// finished.
    pub fn rank_table(&self) -> Option<RankTable> {
        let launch = self.run.launch.as_ref()?;
        let of_sizes = self.cells.chunks(launch.teams.len().max(1));
        let is_whole = |cells: &&[CellResult]| {
            let teams = cells.iter().zip(&launch.teams);
            cells.len() == launch.teams.len()
                && teams.into_iter().all(|(cell, team)| cell.placements.len() == team.len())
        };
        let whole: Vec<&[CellResult]> = of_sizes.filter(is_whole).collect();
        let first = whole.first()?;
        let mut ranks: BTreeMap<usize, RankFigures> = BTreeMap::new();
        for (cell, team) in first.iter().zip(&launch.teams) {
            let placed = team.iter().copied().zip(&cell.placements);
            ranks.extend(placed.map(|(rank, placement)| (rank, nothing_yet(placement))));
        }
        for (cell, team) in whole.iter().flat_map(|cells| cells.iter().zip(&launch.teams)) {
            for (place, rank) in team.iter().enumerate() {
                let windows = windows_of(cell, place, team.len());
                ranks.get_mut(rank)?.add(&windows);
            }
        }
        let size =
            |cells: &&[CellResult]| cells.first()?.cell.experiment.description().axes().size_bytes;
        let streams = first.first()?.cell.experiment.cell::<BandwidthCell>().is_some();
        Some(RankTable {
            metric: if streams { Metric::Bandwidth } else { Metric::Latency },
            serial: launch.serial,
            sizes_bytes: whole.iter().filter_map(size).collect(),
            ranks: ranks.into_values().collect(),
        })
    }
}

fn nothing_yet(placement: &Placement) -> RankFigures {
    RankFigures {
        placement: placement.clone(),
        mean: Vec::new(),
        median: Vec::new(),
        windows: Vec::new(),
        disturbed: Vec::new(),
    }
}

/// Returns the windows of the worker at `place` in a cell's team; with several workers, its part of
/// each.
fn windows_of(cell: &CellResult, place: usize, workers: usize) -> Vec<&Sample> {
    let parts = cell.samples.iter().filter(|sample| sample.metric == Metric::RankBandwidth);
    match workers {
        1 => cell.samples.iter().collect(),
        _ => parts.skip(place).step_by(workers).collect(),
    }
}
