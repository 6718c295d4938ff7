//! Watches a program, from its start or from now on, until it ends or the time is over.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use numalab_host::perf::{Followed, MemoryUnit, Recording, memory_unit};
use numalab_host::proc::{ClearedBits, Stat, clear_bits};
use numalab_host::{
    Interrupt, Root, adopt_orphans, check_startable, die_with_parent, end_gently, end_orphans,
    monotonic_ns, spawn_held, users_program,
};
use numalab_record::profile::{CannotSee, Ended, Hindrance, PassedOver, SourceName};
use numalab_topology::Machine;

use crate::choose::balancing_hindrance;
use crate::damon::Damon;
use crate::error::{ProfileError, Refused};
use crate::follow::Follower;
use crate::look::{Looks, Maps, look_for_children};
use crate::nodes::Nodes;
use crate::program::Counted;
use crate::referenced::Referenced;

/// Interval at which a waiting thread checks for an interrupt.
const LOOK: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched<'a> {
    /// A program and its arguments, to be started.
    Command(&'a [String]),
    Process(u32),
}

#[derive(Debug)]
pub(crate) enum Source {
    Samples(MemoryUnit),
    /// Page faults, with or without NUMA balancing.
    Faults {
        balancing: bool,
    },
    Damon(Damon),
    Referenced(Referenced),
}

#[derive(Debug)]
pub(crate) struct Seen {
    pub follower: Follower,
    pub source: Source,
    /// True if page faults were recorded.
    pub has_faults: bool,
    /// Sources that failed at the start.
    pub passed_over: Vec<PassedOver>,
    pub ended: Ended,
    /// Processes that the command left running.
    pub left: Vec<String>,
    /// Start and end times.
    pub times_ns: (u64, u64),
    /// Lost records, and pauses of sampling.
    pub lost: (u64, u64),
}

/// Profiles with the first of these sources that works, until the end.
pub(crate) fn watch(
    machine: &Machine,
    watched: Watched<'_>,
    sources: &[SourceName],
    limit: Option<Duration>,
    interrupt: &Interrupt,
) -> Result<Seen, ProfileError> {
    let root = Root::live();
    let begun_ns = monotonic_ns();
    let mut begun = match watched {
        Watched::Process(process) => {
            Stat::of(process).ok_or(ProfileError::NoProcess { process })?;
            Begun { child: None, ..begin(&root, machine, process, watched, sources)? }
        }
        Watched::Command(words) => start(&root, machine, words, sources)?,
    };
    let until = limit.map(|limit| Instant::now() + limit);
    let ended = begun.follow(until, interrupt);
    let (ended, left) = begun.finish(ended, interrupt);
    let Begun { follower, source, recording, passed_over, lost, .. } = begun;
    let times_ns = (begun_ns, monotonic_ns());
    let has_faults = recording.is_some();
    Ok(Seen { follower, source, has_faults, passed_over, ended, left, times_ns, lost })
}

/// A program that is being watched.
struct Begun {
    child: Option<Child>,
    process: u32,
    follower: Follower,
    source: Source,
    recording: Option<Recording>,
    passed_over: Vec<PassedOver>,
    looks: Looks,
    lost: (u64, u64),
}

/// Starts a command, watched from its first instruction on.
fn start(
    root: &Root,
    machine: &Machine,
    words: &[String],
    sources: &[SourceName],
) -> Result<Begun, ProfileError> {
    adopt_orphans().map_err(ProfileError::NotFollowed)?;
    let program = words.first().map_or("", String::as_str);
    check_startable(program)?;
    let mut command = users_program(program, words.iter().skip(1));
    die_with_parent(&mut command);
    let not_started = |source| ProfileError::NotStarted { program: program.to_owned(), source };
    let watched = Watched::Command(words);
    let ready = |process| begin(root, machine, process, watched, sources);
    let (child, begun) = spawn_held(command, ready).map_err(not_started)??;
    Ok(Begun { child: Some(child), ..begun })
}

/// Starts the first source that works.
fn begin(
    root: &Root,
    machine: &Machine,
    process: u32,
    watched: Watched<'_>,
    sources: &[SourceName],
) -> Result<Begun, ProfileError> {
    let mut passed_over = Vec::new();
    let nodes = Nodes::of(machine);
    let followed = match watched {
        Watched::Command(_) => Followed::FromExec(process),
        Watched::Process(_) => Followed::Now(process),
    };
    for source in sources {
        let record = |unit: Option<&MemoryUnit>| {
            Recording::open(followed, unit, nodes.cpus()).map_err(Refused::from)
        };
        let tried = try_source(root, machine, process, *source, record);
        let (source, recording, counted) = match tried {
            Ok(begun) => begun,
            Err(Refused::Process(error)) => return Err(error),
            Err(Refused::Hindrance(why)) => {
                passed_over.push(PassedOver { source: *source, why });
                continue;
            }
        };
        let mut follower = Follower::new(nodes, counted);
        let is_running = matches!(watched, Watched::Process(_));
        if is_running || recording.is_none() {
            follower.adopt(process);
        }
        if is_running {
            follower.cannot(CannotSee::Before);
        }
        if recording.as_ref().is_some_and(|recording| !recording.sees_kernel()) {
            follower.cannot(CannotSee::FaultsInKernel);
        }
        let looks = Looks::new(!is_running);
        let (child, lost) = (None, (0, 0));
        return Ok(Begun { child, process, follower, source, recording, passed_over, looks, lost });
    }
    let last = passed_over.pop().unwrap_or(PassedOver {
        source: SourceName::Referenced,
        why: Hindrance::NoReferencedBits { reason: String::new() },
    });
    Err(ProfileError::Hindered { source_name: last.source, why: last.why })
}

