//! `numalab compare`.

mod commands;
mod machine;
mod runs;
mod samples;
mod studies;

use std::path::{Path, PathBuf};

use numalab_results::Report;
use numalab_results::compare::Tolerance;

use crate::args::{CompareArgs, FailIf};
use crate::failure::{Code, Failure};
use crate::output;

use runs::refuse_copy;
pub(crate) use runs::{compare, named_runs};

/// Largest change that counts as none, in percent.
const MARGIN: f64 = 2.0;

/// A comparison with the answer to `--fail-if`.
pub(crate) struct Compared {
    pub report: Box<dyn Report>,
    /// True if anything is worse by more than the margin, and if a tail is.
    pub worse: [bool; 2],
    /// The reason why it could not be decided that nothing is worse; `None` if it was.
    pub undecided: Option<&'static str>,
    pub margin_percent: f64,
    /// Name of the baseline.
    pub baseline: String,
}

impl Compared {
    /// With `--fail-if`, fails with exit code 4 if anything, or a tail, is worse, and with 7 if that
    /// could not be decided.
    pub fn fail_if(&self, condition: Option<FailIf>) -> Result<(), Failure> {
        let [is_worse, is_tail_worse] = self.worse;
        let what = match condition {
            Some(_) if is_worse => "worse",
            Some(FailIf::Tails) if is_tail_worse => "tails worse",
            None => return Ok(()),
            Some(_) => {
                return self.undecided.map_or(Ok(()), |why| Err(undecided(&self.baseline, why)));
            }
        };
        let message =
            format!("{what} than {} by more than {} %", self.baseline, self.margin_percent);
        Err(Failure::new(Code::Worse, message))
    }
}

/// Compares the given results, and prints what changed.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    if let Some(words) = &args.commands {
        return commands::run(args, words);
    }
    let compared = match (&args.results[..], &args.baseline[..]) {
        (candidate, baseline) if !baseline.is_empty() => of_runs(args, baseline, candidate),
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
    output::show(&*compared.report, args.format)?;
    compared.fail_if(args.fail_if)
}

fn undecided(baseline: &str, why: &str) -> Failure {
    Failure::new(Code::Undecided, format!("not decided against {baseline}: {why}"))
}

fn directories(args: &CompareArgs, first: &PathBuf, second: &PathBuf) -> Result<Compared, Failure> {
    match [first, second].map(|path| numalab_study::is_study(path)) {
        [true, true] => {
            refuse_metric(args)?;
            studies::compared(args, [first, second])
        }
        [false, false] => of_runs(args, std::slice::from_ref(first), std::slice::from_ref(second)),
        [true, false] => Err(unlike(first, second)),
        [false, true] => Err(unlike(second, first)),
    }
}

fn of_runs(
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
