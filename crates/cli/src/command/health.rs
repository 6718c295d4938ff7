//! `numalab fleet health`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use numalab_host::{Root, read_environment};
use numalab_measure::{LiveRun, Tally, Target, health_cells};
use numalab_page::number::count;
use numalab_record::Cell;
use numalab_results::compare::NamedRun;
use numalab_results::health::page::reason;
use numalab_results::health::{LEAST_BASELINE_RUNS, Limits, Severity, health, of_another_kind};

use super::compare::named_runs;
use super::measuring::{measure as taken, new_run, print_plan, survey, write_reports};
use crate::args::{Format, Output, Rules, Selection, value};
use crate::failure::{Code, Failure};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab measure --quick --repeat 2 --label good
                                           part of a baseline, on a healthy machine: repeat it
                                           at two other hours
  numalab fleet health --baseline results/measure-*-good
                                           at most 10 s; one line that says what is wrong
  numalab fleet health -q --baseline results/measure-*-good
                                           only that line, as a drain reason
  numalab fleet health --baseline results/measure-*-good --dry-run
                                           what would be measured

It measures the core clock, and the local latency and bandwidth of each node, as in the baseline,
and measures again what looks worse. A figure is worse if it exceeds both the limit and the
differences between runs of the baseline; it is failing only if these were taken at three
different times. All memory and CPUs of the baseline must be present.
Exit codes: 0 healthy, 4 failing, 6 degraded, or uncertain because of other load; other codes
as usual.")]
pub(crate) struct HealthArgs {
    /// Result directories of three runs or more, or one directory with those of `--repeat`; of this
    /// machine, or of others of its kind
    #[arg(long, value_name = "DIR", num_args = 1.., required = true)]
    pub baseline: Vec<PathBuf>,
    /// Figures worse by more than this percentage are degraded: exit 6
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    pub degraded: f64,
    /// Figures worse by more than this percentage fail the check: exit 4
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    pub failing: f64,
    /// Total time, such as 5s; half of it is for repeating suspicious measurements
    #[arg(long, value_name = "TIME", default_value = "9s", value_parser = value::duration)]
    pub budget: Duration,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub output: Output,
}

/// Relative precision that suffices to find a degradation of a tenth.
const PRECISION: f64 = 0.01;

/// Measures the most telling figures, repeats those that look worse, and reports the machine's
/// health.
pub(crate) fn run(args: &HealthArgs) -> Result<(), Failure> {
    let limits = limits(args)?;
    let baseline = baseline(args)?;
    let target = survey(&args.selection)?;
    let here = read_environment(&Root::live());
    if let Some((run, [there, here])) = of_another_kind(&baseline, &here) {
        return Err(Failure::bad_input(format!(
            "--baseline: {run} is of another kind of machine, {there:?} and not {here:?}: expected \
             runs of this machine, or of others of its kind"
        )));
    }
    let cells = health_cells(&baseline[0].document, &target.machine, &target.scope);
    if cells.is_empty() {
        let first = &baseline[0].name;
        return Err(Failure::bad_input(format!(
            "{first} has nothing that can be measured here: expected runs of `numalab measure` on \
             this machine or one of its kind"
        )));
    }
    if args.output.dry_run {
        return print_plan(&cells, &rules(args.budget / 2), args.budget / 2);
    }
    let (first, tally) = measure(args, &target, &cells)?;
    let mut runs = vec![first];
    let mut found = health(&baseline, &runs, limits);
    if !found.suspected.is_empty() {
        let suspected = |cell: &&Cell| found.suspected.contains(&cell.id);
        let again: Vec<Cell> = cells.iter().filter(suspected).cloned().collect();
        runs.push(measure(args, &target, &again)?.0);
        found = health(&baseline, &runs, limits);
    }
    match args.output.format {
        Format::Text if output::quiet() => output::print(&(reason(&found) + "\n"))?,
        format => output::show_taken(&found, format)?,
    }
    verdict(found.severity, &tally)
}

fn limits(args: &HealthArgs) -> Result<Limits, Failure> {
    let (degraded_percent, failing_percent) = (args.degraded, args.failing);
    if 0.0 < degraded_percent && degraded_percent <= failing_percent && failing_percent < 100.0 {
        return Ok(Limits { degraded_percent, failing_percent });
    }
    Err(Failure::bad_input(format!(
        "--degraded {degraded_percent} --failing {failing_percent}: expected percentages above 0 \
         and below 100, the second at least the first"
    )))
}

/// Reads the baseline, and requires enough runs to know how they differ.
fn baseline(args: &HealthArgs) -> Result<Vec<NamedRun>, Failure> {
    let runs = named_runs(&args.baseline)?;
    if runs.len() < LEAST_BASELINE_RUNS {
        return Err(Failure::bad_input(format!(
            "--baseline: found {}, expected {LEAST_BASELINE_RUNS} or more, such as those of \
             `numalab measure --quick --repeat 2`, begun at three different hours",
            count(runs.len(), "run")
        )));
    }
    Ok(runs)
}

fn rules(budget: Duration) -> Rules {
    Rules { precision: PRECISION, budget: Some(budget), seed: None }
}

/// Runs these cells with freshly allocated memory; keeps the run if `-o` is given.
fn measure(
    args: &HealthArgs,
    target: &Target,
    cells: &[Cell],
) -> Result<(NamedRun, Tally), Failure> {
    let budget = args.budget / 2;
    let run = new_run("health", target, &rules(budget), &args.output, budget);
    let mut live = LiveRun::begin(run, args.output.output.as_deref())?;
    let tally = taken(&mut live, (cells, &[]), |_| Vec::new())?;
    let document = live.document();
    if let Some(directory) = live.directory() {
        write_reports(&document, directory)?;
    }
    Ok((NamedRun { name: "this run".to_owned(), document }, tally))
}

/// Returns the exit code; a figure that could not be measured is not healthy.
fn verdict(severity: Severity, tally: &Tally) -> Result<(), Failure> {
    match (severity, &tally.first_failure) {
        (Severity::Failing, _) => Err(Failure::new(Code::Worse, "")),
        (Severity::Degraded, _) | (Severity::Disturbed, None) => {
            Err(Failure::new(Code::Degraded, ""))
        }
        (Severity::Disturbed | Severity::Healthy, Some((class, reason))) => {
            let failed = count(tally.failed, "cell");
            let message = format!("{failed} could not be measured: {reason}");
            Err(Failure::new(*class, message))
        }
        (Severity::Healthy, None) => Ok(()),
    }
}
