//! Statistics over the ranks of a step.

use numalab_record::scaling::{Mode, Scaling, ScalingMetric, ScalingStep};
use numalab_stats::Sample;
use serde::Serialize;

/// Statistics over the ranks of one step at one size.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StepFigures {
    /// The step's file.
    pub file: String,
    /// The order of binding.
    pub mode: Mode,
    /// The nodes on which cores are used.
    pub domains: Vec<u32>,
    /// True if ranks measured one after the other.
    pub serial: bool,
    /// The metric of the figures.
    pub metric: ScalingMetric,
    /// Number of ranks.
    pub ranks: usize,
    /// Buffer size of each rank, in bytes.
    pub size_bytes: u64,
    /// The mean over the ranks.
    pub mean: f64,
    /// The median over the ranks.
    pub median: f64,
    /// The sample standard deviation.
    pub deviation: f64,
    /// The lowest value.
    pub min: f64,
    /// The highest value.
    pub max: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The highest value minus the lowest.
    pub range: f64,
    /// The speed relative to the baseline's, 1 for no loss. The baseline is the step with the
    /// fewest ranks of the same series.
    pub efficiency: Option<f64>,
    /// Number of ranks of the baseline.
    pub baseline_ranks: Option<usize>,
}

/// Returns `true` if steps differ only in the number of ranks, which makes them one series.
pub fn same_series(a: &ScalingStep, b: &ScalingStep) -> bool {
    let key = |step: &ScalingStep| (step.metric, step.mode, step.serial, step.domains.clone());
    key(a) == key(b)
}

/// Returns a series' name: `sequential, node 0` or `interleaved, nodes 0,1, one at a time`.
pub fn series_name(step: &ScalingStep) -> String {
    let numbers: Vec<String> = step.domains.iter().map(u32::to_string).collect();
    let nodes = match numbers.len() {
        0 => String::new(),
        1 => format!(", node {}", numbers[0]),
        _ => format!(", nodes {}", numbers.join(",")),
    };
    let serial = if step.serial { ", one at a time" } else { "" };
    format!("{}{nodes}{serial}", step.mode.name())
}

/// Returns one step of each series, in order.
pub fn series(scaling: &Scaling) -> Vec<&ScalingStep> {
    let mut firsts: Vec<&ScalingStep> = Vec::new();
    for step in &scaling.steps {
        if !firsts.iter().any(|first| same_series(first, step)) {
            firsts.push(step);
        }
    }
    firsts
}

/// Returns the step with the fewest ranks of a series that has the size.
pub fn baseline<'a>(
    scaling: &'a Scaling,
    step: &ScalingStep,
    size_bytes: u64,
) -> Option<&'a ScalingStep> {
    let same = scaling.steps.iter().filter(|other| same_series(other, step));
    same.filter(|other| other.at(size_bytes).is_some()).min_by_key(|other| other.ranks())
}

/// Returns the mean of the finite values; `None` if there are none.
pub fn mean(values: &[f64]) -> Option<f64> {
    Sample::new(values).ok().map(|sample| sample.mean())
}

/// Returns the statistics of every step and size.
pub fn all(scaling: &Scaling) -> Vec<StepFigures> {
    let each = scaling
        .steps
        .iter()
        .flat_map(|step| step.sizes_bytes.iter().filter_map(|&size| figures(scaling, step, size)));
    each.collect()
}

fn figures(scaling: &Scaling, step: &ScalingStep, size_bytes: u64) -> Option<StepFigures> {
    let sample = Sample::new(step.at(size_bytes)?).ok()?;
    let baseline = baseline(scaling, step, size_bytes);
    let base = baseline.and_then(|base| mean(base.at(size_bytes)?));
    let efficiency = base.map(|base| match step.metric {
        ScalingMetric::Latency => base / sample.mean(),
        ScalingMetric::Bandwidth => sample.mean() / base,
    });
    Some(StepFigures {
        file: step.file.clone(),
        mode: step.mode,
        domains: step.domains.clone(),
        serial: step.serial,
        metric: step.metric,
        ranks: step.ranks(),
        size_bytes,
        mean: sample.mean(),
        median: sample.median(),
        deviation: if sample.len() > 1 { sample.standard_deviation() } else { 0.0 },
        min: sample.min(),
        max: sample.max(),
        p90: sample.percentile(90.0),
        p99: sample.percentile(99.0),
        range: sample.max() - sample.min(),
        efficiency,
        baseline_ranks: baseline.map(ScalingStep::ranks),
    })
}
