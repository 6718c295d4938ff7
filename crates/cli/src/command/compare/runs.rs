//! Measuring runs, one or several on each side.

use std::path::PathBuf;

use numalab_measure::runs_in;
use numalab_results::compare::NamedRun;

use super::{Compared, tolerance};
use crate::failure::Failure;

/// Compares runs with a margin in percent.
pub(crate) fn compare(
    baseline: &[NamedRun],
    candidate: &[NamedRun],
    margin_percent: f64,
) -> Result<Compared, Failure> {
    let tolerance = tolerance(margin_percent)?;
    let comparison = numalab_results::compare::compare(baseline, candidate, &tolerance);
    let worse = [comparison.any_worse(), comparison.any_tail_worse()];
    let baseline = comparison.baseline.join(", ");
    Ok(Compared { report: Box::new(comparison.document()), worse, margin_percent, baseline })
}

/// Reads result directories. A directory that is not a result but contains results stands for
/// these.
pub(crate) fn named_runs(paths: &[PathBuf]) -> Result<Vec<NamedRun>, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        let inner = runs_in(path);
        let paths = if inner.is_empty() { std::slice::from_ref(path) } else { &inner[..] };
        for path in paths {
            let document = numalab_measure::read(path)?;
            runs.push(NamedRun { name: path.display().to_string(), document });
        }
    }
    Ok(runs)
}
