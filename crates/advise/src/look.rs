//! The facts about a program before any trial: its run time, and its use of memory.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use numalab_formats::memory_emulator::MOST_ALTERNATIVES;
use numalab_guest::GuestError;
use numalab_guest::program::{EmulatedProgram, Followed, in_turn};
use numalab_host::Ran;
use numalab_places::{FilesSeen, reading_from_nodes, runs_at_once};
use numalab_record::{Placed, ProgramMemory};
use numalab_results::advice::{Advice, Candidate, MachineCosts, TrialPlace, candidates_unprofiled};

use crate::error::AdviseError;
use crate::metric::Judged;
use crate::model::Target;
use crate::request::Request;
use crate::subject::{LONGEST_RUN, Subject};
use crate::watch::{Remark, Watch};

/// The run time below which a program hardly does more than start.
const SHORT: Duration = Duration::from_millis(2);
/// CPU time of a followed program per CPU time here: measured on a Zen 1, from 20 for chases through
/// memory to 316 for the start of Python, most of whose code runs only a few times and is translated
/// first; `gzip` took 137 times. Its threads run one at a time, so that this is also the time of the run.
const FOLLOWED_FACTORS: [u32; 2] = [20, 350];

/// The time after which a run under emulation that nothing foresaw is reported.
const PATIENCE: Duration = Duration::from_secs(20);

/// The facts known before the trials.
pub(super) struct KnownFacts {
    pub advice: Advice,
    /// Time of one trial, if known: of a run, or of two if one places the files that the next reads.
    pub trial: Option<Duration>,
    /// The accesses seen under emulation.
    pub followed: Option<ProgramMemory>,
    /// The runs of the unchanged program under emulation, with their times on the emulated machine.
    pub runs: Vec<Ran>,
}

/// Returns the unchanged program under emulation on the machine, with threads on all nodes in turn.
fn as_is(request: &Request, target: &Target) -> Result<EmulatedProgram, AdviseError> {
    let (machine, threads) = (target.machine.clone(), in_turn(&target.machine.cpus));
    let program = EmulatedProgram::new(machine, threads, request.command.clone());
    let program = program.map_err(GuestError::from)?;
    Ok(EmulatedProgram { huge_always: target.costs.kernel.huge_always, ..program })
}

/// Returns the unchanged program under emulation; `None` if it cannot be followed and trials on
/// this machine can do without.
pub(super) fn as_is_if_followed(
    request: &Request,
    target: &Target,
    watch: &mut dyn Watch,
) -> Result<Option<EmulatedProgram>, AdviseError> {
    match as_is(request, target) {
        Err(error) if is_tried_here(request, target) => {
            watch.remark(&Remark::NotFollowed(error.to_string()));
            Ok(None)
        }
        asis => asis.map(Some),
    }
}

fn is_tried_here(request: &Request, target: &Target) -> bool {
    target.place == TrialPlace::Host && !request.predict_only
}

/// Returns the program with the effect of other placements recorded.
pub(super) fn profiled(asis: &EmulatedProgram, costs: &MachineCosts) -> EmulatedProgram {
    let users = (costs.nodes.len() > 1).then_some(Placed::Users);
    let known = Candidate::of_machine(costs);
    let placed = users.into_iter().chain(known.iter().filter_map(|of| of.placed(costs)));
    let mut program = asis.clone();
    program.watch_alternatives(placed.take(MOST_ALTERNATIVES));
    program
}

/// Runs the unchanged program, on this machine if candidates are tried here, and under emulation.
pub(super) fn look(
    request: &Request,
    target: &Target,
    subject: &Subject,
    judged: &Judged,
    asis: Option<&EmulatedProgram>,
    watch: &mut dyn Watch,
) -> Result<KnownFacts, AdviseError> {
    let is_here = is_tried_here(request, target);
    let has_nodes = target.costs.nodes.len() > 1;
    let ran = if is_here { Some(first_run(subject, judged, has_nodes, watch)?) } else { None };
    let trial = ran.as_ref().map(|ran| ran.trial);
    let asis = asis.filter(|_| !request.trials_only);
    let about = ran.map(|ran| FOLLOWED_FACTORS.map(|factor| ran.used * factor));
    let asis = asis.filter(|_| match about {
        Some([least, _]) if least > LONGEST_RUN => {
            watch.remark(&Remark::TooLong { least });
            false
        }
        Some([least, most]) => {
            watch.remark(&Remark::Following { least, most });
            true
        }
        None => true,
    });
    let unknown = || {
        let found = candidates_unprofiled(&target.costs, openmp_threads());
        Advice::unprofiled(&request.command, found, target.costs.clone(), target.place)
    };
    let Some(asis) = asis else {
        return Ok(KnownFacts { advice: unknown(), trial, followed: None, runs: Vec::new() });
    };
    // Trials compare candidates with two runs of the unchanged program.
    let is_tried = target.place == TrialPlace::Emulation && !request.predict_only;
    let again = (is_tried && runs_at_once() > 1).then_some(asis);
    match follow(subject, judged, (asis, again, is_here), target, watch) {
        Ok(known) => Ok(KnownFacts { trial: trial.or(known.trial), ..known }),
        // A program that runs here need not run under emulation.
        Err(error) if is_here && !subject.interrupt.requested() => {
            watch.remark(&Remark::NotFollowed(error.to_string()));
            Ok(KnownFacts { advice: unknown(), trial, followed: None, runs: Vec::new() })
        }
        Err(error) => Err(error),
    }
}

