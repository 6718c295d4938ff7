//! One cell's figures.

use numalab_record::{
    BandwidthCell, Cell, CellResult, LatencyCell, LoadedCell, Metric, Outcome, Placement,
    all_windows_count,
};
use numalab_stats::{Confidence, Interval, Sample, stopped_interval};

/// A median with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The median in the metric's unit.
    pub median: f64,
    /// The 95 % confidence interval of the median, which allows for windows
    /// that resemble their neighbours; `None` with too few windows for one.
    pub interval: Option<Interval>,
    /// How many independent windows would say as much; `None` without interval.
    pub effective_size: Option<f64>,
    /// By how many times the interval may be too short, where windows come in bursts.
    pub bursts: Option<f64>,
}

impl Figure {
    /// The figure of finite values in time order; `None` if there are none.
    #[must_use]
    pub fn of(values: Vec<f64>) -> Option<Self> {
        let sample = Sample::new(values).ok()?;
        let found = stopped_interval(&sample, Confidence::P95).ok();
        Some(Self {
            median: found.as_ref().map_or_else(|| sample.median(), |serial| serial.estimate.value),
            interval: found.as_ref().map(|serial| serial.estimate.interval),
            effective_size: found.as_ref().map(|serial| serial.effective_size),
            bursts: found.and_then(|serial| serial.bursts),
        })
    }
}

/// All figures of one metric of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFigures {
    /// The metric.
    pub metric: Metric,
    /// Windows with a finite value.
    pub windows: usize,
    /// Those of them that were disturbed.
    pub disturbed: usize,
    /// Without the disturbed windows.
    pub kept: Option<Figure>,
    /// With the disturbed windows.
    pub all: Option<Figure>,
}

impl MetricFigures {
    /// The figure to report: without disturbed windows, or with them where few are left.
    #[must_use]
    pub fn best(&self) -> Option<&Figure> {
        let all = all_windows_count(self.windows - self.disturbed, self.disturbed);
        if all { self.all.as_ref() } else { self.kept.as_ref() }
    }
}

/// How far a cell came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// Its interval became narrow enough.
    Precise,
    /// The budget ended first.
    BudgetSpent,
    /// It could not be measured, for this reason.
    Failed(&'a str),
    /// The run ended before it did.
    Unmeasured,
}

/// One cell with its figures.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    /// What was to be measured.
    pub cell: &'a Cell,
    /// How far it came.
    pub state: State<'a>,
    /// Where its workers were.
    pub placements: &'a [Placement],
    /// Its figures, one entry a metric that has samples.
    pub figures: Vec<MetricFigures>,
}

impl<'a> CellSummary<'a> {
    /// The figures of one cell.
    #[must_use]
    pub fn of(result: &'a CellResult) -> Self {
        Self {
            cell: &result.cell,
            state: match &result.ended {
                Some(Outcome::Precise) => State::Precise,
                Some(Outcome::BudgetSpent) => State::BudgetSpent,
                Some(Outcome::Failed { reason }) => State::Failed(reason),
                None => State::Unmeasured,
            },
            placements: &result.placements,
            figures: Metric::ALL
                .into_iter()
                .filter_map(|metric| figures_of(result, metric))
                .collect(),
        }
    }

    /// Whether its figures count: it ended, and its placement was proven.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self.state, State::Precise | State::BudgetSpent)
    }

    /// The figure to report for `metric`; `None` where the cell does not count.
    #[must_use]
    pub fn figure(&self, metric: Metric) -> Option<&Figure> {
        if !self.counts() {
            return None;
        }
        self.figures.iter().find(|figures| figures.metric == metric)?.best()
    }

    /// The share of the windows of `metric` that other load disturbed, 0 to 1.
    #[must_use]
    pub fn disturbed_share(&self, metric: Metric) -> f64 {
        let figures = self.figures.iter().find(|figures| figures.metric == metric);
        figures.map_or(0.0, |found| found.disturbed as f64 / found.windows.max(1) as f64)
    }

    /// The cell as a latency cell, if it is one.
    #[must_use]
    pub fn latency(&self) -> Option<&'a LatencyCell> {
        self.cell.experiment.cell()
    }

    /// The cell as a bandwidth cell, if it is one.
    #[must_use]
    pub fn bandwidth(&self) -> Option<&'a BandwidthCell> {
        self.cell.experiment.cell()
    }

    /// The cell as a loaded-latency cell, if it is one.
    #[must_use]
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
