//! Measuring runs, one or several on each side.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_record::{Kind, file};
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

/// Reads result directories; a directory that is not a result but contains some is replaced by
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

/// Returns the runs inside a directory that is not a run, sorted by name: oldest first.
fn runs_in(path: &Path) -> Vec<PathBuf> {
    let is_result = |path: &Path| Kind::of_directory(|name| path.join(name).is_file()).is_some();
    if is_result(path) {
        return Vec::new();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> =
        entries.filter(|path| path.join(file::CELLS).is_file() && is_result(path)).collect();
    runs.sort();
    runs
}