/// Returns the number of threads set for OpenMP.
fn openmp_threads() -> Option<usize> {
    std::env::var("OMP_NUM_THREADS").ok()?.parse().ok()
}

/// The first run of the program on this machine.
pub(super) struct FirstRun {
    /// The time of a trial.
    pub trial: Duration,
    /// The CPU time of all its threads.
    pub used: Duration,
}

/// Runs the program on this machine, and checks that its metric can be read. On a machine with several
/// nodes, reports the files that it reads.
pub(super) fn first_run(
    subject: &Subject,
    judged: &Judged,
    has_nodes: bool,
    watch: &mut dyn Watch,
) -> Result<FirstRun, AdviseError> {
    let (ran, files) = reading_from_nodes(|| subject.run());
    let (ran, used) = ran?;
    tell_if_short(watch, subject, ran.took);
    judged.read(&ran, 0)?;
    let files = if has_nodes { files } else { FilesSeen::new() };
    if let Some(remark) = Remark::of_files(&files) {
        watch.remark(&remark);
    }
    // Trials drop these files from the page cache, and another run reads them again.
    let runs = if files.is_empty() { 1 } else { 2 };
    Ok(FirstRun { trial: runs * ran.took, used })
}

fn tell_if_short(watch: &mut dyn Watch, subject: &Subject, took: Duration) {
    if took < SHORT {
        watch.remark(&Remark::Short { program: subject.command[0].clone(), took });
    }
}

/// Runs the program under emulation, and bases the advice on the observations. `again` runs at the same time,
/// without other placements; `is_foreseen` is true if the time that it takes has been reported.
fn follow(
    subject: &Subject,
    judged: &Judged,
    (asis, again, is_foreseen): (&EmulatedProgram, Option<&EmulatedProgram>, bool),
    target: &Target,
    watch: &mut dyn Watch,
) -> Result<KnownFacts, AdviseError> {
    let program = profiled(asis, &target.costs);
    let (first, second) = thread::scope(|scope| {
        let second = again.map(|program| scope.spawn(|| subject.follow(program)));
        let patience = if is_foreseen { Duration::MAX } else { PATIENCE };
        let remark = || {
            let most = FOLLOWED_FACTORS[1];
            watch.remark(&Remark::StillFollowing { after: PATIENCE, most });
        };
        let first = with_patience(patience, || subject.follow(&program), remark);
        let second = second.map(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (first, second)
    });
    let (ran, followed) = first?;
    followed.remarks().into_iter().for_each(|remark| watch.remark(&Remark::Seen(remark)));
    let program = followed.report.program().ok_or(AdviseError::NoProgram)?;
    if target.place != TrialPlace::Host {
        tell_if_short(watch, subject, Duration::from_nanos(program.elapsed_ns));
    }
    let mut advice = Advice::of(&subject.command, program, target.costs.clone(), target.place);
    let read = judged.read(&ran, program.elapsed_ns)?;
    advice.metric = read.into_iter().map(|of| of.quantity).find(|_| judged.is_printed());
    let trial = (target.place == TrialPlace::Emulation).then_some(ran.took);
    let seen = Some(program.clone());
    let again = second.and_then(Result::ok);
    let runs = std::iter::once((ran, followed)).chain(again).map(timed).collect();
    Ok(KnownFacts { advice, trial, followed: seen, runs })
}

/// Does the work in another thread, and calls `impatient` once if it takes longer than this.
fn with_patience<T: Send>(
    patience: Duration,
    work: impl FnOnce() -> T + Send,
    impatient: impl FnOnce(),
) -> T {
    thread::scope(|scope| {
        let (working, done) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            let result = work();
            drop(working);
            result
        });
        if done.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            impatient();
        }
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Returns a run with its time on the emulated machine.
fn timed((ran, followed): (Ran, Followed)) -> Ran {
    let elapsed_ns = followed.report.program().map_or(0, |program| program.elapsed_ns);
    Ran { took: Duration::from_nanos(elapsed_ns), ..ran }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use numalab_host::{Interrupt, TemporaryDirectory};

    use super::*;
    use crate::test_study::{KeptRemarks, request};

    #[test]
    fn work_that_takes_longer_than_the_patience_is_remarked_on_while_it_lasts() {
        let (remark, wait) = mpsc::channel();
        let work = move || wait.recv();
        assert_eq!(with_patience(Duration::ZERO, work, || remark.send(7).unwrap()), Ok(7));
        let unasked = || unreachable!("it is done");
        assert_eq!(with_patience(Duration::MAX, || 5, unasked), 5);
    }

    #[test]
    fn a_trial_of_a_program_that_reads_files_takes_two_runs_on_several_nodes() {
        let place = TemporaryDirectory::create().unwrap();
        let file = place.path().canonicalize().unwrap().join("model");
        std::fs::write(&file, vec![1; 2 << 20]).unwrap();
        let script = format!("exec 3< '{}'; sleep 1", file.display());
        let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
        let subject = Subject { command, stdin: None, interrupt: Interrupt::never() };
        let judged = Judged::of(&request(), TrialPlace::Host).unwrap();
        let trial_and_run = |has_nodes| {
            let begun = Instant::now();
            let found = first_run(&subject, &judged, has_nodes, &mut KeptRemarks::default());
            (found.unwrap_or_else(|_| panic!("it runs")).trial, begun.elapsed())
        };
        let (trial, run) = trial_and_run(true);
        assert!(trial > run, "{trial:?} {run:?}");
        let (trial, run) = trial_and_run(false);
        assert!(trial <= run, "{trial:?} {run:?}");
    }
}
