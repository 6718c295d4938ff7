//! What is known of a program before any trial: how long it takes, and what it does to its memory.

use std::time::Duration;

use numalab_analysis::advice::{
    Advice, Candidate, MachineCosts, TrialPlace, candidates_unprofiled,
};
use numalab_formats::memory_emulator::MOST_BESIDE;
use numalab_guest::GuestError;
use numalab_guest::emulator::PLUGIN;
use numalab_guest::program::EmulatedProgram;
use numalab_host::{Ran, note};
use numalab_record::{Placed, ProgramMemory};

use super::emulation;
use super::metric::Judged;
use super::model::Target;
use super::subject::{LONGEST_RUN, Subject};
use crate::args::AdviseArgs;
use crate::command::emulate::in_turn;
use crate::failure::{Code, Failure};

/// A program that ends sooner, by the machine's time, hardly does more than start.
const SHORT: Duration = Duration::from_millis(2);
/// How much longer a program takes under emulation, about.
const EMULATION_FACTOR: u32 = 50;

/// What is known before the trials.
pub(super) struct Known {
    pub advice: Advice,
    /// How long a run takes there.
    pub took: Option<Duration>,
    /// What the emulator saw.
    pub followed: Option<ProgramMemory>,
}

/// The program as it is, under emulation on the machine: threads on all nodes in turn.
fn as_is(args: &AdviseArgs, target: &Target) -> Result<EmulatedProgram, Failure> {
    let plugin = PLUGIN.find().map_err(GuestError::from)?;
    let (machine, threads) = (target.machine.clone(), in_turn(&target.machine.cpus));
    let program = EmulatedProgram::new(plugin, machine, threads, args.command.clone());
    Ok(EmulatedProgram { huge_always: target.costs.kernel.huge_always, ..program })
}

/// The same; not at all where it cannot be followed and trials on this machine do without.
pub(super) fn as_is_if_followed(
    args: &AdviseArgs,
    target: &Target,
) -> Result<Option<EmulatedProgram>, Failure> {
    match as_is(args, target) {
        Err(failure) if is_tried_here(args, target) => {
            tell_not_followed(&failure);
            Ok(None)
        }
        asis => asis.map(Some),
    }
}

fn is_tried_here(args: &AdviseArgs, target: &Target) -> bool {
    target.place == TrialPlace::Host && !args.predict_only
}

fn tell_not_followed(failure: &Failure) {
    note(format!(
        "it cannot be followed under emulation, and candidates are tried without predictions: {}",
        failure.message()
    ));
}

/// The same, with what other placements would change.
pub(super) fn profiled(asis: &EmulatedProgram, costs: &MachineCosts) -> EmulatedProgram {
    let users = (costs.nodes.len() > 1).then_some(Placed::Users);
    let known = Candidate::of_machine(costs);
    let placed = users.into_iter().chain(known.iter().filter_map(|of| of.placed(costs)));
    let beside = placed.take(MOST_BESIDE).map(|placed| emulation::word(&placed));
    EmulatedProgram { beside: beside.collect(), ..asis.clone() }
}

/// Runs the program as it is, here if candidates are tried here, and under emulation.
pub(super) fn look(
    args: &AdviseArgs,
    target: &Target,
    subject: &Subject,
    judged: &Judged,
    asis: Option<&EmulatedProgram>,
) -> Result<Known, Failure> {
    let is_here = is_tried_here(args, target);
    let ran = if is_here { Some(first_run(subject, judged)?) } else { None };
    let took = ran.as_ref().map(|ran| ran.took);
    let is_too_long = |took: Duration| took > LONGEST_RUN / EMULATION_FACTOR;
    let asis = asis.filter(|_| match took.filter(|took| is_too_long(*took)) {
        Some(took) => {
            note(format!(
                "a run takes {:.0} s: following it under emulation would take more than an hour, so \
                 candidates are tried without predictions (as by --trials-only)",
                took.as_secs_f64()
            ));
            false
        }
        None => true,
    });
    let unknown = || {
        let found = candidates_unprofiled(&target.costs, threads_told());
        Advice::unprofiled(&args.command, found, target.costs.clone(), target.place)
    };
    let Some(asis) = asis.filter(|_| !args.trials_only) else {
        return Ok(Known { advice: unknown(), took, followed: None });
    };
    match follow(subject, judged, asis, target) {
        Ok(known) => Ok(Known { took: took.or(known.took), ..known }),
        // What runs here need not run under emulation.
        Err(failure) if is_here && !subject.interrupt.requested() => {
            tell_not_followed(&failure);
            Ok(Known { advice: unknown(), took, followed: None })
        }
        Err(failure) => Err(failure),
    }
}

/// Threads that OpenMP is told to start.
fn threads_told() -> Option<usize> {
    std::env::var("OMP_NUM_THREADS").ok()?.parse().ok()
}

/// A run on this machine, whose number can be read.
pub(super) fn first_run(subject: &Subject, judged: &Judged) -> Result<Ran, Failure> {
    let ran = subject.run()?;
    tell_if_short(subject, ran.took);
    judged.read(&ran, 0).map_err(|error| Failure::new(Code::Failed, error))?;
    Ok(ran)
}

fn tell_if_short(subject: &Subject, took: Duration) {
    if took < SHORT {
        let micros = took.as_micros();
        note(format!(
            "{} ends after {micros} us: what follows is of its start",
            subject.command[0]
        ));
    }
}

/// Runs the program under emulation, and advises by what was seen.
fn follow(
    subject: &Subject,
    judged: &Judged,
    asis: &EmulatedProgram,
    target: &Target,
) -> Result<Known, Failure> {
    let (ran, followed) = subject.follow(&profiled(asis, &target.costs))?;
    followed.tell();
    let program =
        followed.report.program().ok_or_else(|| Failure::new(Code::Failed, "no program ran"))?;
    if target.place != TrialPlace::Host {
        tell_if_short(subject, Duration::from_nanos(program.elapsed_ns));
    }
    if target.place == TrialPlace::Host {
        followed.tell_files();
    }
    let mut advice = Advice::of(&subject.command, program, target.costs.clone(), target.place);
    let read = judged.read(&ran, program.elapsed_ns);
    let read = read.map_err(|error| Failure::new(Code::Failed, error))?;
    advice.metric = read.into_iter().map(|of| of.quantity).find(|_| judged.is_printed());
    let took = (target.place == TrialPlace::Emulation).then_some(ran.took);
    Ok(Known { advice, took, followed: Some(program.clone()) })
}
