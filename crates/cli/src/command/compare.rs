//! `numalab compare`.

mod commands;
mod machine;
mod runs;
mod samples;
mod studies;

use std::path::{Path, PathBuf};

use numalab_results::compare::Tolerance;

use crate::args::{CompareArgs, FailIf};
use crate::failure::{Code, Failure};

pub(crate) use runs::{compare, named_runs};

/// Largest change that counts as none, in percent.
const MARGIN: f64 = 2.0;

/// Compares the given results, and prints what changed.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    if let Some(words) = &args.commands {
        return commands::run(args, words);
    }
    match (&args.results[..], &args.baseline[..]) {
        (candidate, baseline) if !baseline.is_empty() => runs::run(args, baseline, candidate),
        ([baseline, candidate], _) if baseline.is_dir() && candidate.is_dir() => {
            directories(args, baseline, candidate)
        }
        ([file, result], _) if machine::is_machine(file) => machine::run(args, file, result),
        ([baseline, candidate], _) => samples::run(args, [baseline, candidate]),
        _ => Err(Failure::bad_input(
            "expected two result directories or two files, or result directories and \
             --baseline DIR...",
        )),
    }
}

fn directories(args: &CompareArgs, first: &PathBuf, second: &PathBuf) -> Result<(), Failure> {
    match [first, second].map(|path| numalab_study::is_study(path)) {
        [true, true] => {
            refuse_metric(args)?;
            studies::run(args, [first, second])
        }
        [false, false] => {
            runs::run(args, std::slice::from_ref(first), std::slice::from_ref(second))
        }
        [true, false] => Err(unlike(first, second)),
        [false, true] => Err(unlike(second, first)),
    }
}

fn refuse_metric(args: &CompareArgs) -> Result<(), Failure> {
    match &args.metric {
        None => Ok(()),
        Some(_) => Err(Failure::bad_input("--metric: expected two files, found directories")),
    }
}

fn unlike(study: &Path, run: &Path) -> Failure {
    let (study, run) = (study.display(), run.display());
    Failure::bad_input(format!(
        "{study} holds a study and {run} a measuring run: expected two runs of the same kind; \
         `numalab study report {study}` shows the study's own results"
    ))
}

fn tolerance(margin_percent: f64) -> Result<Tolerance, Failure> {
    Tolerance::percent(margin_percent)
        .map_err(|error| Failure::bad_input(format!("--margin {margin_percent}: {error}")))
}

/// Fails with exit code 4 if `--fail-if` is given and anything, or a far end, is worse by more than
/// the margin.
pub(crate) fn fail_if(
    condition: Option<FailIf>,
    [any_worse, any_far_end_worse]: [bool; 2],
    margin_percent: f64,
    baseline: &str,
) -> Result<(), Failure> {
    let what = match condition {
        Some(_) if any_worse => "worse",
        Some(FailIf::FarEnds) if any_far_end_worse => "far ends worse",
        _ => return Ok(()),
    };
    let message = format!("{what} than {baseline} by more than {margin_percent} %");
    Err(Failure::new(Code::Worse, message))
}