/// A source that works, with the events recorded for it or in addition.
type Working = (Source, Option<Recording>, Counted);

fn try_source(
    root: &Root,
    machine: &Machine,
    process: u32,
    source: SourceName,
    record: impl Fn(Option<&MemoryUnit>) -> Result<Recording, Refused>,
) -> Result<Working, Refused> {
    // First touches are useful, but not required.
    let beside = || match record(None) {
        Ok(recording) => Ok(Some(recording)),
        Err(Refused::Hindrance(_)) => Ok(None),
        Err(refused) => Err(refused),
    };
    match source {
        SourceName::Samples => {
            let unit = memory_unit(root).map_err(Refused::Hindrance)?;
            let recording = record(Some(&unit))?;
            Ok((Source::Samples(unit), Some(recording), Counted::Touch))
        }
        SourceName::Faults => {
            let balancing = balancing_hindrance(root, machine).is_none();
            Ok((Source::Faults { balancing }, Some(record(None)?), Counted::Access))
        }
        SourceName::Damon => {
            let recording = beside()?;
            let damon = Damon::begin(root, process).map_err(Refused::Hindrance)?;
            Ok((Source::Damon(damon), recording, Counted::Touch))
        }
        SourceName::Referenced => {
            let recording = beside()?;
            let begun = Referenced::begin(process).map_err(|error| refused(process, &error))?;
            Ok((Source::Referenced(begun), recording, Counted::Touch))
        }
        SourceName::Emulation => Err(Refused::Hindrance(Hindrance::RunsAlready)),
    }
}

fn refused(process: u32, error: &std::io::Error) -> Refused {
    match clear_bits(std::process::id(), ClearedBits::Referenced) {
        // The kernel allows it for the user's own processes, so this one is not theirs.
        Ok(()) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Refused::Process(ProfileError::Foreign { process })
        }
        _ => Refused::Hindrance(Hindrance::NoReferencedBits { reason: error.to_string() }),
    }
}

impl Begun {
    /// Watches until the process ends, the time is over, or the user interrupts. The result is the
    /// status of a command that ended by itself.
    fn follow(&mut self, until: Option<Instant>, interrupt: &Interrupt) -> Option<Ended> {
        loop {
            let mut wait = LOOK.min(self.looks.until_next());
            match &self.source {
                Source::Damon(damon) => wait = wait.min(damon.until_next()),
                Source::Referenced(referenced) => wait = wait.min(referenced.until_next()),
                Source::Samples(_) | Source::Faults { .. } => {}
            }
            self.step(wait);
            if let Some(ended) = self.ended() {
                return Some(ended);
            }
            if interrupt.requested() || until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
        }
    }

    /// Waits at most `wait`, then processes the events.
    fn step(&mut self, wait: Duration) {
        match &mut self.recording {
            Some(recording) => recording.wait(wait),
            None => std::thread::sleep(wait),
        }
        let maps = self.looks.maps_if_due(&self.follower);
        self.take();
        if let Some(maps) = maps {
            self.looks.look(&mut self.follower, &maps);
        }
        match &mut self.source {
            Source::Damon(damon) => damon.look_if_due(&mut self.follower),
            Source::Referenced(referenced) => referenced.look_if_due(&mut self.follower),
            Source::Samples(_) | Source::Faults { .. } => {}
        }
    }

    /// Processes the events since the last call.
    fn take(&mut self) {
        let Some(recording) = &mut self.recording else {
            return look_for_children(&mut self.follower);
        };
        let batch = recording.drain();
        self.lost.0 += batch.lost;
        self.lost.1 += batch.throttled;
        self.follower.take(&batch.records);
        self.follower.settle_all();
    }

    /// Returns how it ended, if it has.
    fn ended(&mut self) -> Option<Ended> {
        match &mut self.child {
            Some(child) => child.try_wait().ok().flatten().map(of_status),
            None => Stat::of(self.process)
                .is_none_or(|stat| stat.has_ended())
                .then_some(Ended::ProcessEnded),
        }
    }

    /// Polls a last time, and ends a command that is still running, with the processes that it
    /// leaves.
    fn finish(&mut self, ended: Option<Ended>, interrupt: &Interrupt) -> (Ended, Vec<String>) {
        let maps = Maps::read(&self.follower);
        self.take();
        self.looks.look(&mut self.follower, &maps);
        if let Source::Referenced(referenced) = &mut self.source {
            referenced.look(&mut self.follower);
        }
        if self.child.is_none() {
            let why = if interrupt.requested() { Ended::Interrupted } else { Ended::TimeOver };
            return (ended.unwrap_or(why), Vec::new());
        }
        let ended = ended.unwrap_or_else(|| self.end_child(interrupt));
        (ended, end_orphans())
    }

    /// Ends the command. An interrupt from a terminal has reached it too, so it may be ending
    /// already.
    fn end_child(&mut self, interrupt: &Interrupt) -> Ended {
        let why = if interrupt.requested() { Ended::Interrupted } else { Ended::TimeOver };
        let begun = Instant::now();
        let mut is_reported = false;
        while let Some(child) = &mut self.child {
            if !matches!(child.try_wait(), Ok(None)) {
                break;
            }
            if !is_reported && (why == Ended::TimeOver || begun.elapsed() > GRACE / 3) {
                end_gently(child);
                is_reported = true;
            }
            if begun.elapsed() > GRACE {
                // Fails if it has just ended.
                let _ = child.kill();
            }
            self.step(LOOK / 2);
        }
        why
    }
}

pub(crate) fn of_status(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signalled(signal.unwrap_or(0)),
    }
}
