//! The change in threads' waiting as memory and links become busier or less busy: from their
//! latency curves, at the traffic that the same misses would cause under a candidate.
//!
//! A program in which the first thread works before the others has two stages, any other has one.
//! The lines of a stage are transferred during the same share of its time as in the profiled run.
//! Longer waiting lengthens the stage and so lowers the traffic, so both are solved for together.

use std::collections::BTreeMap;

use numalab_memory_model::curve::Curve;
use numalab_record::{ProgramMemory, Region, RegionAccesses};

use super::Candidate;
use super::demand::{LINE_BYTES, Use};
use super::machine::MachineCosts;
use super::path::{Busy, busy_now, busy_then, is_fork_join, together_ns};

/// Rounds of the damped fixed-point iteration over traffic and time; each halves the remaining
/// step.
const ROUNDS: usize = 40;

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
    now: Use,
    then: Use,
}

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
            let misses = own.map(|(region, by)| Misses::of(candidate, region, by, machine));
            let moving = moving_part(program, begin_ns, end_ns);
            Self { misses: misses.collect(), threads, elapsed_ns, moving }
        };
        let stages = [stage(first, 0.0, fork_ns), stage(others, fork_ns, f64::INFINITY)];
        stages.into_iter().filter(|of| !of.threads.is_empty()).collect()
    }

    /// Returns each thread's extra waiting due to the changed load, in ns.
    fn longer_ns(&self, machine: &MachineCosts) -> BTreeMap<u32, f64> {
        let none = BTreeMap::new();
        let now_ns = self.lasts_ns(|[now, _]| now, &none, machine);
        let still_ns = now_ns * (1.0 - self.moving);
        let now = Traffic::of(&self.misses, machine, |of| &of.now);
        let then = Traffic::of(&self.misses, machine, |of| &of.then);
        let mut longer = none;
        for _ in 0..ROUNDS {
            let then_ns = self.lasts_ns(|[_, then]| then, &longer, machine);
            let as_now_ns = self.lasts_ns(|[now, then]| (now.0, then.1), &longer, machine);
            let crowd = then_ns / as_now_ns;
            let moves_ns = (then_ns - crowd * still_ns).max(then_ns * self.moving);
            let mut found: BTreeMap<u32, f64> = BTreeMap::new();
            for of in &self.misses {
                let rise_ns = then.rise_ns(&of.then, moves_ns, machine)
                    - now.rise_ns(&of.now, now_ns * self.moving, machine);
                let waits_ns = of.lines * of.exposed * rise_ns;
                *found.entry(of.thread).or_default() += waits_ns;
            }
            for (thread, ns) in found {
                let entry = longer.entry(thread).or_default();
                *entry = f64::midpoint(*entry, ns);
            }
        }
        longer
    }

    /// Returns the stage's duration in ns with each thread's busy time and extra waiting.
    fn lasts_ns(
        &self,
        of: impl Fn([Busy; 2]) -> Busy,
        longer: &BTreeMap<u32, f64>,
        machine: &MachineCosts,
    ) -> f64 {
        let busy = |(thread, times): (&u32, &[Busy; 2])| {
            let (node, ns) = of(*times);
            (node, (ns + longer.get(thread).copied().unwrap_or(0.0)).max(0.0))
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
        let now = Use::now(by, machine);
        let latency_ns = machine.pair_ns(by.cpu_node, by.memory_node);
        let lines = by.misses.unwrap_or(0) as f64;
        // Queueing for busy memory is not part of its idle latency.
        let waits = by.waits();
        let idle_ns = waits.memory_ns.saturating_sub(waits.queue_ns) as f64;
        Self {
            thread: by.thread,
            lines,
            exposed: (idle_ns / (lines * latency_ns)).min(1.0),
            written: by.stores.unwrap_or(0) as f64 / by.all().max(1) as f64,
            now,
            then: Use::then(candidate, region, by, machine),
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

    /// Returns a line's extra latency over the idle one in ns, for this use, if all traffic falls
    /// within `time_ns`.
    fn rise_ns(&self, of: &Use, time_ns: f64, machine: &MachineCosts) -> f64 {
        let rise = |node: usize| {
            let to_node = self.0.iter().map(|row| row[node]);
            let all = to_node.fold([0.0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
            let link = machine.link_load.get(of.home).and_then(|row| row.get(node));
            let memory = machine.node_load.get(node);
            risen_ns(link, self.0[of.home][node], time_ns) + risen_ns(memory, all, time_ns)
        };
        of.parts.iter().map(|(node, part)| part * rise(*node)).sum()
    }
}

/// Returns the extra latency from the curves, interpolated between two by share of writes.
fn risen_ns(curves: Option<&Vec<Curve>>, [read, written]: [f64; 2], time_ns: f64) -> f64 {
    let Some(curves) = curves.filter(|curves| !curves.is_empty()) else { return 0.0 };
    let bytes = read + written;
    let rise_ns = |curve: &Curve| curve.at_ns(1000.0 * bytes / time_ns) - curve.unloaded_ns();
    let percent = 100.0 * written / bytes.max(1.0);
    let above = curves.partition_point(|curve| curve.writes_percent < percent);
    let high = &curves[above.min(curves.len() - 1)];
    let low = &curves[above.saturating_sub(1)];
    let between = high.writes_percent - low.writes_percent;
    let part = if between > 0.0 { (percent - low.writes_percent) / between } else { 0.0 };
    rise_ns(low) + part * (rise_ns(high) - rise_ns(low))
}
