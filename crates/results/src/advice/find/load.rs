//! The change in threads' waiting as memory and links become more or less loaded: from their
//! latency curves, at the traffic that the same misses would cause under a candidate. A program in
//! which the first thread works before the others has two stages; any other has one. The lines of a
//! stage are transferred during the same share of its time as in the profiled run. Longer waiting
//! lengthens the stage and so lowers the traffic, so both are solved for together: if demand
//! exceeds the peak bandwidth, every line is delayed until demand equals it. The profiled run is
//! solved for as well, and its threads' times change by the ratio of both, since its waits for
//! loaded memory are not known line by line.

use std::collections::BTreeMap;

use numalab_memory_model::curve::Curve;
use numalab_record::{ProgramMemory, Region, RegionAccesses};

use super::Candidate;
use super::demand::{LINE_BYTES, Use};
use super::machine::MachineCosts;
use super::path::{Busy, busy_now, busy_then, is_fork_join, together_ns};

/// Rounds of the damped fixed-point iteration over traffic and time. Each halves the remaining
/// step, unless demand exceeds the peak bandwidth by little.
const ROUNDS: usize = 100;

/// The minimum share of an increase in latency that a thread waits for, if it waits for loaded
/// memory at all: about the inverse of the lines that it can have outstanding. Latency without load
/// may be hidden completely.
const LEAST_EXPOSED: f64 = 1.0 / 32.0;

/// Returns each thread's extra waiting in ns due to the changed load; `saved_ns` is its saving at
/// the current load.
pub(super) fn longer_ns(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
    saved_ns: &BTreeMap<u32, f64>,
) -> BTreeMap<u32, f64> {
    if machine.node_load.is_empty() && machine.link_load.is_empty() {
        return BTreeMap::new();
    }
    let stages = Stage::all(candidate, program, machine, saved_ns);
    stages.iter().flat_map(|stage| stage.longer_ns(machine)).collect()
}

/// Threads that run at the same time.
struct Stage {
    /// Each thread's time now, and under the candidate at the current load.
    threads: BTreeMap<u32, [Busy; 2]>,
    /// Each thread's waiting for busy memory now.
    queues_ns: BTreeMap<u32, f64>,
    /// The stage's duration in ns, if longer than its threads' time.
    elapsed_ns: Option<f64>,
    /// The share of its time in which lines are transferred, 0 to 1.
    moving: f64,
    misses: Vec<Misses>,
}

/// The misses of one thread on a region from one node.
struct Misses {
    thread: u32,
    lines: f64,
    /// The share of a miss's latency that the thread waits for, 0 to 1.
    exposed: f64,
    /// Lines written back per line read.
    written: f64,
    /// The memory used now, and under the candidate.
    uses: [Use; 2],
}

/// A stage whose waits and traffic agree.
struct Settled {
    /// Each thread's waiting for busy memory, in ns.
    waits_ns: BTreeMap<u32, f64>,
    lasts_ns: f64,
}

/// Indexes of the profiled run and of the run under the candidate in pairs.
const NOW: usize = 0;
const THEN: usize = 1;

impl Stage {
    fn all(
        candidate: &Candidate,
        program: &ProgramMemory,
        machine: &MachineCosts,
        saved_ns: &BTreeMap<u32, f64>,
    ) -> Vec<Self> {
        let now = busy_now(program, machine);
        let then = busy_then(candidate, program, machine, saved_ns);
        let both = now.into_iter().zip(then).map(|(now, then)| [now, then]);
        let threads = program.threads.iter().map(|of| of.thread);
        let times: Vec<(u32, [Busy; 2])> = threads.zip(both).collect();
        let is_fork_join = is_fork_join(program, machine);
        let elapsed_ns = (!is_fork_join).then_some(program.elapsed_ns as f64);
        let (first, others) = times.split_at(usize::from(is_fork_join).min(times.len()));
        let fork_ns = first.first().map_or(0.0, |(_, [now, _])| now.1);
        let stage = |threads: &[(u32, [Busy; 2])], begin_ns, end_ns| {
            let threads: BTreeMap<u32, [Busy; 2]> = threads.iter().copied().collect();
            let all = program
                .regions
                .iter()
                .flat_map(|region| region.accesses.iter().map(move |by| (region, by)));
            let own = all.filter(|(_, by)| by.misses > Some(0) && threads.contains_key(&by.thread));
            let mut queues_ns: BTreeMap<u32, f64> = BTreeMap::new();
            for (_, by) in own.clone() {
                *queues_ns.entry(by.thread).or_default() += by.waits().queue_ns as f64;
            }
            let misses = own.map(|(region, by)| Misses::of(candidate, region, by, machine));
            let moving = moving_part(program, begin_ns, end_ns);
            Self { misses: misses.collect(), threads, queues_ns, elapsed_ns, moving }
        };
        let stages = [stage(first, 0.0, fork_ns), stage(others, fork_ns, f64::INFINITY)];
        stages.into_iter().filter(|of| !of.threads.is_empty()).collect()
    }

