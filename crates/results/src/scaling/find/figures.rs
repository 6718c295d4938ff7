//! Statistics over the ranks of a step.

use numalab_record::scaling::{Mode, Scaling, ScalingMetric, ScalingStep};
use numalab_stats::Sample;
use serde::Serialize;

/// What the ranks of one step measured at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepFigures {
    /// The file.
    pub file: String,
    /// The order of binding.
    pub mode: Mode,
    /// The nodes whose cores are used.
    pub domains: Vec<u32>,
    /// Whether ranks measured one after the other.
    pub serial: bool,
    /// What the figures are.
    pub metric: ScalingMetric,
    /// How many ranks.
    pub ranks: usize,
    /// Bytes of each rank.
    pub size_bytes: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The standard deviation (of a sample).
    pub deviation: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// From least to most.
    pub range: f64,
    /// How much of the baseline's speed is left: 1 is all. The baseline is the step with the
    /// fewest ranks of the same series.
    pub efficiency: Option<f64>,
    /// The ranks of the baseline.
    pub baseline_ranks: Option<usize>,
}

/// Steps that differ in nothing but ranks are one series.
pub fn same_series(a: &ScalingStep, b: &ScalingStep) -> bool {
    let key = |step: &ScalingStep| (step.metric, step.mode, step.serial, step.domains.clone());
    key(a) == key(b)
}

/// `sequential, node 0`, `interleaved, nodes 0,1, one at a time`
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

/// One step of each series, in order.
pub fn series(scaling: &Scaling) -> Vec<&ScalingStep> {
    let mut firsts: Vec<&ScalingStep> = Vec::new();
    for step in &scaling.steps {
        if !firsts.iter().any(|first| same_series(first, step)) {
            firsts.push(step);
        }
    }
    firsts
}

/// The step of a series with the fewest ranks that has the size.
pub fn baseline<'a>(
    scaling: &'a Scaling,
    step: &ScalingStep,
    size_bytes: u64,
) -> Option<&'a ScalingStep> {
    let same = scaling.steps.iter().filter(|other| same_series(other, step));
    same.filter(|other| other.at(size_bytes).is_some()).min_by_key(|other| other.ranks())
}

/// The mean of finite values; `None` without any.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    Sample::new(values).ok().map(|sample| sample.mean())
}

/// Statistics of every step and size.
#[must_use]
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
