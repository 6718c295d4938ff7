//! What is seen in a scaling run, by rules, each with its evidence. Where the evidence cannot
//! tell two causes apart, the text says so.

mod caches;
mod contention;
mod disturbance;
mod remote;

use numalab_record::scaling::{Scaling, ScalingMetric, ScalingStep};
use numalab_stats::{Alternative, Sample, rank_sum};
use serde::Serialize;

use crate::number::{count, figure, size};

/// Differences of the means below this share are not worth a sentence.
const LEAST_DIFFERENCE: f64 = 0.03;
/// The chance at which a difference between ranks counts as one.
const LEVEL: f64 = 0.05;

/// Something seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The rule, in a word or two.
    pub rule: String,
    /// What is seen, and what follows.
    pub says: String,
    /// The figures it rests on.
    pub evidence: Vec<String>,
}

impl Explanation {
    fn new(rule: &str, says: impl Into<String>, evidence: Vec<String>) -> Self {
        Self { rule: rule.to_owned(), says: says.into(), evidence }
    }
}

pub(super) fn all(scaling: &Scaling) -> Vec<Explanation> {
    let mut found = Vec::new();
    found.extend(disturbance::explain(scaling));
    found.extend(caches::explain(scaling));
    found.extend(remote::explain(scaling));
    found.extend(contention::explain(scaling));
    let placed = scaling.steps.iter().any(|step| step.places.iter().any(Option::is_some));
    if !placed {
        found.push(Explanation::new(
            "placement",
            "the placement of the ranks is unknown (no mapping_check.log, log or JSON matches these files): nothing can be said about CCDs, nodes and distance",
            Vec::new(),
        ));
    }
    found
}

/// `8M: 86.6 ns over 8 ranks, 85.1 to 88.0; file`
fn cited(step: &ScalingStep, size_bytes: u64) -> Option<String> {
    let sample = Sample::new(step.at(size_bytes)?).ok()?;
    Some(format!(
        "{}: {} {} over {}, {} to {}; {}",
        size(size_bytes),
        figure(sample.mean()),
        step.metric.unit(),
        count(sample.len(), "rank"),
        figure(sample.min()),
        figure(sample.max()),
        step.file
    ))
}

/// How two steps differ at a size.
struct Difference {
    /// The candidate's mean over the baseline's.
    ratio: f64,
    /// Whether it is large enough, and no chance among the ranks.
    real: bool,
}

fn difference(baseline: &[f64], candidate: &[f64]) -> Option<Difference> {
    let (a, b) = (Sample::new(baseline).ok()?, Sample::new(candidate).ok()?);
    let ratio = b.mean() / a.mean();
    // Fewer than four ranks a side can never reach the level: then the ranges must not meet.
    let real = match a.len() >= 4 && b.len() >= 4 {
        true => rank_sum(&a, &b, Alternative::TwoSided).p < LEVEL,
        false => b.min() > a.max() || b.max() < a.min(),
    };
    Some(Difference { ratio, real: real && (ratio - 1.0).abs() >= LEAST_DIFFERENCE })
}

/// `34 % slower`, of a ratio of means.
fn change(metric: ScalingMetric, ratio: f64) -> String {
    let slowdown = match metric {
        ScalingMetric::Latency => ratio,
        ScalingMetric::Bandwidth => 1.0 / ratio,
    };
    match slowdown >= 1.0 {
        true => format!("{} % slower", figure((slowdown - 1.0) * 100.0)),
        false => format!("{} % faster", figure((1.0 / slowdown - 1.0) * 100.0)),
    }
}
