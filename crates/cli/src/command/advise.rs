//! `numalab advise`.

mod attempt;
mod emulation;
mod extent;
mod guest;
mod here;
mod input;
mod judge;
mod look;
mod metric;
mod model;
mod ranks;
mod settings;
mod subject;
mod target;
mod tolerant;
mod trials;

use std::path::Path;

use numalab_guest::program::EmulatedProgram;
use numalab_host::{Interrupt, adopt_orphans};
use numalab_launch::identity::detect_own;
use numalab_results::advice::{Advice, Candidate, TrialPlace, TrialsEnd, commands};

use crate::args::AdviseArgs;
use crate::failure::{Code, Failure};
use crate::output;
use attempt::attempt;
use look::{Known, as_is_if_followed, first_run, look, profiled};
use metric::Judged;
use model::Target;
use settings::Abilities;
use subject::Subject;
use trials::Trying;

/// Profiles, predicts, tries, and says what to use.
pub(crate) fn run(args: &AdviseArgs) -> Result<(), Failure> {
    check_alone()?;
    let target = target::target(args)?;
    let are_ranks = ranks::are_started_by(&args.command);
    let asis = match are_ranks || args.trials_only && target.place != TrialPlace::Emulation {
        true => None,
        false => as_is_if_followed(args, &target)?,
    };
    let stdin = input::redirected();
    let judged = Judged::of(args, stdin.clone())?;
    if args.dry_run {
        return show(args, &target, asis.as_ref());
    }
    let interrupt = Interrupt::install().map_err(numalab_host::Error::from)?;
    adopt_orphans().map_err(|error| Failure::new(Code::Failed, error))?;
    let subject = Subject { command: args.command.clone(), stdin, interrupt };
    let Known { mut advice, took, followed } = match are_ranks {
        true => Known {
            advice: ranks::advice(&args.command, target.costs.clone(), target.place)?,
            took: Some(first_run(&subject, &judged)?.took),
            followed: None,
        },
        false => look(args, &target, &subject, &judged, asis.as_ref())?,
    };
    let openmp = subject.has_openmp(followed.as_ref());
    let kernel = target.guest.as_ref().and_then(|guest| guest.settings.get("kernel")?.as_str());
    let abilities = Abilities::new(target.place, openmp, kernel);
    let trying = Trying {
        subject: &subject,
        judged: &judged,
        target: &target,
        asis: asis.as_ref(),
        abilities: &abilities,
        rules: trials::rules(args.blocks, args.budget, target.place),
        to_the_end: args.to_the_end,
        keep: args.keep.as_deref(),
    };
    complete(&mut advice, &trying);
    if !args.predict_only {
        attempt(args, &mut advice, trying, took)?;
    }
    deliver(args, &advice)?;
    ended(&advice)
}

/// One advice is for one process: ranks are started by it.
fn check_alone() -> Result<(), Failure> {
    match detect_own()?.map(|task| task.identity()).transpose()? {
        Some(identity) if identity.size > 1 => Err(Failure::bad_input(format!(
            "{} tasks of this command run: expected one, as by srun -n1; ranks are started behind \
             `--`: numalab advise -- srun ...",
            identity.size
        ))),
        _ => Ok(()),
    }
}

/// Adds how options are typed, and why some cannot be tried.
fn complete(advice: &mut Advice, trying: &Trying<'_>) {
    for at in 0..advice.options.len() {
        let untried = trying.settings(advice, at).err();
        let candidate = &advice.options[at].candidate;
        let mut lines = commands(candidate, &advice.machine, &advice.command);
        // First what was tried.
        if *candidate == Candidate::HugePages && trying.abilities.asks_for_huge_pages() {
            lines.sort_by_key(|line| line.tool != "glibc");
        }
        let option = &mut advice.options[at];
        (option.commands, option.untried) = (lines, untried);
    }
}

/// What would be run.
fn show(args: &AdviseArgs, target: &Target, asis: Option<&EmulatedProgram>) -> Result<(), Failure> {
    let mut text = String::new();
    if let Some(asis) = asis.filter(|_| !args.trials_only) {
        let words = profiled(asis, &target.costs).command_line(Path::new("DIRECTORY"))?;
        text.push_str(&output::shell_lines(&words));
    }
    if !args.predict_only {
        let place = match target.place {
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
    if output::quiet() {
        let best = advice.best().and_then(|option| option.commands.first());
        let asis = || output::shell_lines(&args.command).trim_end().to_owned();
        let line = best.map_or_else(asis, |best| best.command.clone());
        return output::print(&format!("{line}\n"));
    }
    let text = output::render(advice, args.format)?;
    match &args.output {
        Some(file) => std::fs::write(file, text)
            .map_err(|error| Failure::new(Code::Failed, format!("{}: {error}", file.display()))),
        None => output::print(&text),
    }
}

/// Trials that were interrupted are not what was asked for.
fn ended(advice: &Advice) -> Result<(), Failure> {
    let Some(trials) = &advice.trials else { return Ok(()) };
    if trials.end == TrialsEnd::Interrupted {
        let message = format!("interrupted after {} blocks of trials", trials.blocks);
        return Err(Failure::new(Code::Failed, message));
    }
    Ok(())
}