    /// Returns each thread's extra waiting due to the changed load, in ns.
    fn longer_ns(&self, machine: &MachineCosts) -> BTreeMap<u32, f64> {
        let now = self.settled(NOW, None, machine);
        let then = self.settled(THEN, Some(now.lasts_ns * (1.0 - self.moving)), machine);
        let longer = self.threads.iter().map(|(thread, times)| {
            let all_ns = |at: usize, of: &Settled| {
                self.idle_ns(*thread, times[at].1) + of.waits_ns.get(thread).unwrap_or(&0.0)
            };
            let ratio = all_ns(THEN, &then) / all_ns(NOW, &now).max(1.0);
            (*thread, times[NOW].1 * ratio - times[THEN].1)
        });
        longer.collect()
    }

    /// Returns a thread's time without waiting for busy memory, of its time at the current load.
    fn idle_ns(&self, thread: u32, busy_ns: f64) -> f64 {
        (busy_ns - self.queues_ns.get(&thread).unwrap_or(&0.0)).max(0.0)
    }

    /// Solves for the waits of one of the two runs; `still_ns` is the time in which no lines are
    /// transferred, if that is not a share of the stage.
    fn settled(&self, at: usize, still_ns: Option<f64>, machine: &MachineCosts) -> Settled {
        let traffic = Traffic::of(&self.misses, machine, |of| &of.uses[at]);
        let mut rises = Rises::none(machine);
        for _ in 0..ROUNDS {
            let settled = self.waits(at, &rises, machine);
            let as_now_ns =
                self.lasts_ns(&settled.waits_ns, machine, |times| (times[NOW].0, times[at].1));
            let crowd = settled.lasts_ns / as_now_ns;
            let moves_ns = still_ns.map_or(0.0, |still_ns| settled.lasts_ns - crowd * still_ns);
            rises.settle(&traffic, moves_ns.max(settled.lasts_ns * self.moving), machine);
        }
        self.waits(at, &rises, machine)
    }

    fn waits(&self, at: usize, rises: &Rises, machine: &MachineCosts) -> Settled {
        let mut waits_ns: BTreeMap<u32, f64> = BTreeMap::new();
        for of in &self.misses {
            let each_ns = of.exposed * rises.for_use(&of.uses[at]);
            *waits_ns.entry(of.thread).or_default() += of.lines * each_ns;
        }
        let lasts_ns = self.lasts_ns(&waits_ns, machine, |times| times[at]);
        Settled { waits_ns, lasts_ns }
    }

    /// Returns the stage's duration in ns with each thread's time and waiting for busy memory.
    fn lasts_ns(
        &self,
        waits_ns: &BTreeMap<u32, f64>,
        machine: &MachineCosts,
        of: impl Fn([Busy; 2]) -> Busy,
    ) -> f64 {
        let busy = |(thread, times): (&u32, &[Busy; 2])| {
            let (node, ns) = of(*times);
            (node, self.idle_ns(*thread, ns) + waits_ns.get(thread).unwrap_or(&0.0))
        };
        let together_ns = together_ns(self.threads.iter().map(busy), machine);
        let all_ns: f64 = self.threads.iter().map(busy).map(|(_, ns)| ns).sum();
        let now_ns: f64 = self.threads.values().map(|[now, _]| now.1).sum();
        let part = all_ns / now_ns.max(1.0);
        self.elapsed_ns.map_or(0.0, |elapsed_ns| elapsed_ns * part).max(together_ns).max(1.0)
    }
}

/// Returns the share of a span's time that its transfers would take at the rate seen by the mean
/// line; 1 if unknown.
fn moving_part(program: &ProgramMemory, begin_ns: f64, end_ns: f64) -> f64 {
    let (mut before_ns, mut sums) = (0, [0.0; 3]);
    for stretch in &program.timeline {
        let width_ns = stretch.end_ns.saturating_sub(before_ns) as f64;
        let middle_ns = before_ns as f64 + width_ns / 2.0;
        before_ns = stretch.end_ns;
        if width_ns > 0.0 && (begin_ns..end_ns).contains(&middle_ns) {
            let lines = stretch.misses.unwrap_or(0) as f64;
            let more = [width_ns, lines, lines * lines / width_ns];
            sums = std::array::from_fn(|at| sums[at] + more[at]);
        }
    }
    let [time_ns, lines, squares] = sums;
    let part = lines * lines / (squares * time_ns);
    if part.is_finite() { part.min(1.0) } else { 1.0 }
}

