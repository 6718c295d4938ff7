//! `numalab measure`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use numalab_host::files::create_unique_directory;
use numalab_measure::{MeasureContext, MeasureError, MeasurePlan, RunRecorder, directory_name};
use numalab_record::{Document, Effort, Run, SurveyChoice};
use numalab_results::compare::NamedRun;
use numalab_topology::Machine;

use super::compare::{compare, named_runs};
use super::measuring::{
    Target, complain, context_for, deliver, facts_now, interrupted, machine_here, measure_phases,
    new_run, note_clock, print_plan, recorder_for,
};
use super::{Cli, Command};
use crate::args::{Format, MeasureArgs};
use crate::failure::Failure;
use crate::output;

/// Parent of result directories, unless `-o` gives another.
const RESULTS: &str = "results";

/// Measures the machine, writes the reports, and compares with a baseline if one is given.
pub(crate) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    let baseline = named_runs(&args.baseline)?;
    if args.given.output.dry_run {
        let target = Target::survey(&args.given.selection)?;
        let plan = plan(&target, effort(args)).like(baseline.first().map(|run| &run.document));
        plan.check()?;
        return print_plan(&plan.foreseen(), &args.given.rules, budget(effort(args)));
    }
    let runs = match &args.resume {
        Some(directory) => {
            let recorder = resume(directory, &baseline)?;
            vec![finished(&recorder, args)?]
        }
        None => measure(args, &baseline)?,
    };
    if baseline.is_empty() { Ok(()) } else { judge(args, &baseline, &runs) }
}

/// Takes the runs one after the other, all at the sizes of the first run of the baseline, or else
/// of their own first run.
fn measure(args: &MeasureArgs, baseline: &[NamedRun]) -> Result<Vec<NamedRun>, Failure> {
    let target = Target::survey(&args.given.selection)?;
    let effort = effort(args);
    plan(&target, effort).check()?;
    let mut parent = args.given.output.output.clone().unwrap_or_else(|| PathBuf::from(RESULTS));
    let mut runs: Vec<NamedRun> = Vec::new();
    for number in 1..=args.repeat {
        let mut run =
            new_run("measure", &target, &args.given.rules, &args.given.output, budget(effort));
        let context = context_for(&run)?;
        note_clock(&mut run, &context);
        if args.repeat > 1 && number == 1 {
            parent = place_of_repeats(&run, &parent)?;
        }
        let first = baseline.first().or(runs.first()).map(|run| &run.document);
        let plan = plan(&target, effort).like(first);
        run.survey = Some(plan.choice());
        let recorder = recorder_for(run, Some(&parent))?;
        let recorder = go_on(&context, recorder, &plan)?;
        runs.push(finished(&recorder, args)?);
    }
    if args.repeat > 1 && args.given.output.format == Format::Text && !output::quiet() {
        let place = parent.display();
        output::print(&format!("\n{} runs, a baseline: --baseline {place}\n", runs.len()))?;
    }
    Ok(runs)
}

/// Returns the directory that keeps the runs of `--repeat`.
fn place_of_repeats(run: &Run, parent: &Path) -> Result<PathBuf, Failure> {
    fs::create_dir_all(parent)
        .and_then(|()| create_unique_directory(parent, &directory_name(run)))
        .map_err(|error| Failure::at(parent, error))
}

/// Writes and prints the reports of a run.
fn finished(recorder: &RunRecorder, args: &MeasureArgs) -> Result<NamedRun, Failure> {
    let document = recorder.document();
    deliver(&document, recorder.directory(), &args.given.output)?;
    point_to(recorder.directory(), args)?;
    let name = recorder.directory().map(|path| path.display().to_string()).unwrap_or_default();
    Ok(NamedRun { name, document })
}

/// Measures the cells that the recorder does not have yet.
fn go_on(
    context: &MeasureContext,
    mut recorder: RunRecorder,
    plan: &MeasurePlan<'_>,
) -> Result<RunRecorder, Failure> {
    let second = |document: &Document| plan.second_phase(document);
    let (first, foreseen) = (plan.first_phase(), plan.foreseen());
    let phases = (&first[..], &foreseen[first.len()..]);
    let tally = measure_phases(context, &mut recorder, phases, second)
        .map_err(|error| interrupted(error, &recorder))?;
    complain(&tally)?;
    Ok(recorder)
}

/// Continues an interrupted run with its original plan.
fn resume(directory: &Path, baseline: &[NamedRun]) -> Result<RunRecorder, Failure> {
    let recorder = RunRecorder::resumed(directory)?;
    recorder.check_same_system(&facts_now())?;
    let (choice, machine) = match &recorder.run().survey {
        Some(choice) => (choice.clone(), machine_here()?),
        None => chosen_by_command(recorder.run(), directory)?,
    };
    let plan = MeasurePlan::again(&machine, &choice).map_err(MeasureError::from)?;
    let context = context_for(recorder.run())?;
    go_on(&context, recorder, &plan.like(baseline.first().map(|run| &run.document)))
}

/// Returns the choices of a run by an earlier version, which kept only its command line.
fn chosen_by_command(run: &Run, directory: &Path) -> Result<(SurveyChoice, Machine), Failure> {
    let begun = match Cli::try_parse_from(&run.command).map(|cli| cli.command) {
        Ok(Command::Measure(begun)) => begun,
        _ => {
            let (directory, command) = (directory.display(), run.command.join(" "));
            return Err(Failure::bad_input(format!(
                "{directory} was started by `{command}`: only a run of numalab measure can be \
                 continued"
            )));
        }
    };
    let target = Target::survey(&begun.given.selection)?;
    let choice = plan(&target, effort(&begun)).choice();
    Ok((choice, target.machine))
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

/// Reports where the page is.
fn point_to(directory: Option<&Path>, args: &MeasureArgs) -> Result<(), Failure> {
    match directory {
        Some(directory) if args.given.output.format == Format::Text && !output::quiet() => {
            output::print(&format!("\nThe whole report: {}/report.html\n", directory.display()))
        }
        _ => Ok(()),
    }
}

fn judge(args: &MeasureArgs, baseline: &[NamedRun], runs: &[NamedRun]) -> Result<(), Failure> {
    let compared = compare(baseline, runs, args.margin)?;
    if args.given.output.format == Format::Text {
        output::show(&*compared.report, Format::Text)?;
    }
    compared.fail_if(args.fail_if)
}
