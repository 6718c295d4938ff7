//! Figures of one cell.

use numalab_record::{
    BandwidthCell, Cell, CellResult, LatencyCell, LoadedCell, Metric, Outcome, Placement,
    all_windows_count,
};
use numalab_stats::{Confidence, Interval, Sample, stopped_interval};
use serde::Serialize;

/// A median with its confidence interval; documents contain only the median.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "f64")]
pub struct Figure {
    /// The median in the metric's unit.
    pub median: f64,
    /// The 10th percentile of the windows: the figure that neighbours disturb least, where lower is
    /// better.
    pub floor: f64,
    /// The 95 % confidence interval of the median, corrected for correlation between neighbouring
    /// windows; `None` with too few windows.
    pub interval: Option<Interval>,
    /// The number of independent windows that would give the same precision; `None` without an
    /// interval.
    pub effective_size: Option<f64>,
    /// The factor by which the interval may be too short because windows come in bursts.
    pub bursts: Option<f64>,
}

impl Figure {
    /// Computes the figure of finite values given in time order; `None` if there are none.
    pub fn of(values: Vec<f64>) -> Option<Self> {
        let sample = Sample::new(values).ok()?;
        let found = stopped_interval(&sample, Confidence::P95).ok();
        Some(Self {
            floor: sample.percentile(10.0),
            median: found.as_ref().map_or_else(|| sample.median(), |serial| serial.estimate.value),
            interval: found.as_ref().map(|serial| serial.estimate.interval),
            effective_size: found.as_ref().map(|serial| serial.effective_size),
            bursts: found.and_then(|serial| serial.bursts),
        })
    }
}

impl From<Figure> for f64 {
    fn from(figure: Figure) -> Self {
        figure.median
    }
}

/// One metric of one cell, with and without disturbed windows.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFigures {
    pub metric: Metric,
    /// Windows with a finite value.
    pub windows: usize,
    /// Number of these windows that were disturbed.
    pub disturbed: usize,
    /// The figure without disturbed windows.
    pub kept: Option<Figure>,
    pub all: Option<Figure>,
}

impl MetricFigures {
    /// Returns the figure to report: without disturbed windows, or with them if too few remain.
    pub fn best(&self) -> Option<&Figure> {
        let all = all_windows_count(self.windows - self.disturbed, self.disturbed);
        if all { self.all.as_ref() } else { self.kept.as_ref() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellState<'a> {
    /// The interval became as narrow as requested.
    Precise,
    /// The budget ran out first.
    BudgetSpent,
    /// The cell could not be measured, for this reason.
    Failed(&'a str),
    /// The run ended before the cell did.
    Unmeasured,
}

/// One cell of the plan with its figures.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    pub cell: &'a Cell,
    /// The state in which the run left the cell.
    pub state: CellState<'a>,
    /// Proofs of placement, one per worker.
    pub placements: &'a [Placement],
    /// One entry per metric with samples.
    pub figures: Vec<MetricFigures>,
}

impl<'a> CellSummary<'a> {
    /// Computes the figures of one cell.
    pub fn of(result: &'a CellResult) -> Self {
        Self {
            cell: &result.cell,
            state: match &result.ended {
                Some(Outcome::Precise) => CellState::Precise,
                Some(Outcome::BudgetSpent) => CellState::BudgetSpent,
                Some(Outcome::Failed { reason }) => CellState::Failed(reason),
                None => CellState::Unmeasured,
            },
            placements: &result.placements,
            figures: Metric::ALL
                .into_iter()
                .filter_map(|metric| figures_of(result, metric))
                .collect(),
        }
    }

    /// Returns `true` if the figures count: the cell ended, and its placement was proven.
    pub fn counts(&self) -> bool {
        matches!(self.state, CellState::Precise | CellState::BudgetSpent)
    }

    /// Returns the figure to report for `metric`; `None` if the cell does not count.
    pub fn figure(&self, metric: Metric) -> Option<&Figure> {
        if !self.counts() {
            return None;
        }
        self.figures.iter().find(|figures| figures.metric == metric)?.best()
    }

    /// Returns the share of the windows of `metric` that other load disturbed, 0 to 1.
    pub fn disturbed_share(&self, metric: Metric) -> f64 {
        let figures = self.figures.iter().find(|figures| figures.metric == metric);
        figures.map_or(0.0, |found| found.disturbed as f64 / found.windows.max(1) as f64)
    }

    /// Returns the parameters of a latency cell.
    pub fn latency(&self) -> Option<&'a LatencyCell> {
        self.cell.experiment.cell()
    }

    /// Returns the parameters of a bandwidth cell.
    pub fn bandwidth(&self) -> Option<&'a BandwidthCell> {
        self.cell.experiment.cell()
    }

    /// Returns the parameters of a loaded-latency cell.
    pub fn loaded(&self) -> Option<&'a LoadedCell> {
        self.cell.experiment.cell()
    }
}

fn figures_of(result: &CellResult, metric: Metric) -> Option<MetricFigures> {
    let samples = || {
        let wanted = move |sample: &&numalab_record::Sample| {
            sample.metric == metric && sample.value.is_finite()
        };
        result.samples.iter().filter(wanted)
    };
    let all = Figure::of(samples().map(|sample| sample.value).collect())?;
    let quiet = samples().filter(|sample| sample.disturbed.is_none());
    let kept: Vec<f64> = quiet.map(|sample| sample.value).collect();
    let windows = samples().count();
    Some(MetricFigures {
        metric,
        windows,
        disturbed: windows - kept.len(),
        kept: Figure::of(kept),
        all: Some(all),
    })
}