impl Misses {
    fn of(
        candidate: &Candidate,
        region: &Region,
        by: &RegionAccesses,
        machine: &MachineCosts,
    ) -> Self {
        let latency_ns = machine.pair_ns(by.cpu_node, by.memory_node);
        let lines = by.misses.unwrap_or(0) as f64;
        // Queueing for busy memory is not part of its idle latency.
        let waits = by.waits();
        let idle_ns = waits.memory_ns.saturating_sub(waits.queue_ns) as f64;
        let least = if waits.queue_ns > 0 { LEAST_EXPOSED } else { 0.0 };
        Self {
            thread: by.thread,
            lines,
            exposed: (idle_ns / (lines * latency_ns)).clamp(least, 1.0),
            written: by.stores.unwrap_or(0) as f64 / by.all().max(1) as f64,
            uses: [Use::now(by, machine), Use::then(candidate, region, by, machine)],
        }
    }
}

/// Bytes read and written, by position of the cpu node and of the memory node.
struct Traffic(Vec<Vec<[f64; 2]>>);

impl Traffic {
    fn of(misses: &[Misses], machine: &MachineCosts, uses: impl Fn(&Misses) -> &Use) -> Self {
        let nodes = machine.nodes.len();
        let mut bytes = vec![vec![[0.0; 2]; nodes]; nodes];
        for of in misses {
            let Use { home, parts } = uses(of);
            for (node, part) in parts {
                let [read, written] = &mut bytes[*home][*node];
                *read += part * of.lines * LINE_BYTES;
                *written += part * of.lines * LINE_BYTES * of.written;
            }
        }
        Self(bytes)
    }
}

/// The increase in latency due to load, in ns: of links by position of the cpu node and of the
/// memory node, and of each node's memory.
struct Rises {
    links: Vec<Vec<f64>>,
    nodes: Vec<f64>,
}

impl Rises {
    fn none(machine: &MachineCosts) -> Self {
        let nodes = vec![0.0; machine.nodes.len()];
        Self { links: vec![nodes.clone(); nodes.len()], nodes }
    }

    /// Returns the increase for a line: the larger of both, as a link's curves are measured from
    /// end to end.
    fn for_use(&self, of: &Use) -> f64 {
        let rise_ns = |node: usize| self.links[of.home][node].max(self.nodes[node]);
        of.parts.iter().map(|(node, part)| part * rise_ns(*node)).sum()
    }

    /// Moves each increase half of the way to its value with all traffic within `time_ns`.
    fn settle(&mut self, Traffic(bytes): &Traffic, time_ns: f64, machine: &MachineCosts) {
        let settle = |rise_ns: &mut f64, curves: Option<&Vec<Curve>>, bytes: [f64; 2]| {
            *rise_ns = f64::midpoint(*rise_ns, settled_ns(curves, bytes, time_ns, *rise_ns));
        };
        for (node, rise_ns) in self.nodes.iter_mut().enumerate() {
            let to_node = bytes.iter().map(|row| row[node]);
            let all = to_node.fold([0.0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
            settle(rise_ns, machine.node_load.get(node), all);
        }
        for (home, row) in self.links.iter_mut().enumerate() {
            for (node, rise_ns) in row.iter_mut().enumerate() {
                let curves = machine.link_load.get(home).and_then(|row| row.get(node));
                settle(rise_ns, curves, bytes[home][node]);
            }
        }
    }
}

/// Returns the increase in latency at which requests of these bytes within `time_ns`, each of which
/// now takes `rise_ns` longer, are all that the memory has outstanding; interpolated between two
/// curves by share of writes.
fn settled_ns(
    curves: Option<&Vec<Curve>>,
    [read, written]: [f64; 2],
    time_ns: f64,
    rise_ns: f64,
) -> f64 {
    let Some(curves) = curves.filter(|curves| !curves.is_empty()) else { return 0.0 };
    let bytes = read + written;
    let settled_ns = |curve: &Curve| {
        let unloaded_ns = curve.unloaded_ns();
        curve.settled_ns(1000.0 * bytes / time_ns * (unloaded_ns + rise_ns)) - unloaded_ns
    };
    let percent = 100.0 * written / bytes.max(1.0);
    let above = curves.partition_point(|curve| curve.writes_percent < percent);
    let high = &curves[above.min(curves.len() - 1)];
    let low = &curves[above.saturating_sub(1)];
    let between = high.writes_percent - low.writes_percent;
    let part = if between > 0.0 { (percent - low.writes_percent) / between } else { 0.0 };
    settled_ns(low) + part * (settled_ns(high) - settled_ns(low))
}
