//! `numalab compare`.

mod commands;
mod machine;
mod runs;
mod samples;
mod studies;

use std::path::{Path, PathBuf};

use numalab_host::note;
use numalab_results::compare::Tolerance;
use numalab_results::{Judgement, Report};

use crate::args::{CompareArgs, FailIf};
use crate::failure::Failure;
use crate::output;

pub(crate) use commands::metric_of_pattern;
use runs::refuse_copy;
pub(crate) use runs::{compare, named_runs};

/// Largest change that counts as none, in percent.
const MARGIN: f64 = 2.0;

/// A comparison, and the judgement of it.
pub(crate) type Compared = (Box<dyn Report>, Judgement);

/// Compares the given results, and prints what changed.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    if let Some(words) = &args.commands {
        return commands::run(args, words);
    }
    if let ([baseline, candidate], []) = (&args.results[..], &args.baseline[..]) {
        note_one_place(baseline, candidate);
    }
    let (report, judgement) = match (&args.results[..], &args.baseline[..]) {
        (candidate, baseline) if !baseline.is_empty() => compare_runs(args, baseline, candidate),
        ([baseline, candidate], _) if baseline.is_dir() && candidate.is_dir() => {
            directories(args, baseline, candidate)
        }
        ([file, result], _) if machine::is_machine(file) => machine::compared(args, file, result),
        ([baseline, candidate], _) => samples::compared(args, [baseline, candidate]),
        _ => Err(Failure::bad_input(
            "expected two result directories or two files, or result directories and \
             --baseline DIR...",
        )),
    }?;
    output::show_taken(&*report, args.format)?;
    FailIf::check(args.fail_if, &judgement)
}

/// Notes that both names refer to the same file or directory.
fn note_one_place(baseline: &Path, candidate: &Path) {
    let places = [baseline, candidate].map(|path| path.canonicalize().ok());
    if places[0].is_some() && places[0] == places[1] {
        note(format_args!(
            "{} and {} are the same place: it does not differ from itself, so nothing can be worse",
            baseline.display(),
            candidate.display()
        ));
    }
}

fn directories(args: &CompareArgs, first: &PathBuf, second: &PathBuf) -> Result<Compared, Failure> {
    match [first, second].map(|path| numalab_study::is_study(path)) {
        [true, true] => {
            refuse_metric(args)?;
            studies::compared(args, [first, second])
        }
        [false, false] => {
            compare_runs(args, std::slice::from_ref(first), std::slice::from_ref(second))
        }
        [true, false] => Err(unlike(first, second)),
        [false, true] => Err(unlike(second, first)),
    }
}

fn compare_runs(
    args: &CompareArgs,
    baseline: &[PathBuf],
    candidate: &[PathBuf],
) -> Result<Compared, Failure> {
    refuse_metric(args)?;
    let (baseline, candidate) = (named_runs(baseline)?, named_runs(candidate)?);
    if !args.baseline.is_empty() {
        candidate.iter().try_for_each(|run| refuse_copy(&baseline, run))?;
    }
    compare(&baseline, &candidate, args.margin.unwrap_or(MARGIN))
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
         `numalab report {study}` shows the study's own results"
    ))
}

fn tolerance(margin_percent: f64) -> Result<Tolerance, Failure> {
    Tolerance::percent(margin_percent)
        .map_err(|error| Failure::bad_input(format!("--margin {margin_percent}: {error}")))
}
