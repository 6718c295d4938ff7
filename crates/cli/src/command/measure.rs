//! `numalab measure`.

use std::path::{Path, PathBuf};

use numalab_host::files::create_unique_directory;
use numalab_measure::{LiveRun, MeasureError, MeasurePlan, Target, directory_name};
use numalab_record::{Document, Effort, Run};
use numalab_results::compare::NamedRun;
use numalab_results::run::Summary;
use numalab_topology::count;

use super::compare::{compare, named_runs};
use super::measuring::{
    complain, deliver, machine_here, measure as taken, new_run, print_plan, survey,
};
use crate::args::{FailIf, Format, MeasureArgs};
use crate::failure::Failure;
use crate::output;

/// Parent of result directories, unless `-o` gives another.
const RESULTS: &str = "results";

/// Measures the machine, writes the reports, and compares with a baseline if one is given.
pub(crate) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    let baseline = named_runs(&args.baseline)?;
    if args.given.output.dry_run {
        let target = survey(&args.given.selection)?;
        let plan = plan(&target, effort(args)).like(baseline.first().map(|run| &run.document));
        plan.check()?;
        return print_plan(&plan.foreseen(), &args.given.rules, effort(args).budget());
    }
    let runs = match &args.resume {
        Some(directory) => vec![finished(&resume(directory, &baseline)?, args)?],
        None => measure(args, &baseline)?,
    };
    if baseline.is_empty() { Ok(()) } else { judge(args, &baseline, &runs) }
}

/// Takes the runs one after the other, all at the sizes of the baseline's first run or, without
/// one, of their own first run.
fn measure(args: &MeasureArgs, baseline: &[NamedRun]) -> Result<Vec<NamedRun>, Failure> {
    let target = survey(&args.given.selection)?;
    let effort = effort(args);
    plan(&target, effort).check()?;
    let mut parent = args.given.output.output.clone().unwrap_or_else(|| PathBuf::from(RESULTS));
    let mut runs: Vec<NamedRun> = Vec::new();
    for number in 1..=args.repeat {
        let mut run =
            new_run("measure", &target, &args.given.rules, &args.given.output, effort.budget());
        if args.repeat > 1 && number == 1 {
            parent = place_of_repeats(&run, &parent)?;
        }
        let first = baseline.first().or(runs.first()).map(|run| &run.document);
        let plan = plan(&target, effort).like(first);
        run.survey = Some(plan.choice());
        let mut live = LiveRun::begin(run, Some(&parent))?;
        go_on(&mut live, &plan)?;
        runs.push(finished(&live, args)?);
    }
    if args.repeat > 1 && args.given.output.format == Format::Text && !output::quiet() {
        let place = parent.display();
        output::print(&format!(
            "\n{} runs, a part of a baseline: --baseline {place}\nA verdict needs runs from four \
             or more occasions at least half an hour apart: runs taken together cannot show what they share.\n",
            runs.len()
        ))?;
    }
    Ok(runs)
}

/// Returns the directory that keeps the runs of `--repeat`.
fn place_of_repeats(run: &Run, parent: &Path) -> Result<PathBuf, Failure> {
    create_unique_directory(parent, &directory_name(run))
        .map_err(|error| Failure::at(parent, error))
}

/// Writes and prints the reports of a run.
fn finished(live: &LiveRun, args: &MeasureArgs) -> Result<NamedRun, Failure> {
    let document = live.document();
    deliver(&document, live.directory(), &args.given.output)?;
    point_to(live.directory(), args)?;
    if let Some(directory) = live.directory() {
        point_to_rest(&document, directory);
    }
    let name = live.directory().map(|path| path.display().to_string()).unwrap_or_default();
    Ok(NamedRun { name, document })
}

/// Measures the cells that the run does not have yet.
fn go_on(live: &mut LiveRun, plan: &MeasurePlan<'_>) -> Result<(), Failure> {
    let second = |document: &Document| plan.second_phase(document);
    let (first, foreseen) = (plan.first_phase(), plan.foreseen());
    complain(&taken(live, (&first, &foreseen[first.len()..]), second)?)
}

/// Continues an interrupted run with its original plan.
fn resume(directory: &Path, baseline: &[NamedRun]) -> Result<LiveRun, Failure> {
    let mut live = LiveRun::resume(directory)?;
    let Some(choice) = live.run().survey.clone() else {
        let (directory, command) = (directory.display(), live.run().command.join(" "));
        return Err(Failure::bad_input(format!(
            "{directory} was started by `{command}`: expected a run of numalab measure 0.2 or later"
        )));
    };
    let machine = machine_here()?;
    let plan = MeasurePlan::again(&machine, &choice).map_err(MeasureError::from)?;
    go_on(&mut live, &plan.like(baseline.first().map(|run| &run.document)))?;
    Ok(live)
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

fn point_to(directory: Option<&Path>, args: &MeasureArgs) -> Result<(), Failure> {
    match directory {
        Some(directory) if args.given.output.format == Format::Text && !output::quiet() => {
            output::print(&format!("\nThe whole report: {}/report.html\n", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Names the command that measures the cells for which there was no time.
fn point_to_rest(document: &Document, directory: &Path) {
    let unmeasured = Summary::of(document).progress.unmeasured;
    if unmeasured > 0 {
        output::hint(format_args!(
            "there was no time for {}: `numalab measure --resume {}` goes on for as long again, and \
             --budget gives a new run more",
            count(unmeasured, "cell"),
            directory.display()
        ));
    }
}

fn judge(args: &MeasureArgs, baseline: &[NamedRun], runs: &[NamedRun]) -> Result<(), Failure> {
    let (report, judgement) = compare(baseline, runs, args.margin)?;
    if args.given.output.format == Format::Text {
        output::show(&*report, Format::Text)?;
    }
    FailIf::check(args.fail_if, &judgement)
}
