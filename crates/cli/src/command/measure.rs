//! `numalab measure`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use numalab_measure::{Effort, MeasureContext, MeasurePlan, RunRecorder};
use numalab_record::Document;

use super::compare::{compare, fail_if};
use super::measuring::{
    Target, complain, context_for, deliver, facts_now, interrupted, measure_phases, new_run,
    note_clock, print_plan, recorder_for,
};
use crate::args::{Cli, Command, Format, MeasureArgs};
use crate::failure::Failure;
use crate::output;

/// Where result directories go unless `-o` says otherwise.
const RESULTS: &str = "results";

/// Measures the machine, writes the reports, and compares if asked to.
pub(crate) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    let baseline = args.baseline.as_deref().map(numalab_measure::read).transpose()?;
    let recorder = match &args.resume {
        Some(directory) => resume(directory, args.output.quiet)?,
        None => {
            let target = Target::survey(&args.selection)?;
            if args.output.dry_run {
                return print_plan(&plan(&target, effort(args)).foreseen());
            }
            measure(args, &target)?
        }
    };
    let document = recorder.document();
    deliver(&document, recorder.directory(), &args.output)?;
    point_to(recorder.directory(), args)?;
    match (&args.baseline, baseline) {
        (Some(path), Some(baseline)) => judge(args, path, &baseline, &document),
        _ => Ok(()),
    }
}

fn measure(args: &MeasureArgs, target: &Target) -> Result<RunRecorder, Failure> {
    let effort = effort(args);
    let mut run = new_run("measure", target, &args.rules, &args.output, budget(effort));
    let context = context_for(&run)?;
    note_clock(&mut run, &context);
    let parent = args.output.output.clone().unwrap_or_else(|| PathBuf::from(RESULTS));
    go_on(&context, recorder_for(run, Some(&parent))?, target, effort, args.output.quiet)
}

/// Measures what the recorder does not have yet.
fn go_on(
    context: &MeasureContext,
    mut recorder: RunRecorder,
    target: &Target,
    effort: Effort,
    quiet: bool,
) -> Result<RunRecorder, Failure> {
    let plan = plan(target, effort);
    let second = |document: &Document| plan.second_phase(document);
    let tally = measure_phases(context, &mut recorder, &plan.first_phase(), second, quiet)
        .map_err(|error| interrupted(error, &recorder))?;
    complain(&tally)?;
    Ok(recorder)
}

/// Goes on with an interrupted run, under the options that it was begun with.
fn resume(directory: &Path, quiet: bool) -> Result<RunRecorder, Failure> {
    let recorder = RunRecorder::resumed(directory)?;
    let command = recorder.run().command.clone();
    let begun = match Cli::try_parse_from(&command).map(|cli| cli.command) {
        Ok(Command::Measure(begun)) => begun,
        _ => {
            let (directory, command) = (directory.display(), command.join(" "));
            return Err(Failure::bad_input(format!(
                "{directory} was begun by `{command}`: only a run of numalab measure can go on"
            )));
        }
    };
    let target = Target::survey(&begun.selection)?;
    recorder.check_same_system(&facts_now())?;
    let context = context_for(recorder.run())?;
    go_on(&context, recorder, &target, effort(&begun), quiet)
}

fn plan(target: &Target, effort: Effort) -> MeasurePlan<'_> {
    MeasurePlan::new(&target.machine, target.scope.clone(), effort, target.pages)
}

fn effort(args: &MeasureArgs) -> Effort {
    match (args.quick, args.thorough) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Thorough,
        _ => Effort::Normal,
    }
}

fn budget(effort: Effort) -> Duration {
    Duration::from_secs(match effort {
        Effort::Quick => 12,
        Effort::Normal => 60,
        Effort::Thorough => 1_800,
    })
}

/// Says where the page is.
fn point_to(directory: Option<&Path>, args: &MeasureArgs) -> Result<(), Failure> {
    match directory {
        Some(directory) if args.output.format == Format::Text && !args.output.quiet => {
            output::print(&format!("\nThe whole report: {}/report.html\n", directory.display()))
        }
        _ => Ok(()),
    }
}

fn judge(
    args: &MeasureArgs,
    path: &Path,
    baseline: &Document,
    document: &Document,
) -> Result<(), Failure> {
    let comparison = compare(baseline, document, args.margin)?;
    if !args.output.quiet && args.output.format == Format::Text {
        output::show(&comparison, Format::Text)?;
    }
    fail_if(args.fail_if, comparison.any_worse(), args.margin, path)
}
