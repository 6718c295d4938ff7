//! Two files of numbers, or two logs.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use numalab_host::bounded::{MOST_RESULT_BYTES, read_input_text};
use numalab_results::samples::{SampleComparison, numbers};
use numalab_workload::Pattern;

use super::{Compared, MARGIN};
use crate::args::CompareArgs;
use crate::failure::Failure;

/// Compares the values of two files.
pub(super) fn compared(args: &CompareArgs, paths: [&PathBuf; 2]) -> Result<Compared, Failure> {
    let pattern = args.metric.as_deref().map(Pattern::parse).transpose();
    let pattern = pattern.map_err(|error| Failure::bad_input(format!("--metric: {error}")))?;
    let names = paths.map(|path| path.display().to_string());
    // Files of millions of numbers are read in parallel.
    let [baseline, candidate] = thread::scope(|scope| {
        let candidate = scope.spawn(|| values(paths[1], pattern.as_ref()));
        let baseline = values(paths[0], pattern.as_ref());
        [baseline, candidate.join().unwrap_or_else(|panic| resume_unwind(panic))]
    });
    let unit = pattern.as_ref().map_or("", Pattern::label).to_owned();
    let margin_percent = args.margin.unwrap_or(MARGIN);
    let values = [baseline?, candidate?];
    let comparison = SampleComparison::of(names, values, unit, args.better, margin_percent)
        .map_err(|error| Failure::bad_input(format!("--margin {margin_percent}: {error}")))?;
    let worse = [comparison.is_worse(), comparison.is_tail_worse()];
    let baseline = paths[0].display().to_string();
    Ok(Compared { report: Box::new(comparison), worse, undecided: None, margin_percent, baseline })
}

/// Returns the values of a file: those that match the pattern, or all of its words.
fn values(path: &Path, pattern: Option<&Pattern>) -> Result<Vec<f64>, Failure> {
    let name = path.display();
    let text = read_input_text(path, MOST_RESULT_BYTES).map_err(|error| {
        Failure::bad_input(format!(
            "{name}: {error}: expected two result directories, files of numbers or logs"
        ))
    })?;
    let values = match pattern {
        Some(pattern) => pattern.values(&text),
        None => numbers(&text).map_err(|(line, word)| {
            Failure::bad_input(format!(
                "{name}, line {line}: `{word}`: expected numbers such as 1.5, or a log with --metric \
                 PATTERN"
            ))
        })?,
    };
    match values.is_empty() {
        true => Err(Failure::bad_input(format!("{name}: no values: expected at least one"))),
        false => Ok(values),
    }
}
