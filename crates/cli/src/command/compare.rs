//! `numalab compare`.

mod commands;
mod samples;
mod studies;
mod table;

use std::fmt::Display;
use std::path::Path;

use numalab_analysis::compare::{Comparison, Tolerance};
use numalab_record::Document;

use crate::args::{CompareArgs, FailIf};
use crate::failure::{Code, Failure};
use crate::output;

/// Changes of a result directory that are within the noise of two runs, and changes of
/// samples that count as none, in percent.
const DIRECTORY_MARGIN: f64 = 5.0;
const SAMPLE_MARGIN: f64 = 2.0;

/// Compares what was given, and prints what changed.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    if let Some(words) = &args.commands {
        return commands::run(args, words);
    }
    if let Some(path) = &args.table {
        return table::run(args, path);
    }
    match (&args.baseline, &args.candidate) {
        (Some(baseline), Some(candidate)) if baseline.is_dir() && candidate.is_dir() => {
            directories(args, baseline, candidate)
        }
        (Some(baseline), Some(candidate)) => samples::run(args, [baseline, candidate]),
        _ => Err(Failure::bad_input("expected two result directories or two files")),
    }
}

fn directories(args: &CompareArgs, baseline: &Path, candidate: &Path) -> Result<(), Failure> {
    let margin = args.margin.unwrap_or(DIRECTORY_MARGIN);
    if args.metric.is_some() {
        return Err(Failure::bad_input("--metric: expected two files, found two directories"));
    }
    let (one, other) = (baseline.display(), candidate.display());
    match [baseline, candidate].map(numalab_study::is_study) {
        [true, true] => return studies::run(args, [baseline, candidate]),
        [false, false] => {}
        [true, false] => return Err(unlike(&one, &other)),
        [false, true] => return Err(unlike(&other, &one)),
    }
    let before = numalab_measure::read(baseline)?;
    let after = numalab_measure::read(candidate)?;
    let comparison = compare(&before, &after, margin)?;
    output::show(&comparison, args.format)?;
    fail_if(args.fail_if, comparison.any_worse(), margin, baseline)
}

fn unlike(study: &dyn Display, run: &dyn Display) -> Failure {
    Failure::bad_input(format!(
        "{study} holds a study and {run} a measuring run: expected two runs of the same kind; what \
         a study found by itself is shown by `numalab study report {study}`"
    ))
}

/// Compares two documents with a margin in percent.
pub(crate) fn compare<'a>(
    baseline: &'a Document,
    candidate: &'a Document,
    margin_percent: f64,
) -> Result<Comparison, Failure> {
    Ok(numalab_analysis::compare::compare(baseline, candidate, &tolerance(margin_percent)?))
}

fn tolerance(margin_percent: f64) -> Result<Tolerance, Failure> {
    Tolerance::percent(margin_percent)
        .map_err(|error| Failure::bad_input(format!("--margin {margin_percent}: {error}")))
}

/// Fails with exit code 4 if it was asked to and anything is worse by more than the margin.
pub(crate) fn fail_if(
    condition: Option<FailIf>,
    any_worse: bool,
    margin_percent: f64,
    baseline: &Path,
) -> Result<(), Failure> {
    match condition {
        Some(FailIf::Worse) if any_worse => {
            let message =
                format!("worse than {} by more than {margin_percent} %", baseline.display());
            Err(Failure::new(Code::Worse, message))
        }
        _ => Ok(()),
    }
}
