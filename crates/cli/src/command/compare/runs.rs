//! Measuring runs, one or several on each side.

use std::path::PathBuf;

use numalab_measure::runs_in;
use numalab_results::Judgement;
use numalab_results::compare::NamedRun;

use super::{Compared, tolerance};
use crate::failure::Failure;

const TOO_FEW: &str = "expected runs begun at four or more times, half an hour apart, on both sides \
                       together";

const SEEN_ONCE: &str = "a figure is out of line in the only run of a side; measure again, or use \
                         --repeat 2";

/// Compares runs with a margin in percent.
pub(crate) fn compare(
    baseline: &[NamedRun],
    candidate: &[NamedRun],
    margin_percent: f64,
) -> Result<Compared, Failure> {
    let tolerance = tolerance(margin_percent)?;
    let comparison = numalab_results::compare::compare(baseline, candidate, &tolerance);
    let worse = [comparison.any_worse(), comparison.any_tail_worse()];
    let undecided = if !comparison.is_judged() {
        Some(TOO_FEW)
    } else if comparison.any_worse_once() {
        Some(SEEN_ONCE)
    } else if comparison.is_decided() {
        None
    } else {
        Some("every figure varies more than the margin from run to run; take more runs")
    };
    let baseline = comparison.baseline.join(", ");
    let judgement = Judgement::against(&baseline, margin_percent, worse, undecided);
    Ok((Box::new(comparison.document()), judgement))
}

/// Refuses a run that was given before: two copies do not show how runs vary.
pub(super) fn refuse_copy(runs: &[NamedRun], run: &NamedRun) -> Result<(), Failure> {
    let Some(first) = runs.iter().find(|first| first.document == run.document) else {
        return Ok(());
    };
    Err(Failure::bad_input(format!(
        "{} and {} hold the same run: expected different runs",
        first.name, run.name
    )))
}

/// Reads result directories. A directory that is not a result but contains results stands for
/// these.
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
