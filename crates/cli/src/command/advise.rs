//! `numalab advise`.

mod watcher;

use std::path::Path;

use numalab_advise::{Advisor, Asked, Target, is_piped, redirected};
use numalab_host::{Interrupt, adopt_orphans, note};
use numalab_launch::identity::detect_own;
use numalab_results::advice::{Advice, TrialPlace, TrialsEnd};
use numalab_workload::{Expression, MetricSpec, Pattern};

use crate::args::{AdviseArgs, Format, VERSION};
use crate::failure::{Code, Failure};
use crate::output;
use watcher::Watcher;

/// Profiles the program, predicts and tries candidates, and recommends one.
pub(crate) fn run(args: &AdviseArgs) -> Result<(), Failure> {
    check_alone()?;
    if args.try_on != Some(TrialPlace::Guest) && !args.with.is_empty() {
        return Err(Failure::bad_input("--with: expected --try-on guest as well"));
    }
    if args.report.format == Some(Format::Callgrind) {
        return Err(Failure::bad_input("--format callgrind: expected it with emulate or profile"));
    }
    if is_piped() {
        note(
            "standard input is a pipe, which only one run could read: every run gets empty input; redirect a file (< FILE)",
        );
    }
    let (request, costs) = (args.machine.request(), args.costs.given());
    let (target, findings) = Target::of(&request, costs, args.try_on, &args.with)?;
    findings.iter().for_each(note);
    let place = target.place;
    let mut watcher = Watcher::default();
    let advisor = Advisor::new(asked(args)?, target, &mut watcher)?;
    if args.dry_run {
        return show(args, place, &advisor);
    }
    let interrupt = Interrupt::install()?;
    adopt_orphans().map_err(|error| Failure::new(Code::Failed, error))?;
    let advice = advisor.run(interrupt, &mut watcher)?;
    deliver(args, &advice)?;
    ended(&advice)
}

fn asked(args: &AdviseArgs) -> Result<Asked, Failure> {
    Ok(Asked {
        command: args.command.clone(),
        stdin: redirected(),
        metric: metric(args)?,
        predict_only: args.predict_only,
        trials_only: args.trials_only,
        tries: args.tries,
        blocks: args.blocks,
        budget: args.budget,
        to_the_end: args.to_the_end,
        keep: args.keep.clone(),
        version: VERSION.to_owned(),
    })
}

fn metric(args: &AdviseArgs) -> Result<MetricSpec, Failure> {
    if let Some(pattern) = &args.metric {
        let checked = Pattern::parse(pattern);
        checked.map_err(|error| Failure::bad_input(format!("--metric: {error}")))?;
    }
    Ok(match &args.metric_regex {
        Some(regex) => {
            let checked = Expression::parse(regex);
            checked.map_err(|error| Failure::bad_input(format!("--metric-regex: {error}")))?;
            MetricSpec::of_regex(regex.clone(), args.better)
        }
        None => MetricSpec::of_command(args.metric.clone(), args.better),
    })
}

/// Refuses to run as one of several ranks: advice is for one process, which starts the ranks
/// itself.
fn check_alone() -> Result<(), Failure> {
    match detect_own()?.map(|task| task.identity()).transpose()? {
        Some(identity) if identity.size > 1 => Err(Failure::bad_input(format!(
            "{} tasks run this command: expected one, as with srun -n1; start ranks after `--`: \
             numalab advise -- srun ...",
            identity.size
        ))),
        _ => Ok(()),
    }
}

/// Shows what would be run.
fn show(args: &AdviseArgs, place: TrialPlace, advisor: &Advisor) -> Result<(), Failure> {
    let mut text = String::new();
    if let Some(followed) = advisor.followed() {
        let words = followed.command_line(Path::new("DIRECTORY"))?;
        text.push_str(&output::shell_lines(&words));
    }
    if !args.predict_only {
        let place = match place {
            TrialPlace::Host => "on this machine",
            TrialPlace::Guest => "in a Linux guest",
            TrialPlace::Emulation => "under emulation",
        };
        let then = if text.is_empty() { "" } else { "then " };
        text.push_str(&format!("{then}trials {place}, in {} blocks\n", args.blocks));
    }
    output::print(&text)
}

fn deliver(args: &AdviseArgs, advice: &Advice) -> Result<(), Failure> {
    args.report.deliver(advice, |text| match output::quiet() {
        true => Ok(()),
        false => output::print(text),
    })?;
    if output::quiet() {
        let best = advice.best().and_then(|option| option.commands.first());
        let asis = || output::shell_lines(&args.command).trim_end().to_owned();
        let line = best.map_or_else(asis, |best| best.command.clone());
        return output::print(&format!("{line}\n"));
    }
    Ok(())
}

/// Fails if trials were interrupted: their advice is incomplete.
fn ended(advice: &Advice) -> Result<(), Failure> {
    let Some(trials) = &advice.trials else { return Ok(()) };
    if trials.end == TrialsEnd::Interrupted {
        let message = format!("interrupted after {} blocks of trials", trials.blocks);
        return Err(Failure::new(Code::Failed, message));
    }
    Ok(())
}
