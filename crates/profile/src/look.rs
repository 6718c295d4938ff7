//! What `/proc` tells of the processes that are followed, looked at again and again.

use std::fs::read_to_string;
use std::time::{Duration, Instant};

use numalab_host::monotonic_ns;
use numalab_host::proc::{MapsLine, Stat, descendants, maps, memory_text, threads};

use crate::follow::Follower;
use crate::resident;

/// Looking takes at most one part in so many of the time.
const COST: u32 = 25;
/// The first looks follow each other soon, for commands that end soon.
const FIRST: Duration = Duration::from_millis(4);
/// Later ones do not.
const LATER: Duration = Duration::from_millis(100);

/// When to look again.
#[derive(Debug)]
pub(crate) struct Looks {
    next: Instant,
    interval: Duration,
    /// Where pages lie takes longer to tell.
    next_pages: Instant,
    /// Whether threads are whole: seen since they began.
    pub from_beginning: bool,
}

impl Looks {
    pub(crate) fn new(from_beginning: bool) -> Self {
        let now = Instant::now();
        Self { next: now + FIRST, interval: FIRST, next_pages: now + FIRST, from_beginning }
    }

    /// How long until the next one.
    pub(crate) fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// What is mapped now, if it is time to look: read before the events until then are taken.
    pub(crate) fn maps_if_due(&self, follower: &Follower) -> Option<Maps> {
        (Instant::now() >= self.next).then(|| Maps::read(follower))
    }

    /// Looks at every process.
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

/// Follows processes that one of those that are followed has started, where no events tell.
pub(crate) fn look_for_children(follower: &mut Follower) {
    let known: Vec<u32> = follower.living.keys().copied().collect();
    for process in known.iter().flat_map(|process| descendants(*process)) {
        if !follower.living.contains_key(&process) {
            follower.adopt(process);
        }
    }
    // Those that ended are past; what they used is known.
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

/// How long a thread has run (`Documentation/scheduler/sched-stats.rst`).
fn scheduled_ns(process: u32, thread: u32) -> Option<u64> {
    let text = read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What was mapped at a moment, by process.
pub(crate) struct Maps {
    at_ns: u64,
    of: Vec<(u32, Vec<MapsLine>)>,
}

impl Maps {
    /// What is mapped now.
    pub(crate) fn read(follower: &Follower) -> Self {
        let read = |process: &u32| {
            let text = memory_text(*process, "maps")?;
            Some((*process, maps(&text).collect()))
        };
        Self { at_ns: monotonic_ns(), of: follower.living.keys().filter_map(read).collect() }
    }

    /// One that is another program since then has other memory.
    fn set(&self, follower: &mut Follower) {
        for (process, lines) in self.of.iter().filter(|(_, lines)| !lines.is_empty()) {
            let program = follower.living.get_mut(process);
            if let Some(program) = program.filter(|program| program.begun_ns < self.at_ns) {
                program.space.set(lines, self.at_ns);
            }
        }
    }
}
