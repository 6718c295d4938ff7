//! Polls `/proc` for the processes that are followed.

use std::fs::read_to_string;
use std::time::{Duration, Instant};

use numalab_host::monotonic_ns;
use numalab_host::proc::{MapsLine, Stat, descendants, maps, memory_text, threads};

use crate::follow::Follower;
use crate::resident;

/// Polling takes at most one part in this number of the time.
const COST: u32 = 25;
/// Interval of the first polls, short because commands may end soon.
const FIRST: Duration = Duration::from_millis(4);
/// Interval of later polls.
const LATER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Looks {
    next: Instant,
    interval: Duration,
    /// Reading the nodes of pages takes longer, so it has a separate schedule.
    next_pages: Instant,
    /// True if threads have been watched since they began.
    pub from_beginning: bool,
}

impl Looks {
    pub(crate) fn new(from_beginning: bool) -> Self {
        let now = Instant::now();
        Self { next: now + FIRST, interval: FIRST, next_pages: now + FIRST, from_beginning }
    }

    /// Returns the time until the next poll.
    pub(crate) fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Reads the current mappings if a poll is due. Must be called before the events up to now are
    /// taken.
    pub(crate) fn maps_if_due(&self, follower: &Follower) -> Option<Maps> {
        (Instant::now() >= self.next).then(|| Maps::read(follower))
    }

    pub(crate) fn look(&mut self, follower: &mut Follower, maps: &Maps) {
        let begun = Instant::now();
        let processes: Vec<u32> = follower.living.keys().copied().collect();
        for process in &processes {
            look_at_threads(follower, *process, self.from_beginning);
        }
        maps.set(follower);
        follower.settle_all();
        self.interval = (self.interval * 2).min(LATER).max(begun.elapsed() * COST);
        if begun >= self.next_pages {
            let begun = Instant::now();
            for (process, lines) in &maps.of {
                resident::look(follower, *process, lines);
            }
            let interval = self.interval.max(begun.elapsed() * COST);
            self.next_pages = Instant::now() + interval;
        }
        self.next = Instant::now() + self.interval;
    }
}

/// Finds and follows new children of followed processes, for sources that do not report them.
pub(crate) fn look_for_children(follower: &mut Follower) {
    let known: Vec<u32> = follower.living.keys().copied().collect();
    for process in known.iter().flat_map(|process| descendants(*process)) {
        if !follower.living.contains_key(&process) {
            follower.adopt(process);
        }
    }
    // The cpu time of those that ended is known, so they become past processes.
    for process in known {
        if Stat::of(process).is_none_or(|stat| stat.has_ended()) {
            follower.past.extend(follower.living.remove(&process));
        }
    }
}

fn look_at_threads(follower: &mut Follower, process: u32, whole: bool) {
    for thread in threads(process) {
        let Some(stat) = Stat::of_thread(process, thread) else { continue };
        let node = follower.nodes.of_cpu(stat.cpu.0);
        let Some(program) = follower.living.get_mut(&process) else { return };
        program.threads.seen(thread, node);
        program.threads.named(thread, &stat.name);
        if let Some(busy_ns) = scheduled_ns(process, thread) {
            program.threads.ran(thread, busy_ns, whole);
        }
    }
    follower.ran(process);
}

/// Returns a thread's cpu time (`Documentation/scheduler/sched-stats.rst`).
fn scheduled_ns(process: u32, thread: u32) -> Option<u64> {
    let text = read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The mappings at one point in time, by process.
pub(crate) struct Maps {
    at_ns: u64,
    of: Vec<(u32, Vec<MapsLine>)>,
}

impl Maps {
    pub(crate) fn read(follower: &Follower) -> Self {
        let read = |process: &u32| {
            let text = memory_text(*process, "maps")?;
            Some((*process, maps(&text).collect()))
        };
        Self { at_ns: monotonic_ns(), of: follower.living.keys().filter_map(read).collect() }
    }

    /// Updates the mappings of each process. One that has called exec since then has other memory
    /// and is skipped.
    fn set(&self, follower: &mut Follower) {
        for (process, lines) in self.of.iter().filter(|(_, lines)| !lines.is_empty()) {
            let program = follower.living.get_mut(process);
            if let Some(program) = program.filter(|program| program.begun_ns < self.at_ns) {
                program.space.set(lines, self.at_ns);
            }
        }
    }
}
