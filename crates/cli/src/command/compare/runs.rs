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
    let judgement = comparison.judgement(margin_percent);
    Ok((Box::new(comparison.document()), judgement))
}

/// Refuses a run that was given before, because two copies do not show how runs vary.
pub(super) fn refuse_copy(runs: &[NamedRun], run: &NamedRun) -> Result<(), Failure> {
    let Some(first) = runs.iter().find(|first| first.document == run.document) else {
        return Ok(());
    };
    Err(Failure::bad_input(format!(
        "{} and {} hold the same run: expected different runs",
        first.name, run.name
    )))
}

/// Reads result directories. A directory that is not a result but contains results stands for those
/// results.
pub(crate) fn named_runs(paths: &[PathBuf]) -> Result<Vec<NamedRun>, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        let inner = runs_in(path);
        let paths = if inner.is_empty() { std::slice::from_ref(path) } else { &inner[..] };
        for path in paths {
            let run = NamedRun {
                name: path.display().to_string(),
                document: numalab_measure::read(path)?,
            };
            refuse_copy(&runs, &run)?;
            runs.push(run);
        }
    }
    Ok(runs)
}
