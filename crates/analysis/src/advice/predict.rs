//! What a candidate would bring: each thread's time without what it would no longer wait.
//!
//! How the threads' times make up the program's is told in two ways, between which the interval lies:
//! all times shrink alike, or the longest thread and the one that made it decide. No program is
//! faster than the bandwidth of the memory that it would use.

use std::collections::BTreeMap;

use numalab_record::ProgramMemory;
use serde::{Deserialize, Serialize};

use super::balancing::balanced_ns;
use super::demand::least_ns;
use super::load::is_fork_join;
use super::machine::MachineCosts;
use super::waits::saved_ns;
use super::{Candidate, WORTH_SHARE};

/// What the model of a program's time leaves out, as a part of a change and in points.
const UNKNOWN_PART: f64 = 0.2;
const UNKNOWN_POINTS: f64 = 2.0;

/// A change of the time that is expected, in percent; less is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// The change.
    pub change_percent: f64,
    /// Where it lies.
    pub interval_percent: (f64, f64),
}

impl Prediction {
    /// Whether it is worth a change, even at the worse end of the interval.
    #[must_use]
    pub fn is_gain(self) -> bool {
        self.is_likely_gain() && self.interval_percent.1 < 0.0
    }

    /// Whether the change that is expected is worth it, whatever the interval.
    #[must_use]
    pub fn is_likely_gain(self) -> bool {
        self.change_percent < -100.0 * WORTH_SHARE
    }
}

/// What a candidate would bring to a program that ran as it is on the machine; nothing where one run
/// does not tell: caches and cores that threads share otherwise, and what a kernel does in time.
#[must_use]
pub fn predict(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> Option<Prediction> {
    let changed = |saved: &BTreeMap<u32, f64>| changed(candidate, program, machine, saved);
    match candidate {
        Candidate::Cpus { .. }
        | Candidate::FastMemory { .. }
        | Candidate::Ranks { .. }
        | Candidate::Balancing { mode: 0 | 2.. } => None,
        Candidate::Balancing { mode: 1 } => {
            let moved = saved_ns(candidate, program, machine);
            let [mean, most, least] = balanced_ns(&moved, program).map(|saved| changed(&saved));
            let (low, high) = (most.interval_percent.0, least.interval_percent.1);
            Some(Prediction { interval_percent: (low, high), ..mean })
        }
        _ => Some(changed(&saved_ns(candidate, program, machine))),
    }
}

/// The change of the program's time if its threads save so much.
fn changed(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
    saved: &BTreeMap<u32, f64>,
) -> Prediction {
    let times = program.threads.iter().map(|thread| {
        let saved_ns = saved.get(&thread.thread).copied().unwrap_or(0.0);
        let busy_ns = thread.busy_ns as f64;
        (thread.thread, busy_ns, (busy_ns - saved_ns).max(0.0))
    });
    let times: Vec<Times> = times.collect();
    let elapsed_ns = (program.elapsed_ns as f64).max(1.0);
    let cpus = candidate.cpus(machine);
    let sums = times.iter().fold((0.0, 0.0), |sum, (_, now, then)| (sum.0 + now, sum.1 + then));
    let now_ns = path_ns(&times, |of| of.1, f64::INFINITY);
    let then_ns = path_ns(&times, |of| of.2, cpus);
    let path = 1.0 + (then_ns - now_ns) / elapsed_ns;
    // Threads that wait for each other have their cpus to themselves for a part of the time.
    let alike = sums.1 / sums.0.max(1.0);
    let alike = alike * crowding(&times, cpus, elapsed_ns);
    let least = least_ns(candidate, program, machine) / elapsed_ns;
    let ways = [alike, path].map(|part| 100.0 * (part.max(0.0).max(least) - 1.0));
    let change_percent = if is_fork_join(program) { ways[1] } else { ways[0] };
    let beyond = UNKNOWN_PART * change_percent.abs() + UNKNOWN_POINTS;
    let low = ways[0].min(ways[1]).max(-100.0) - beyond;
    let high = ways[0].max(ways[1]) + beyond;
    Prediction { change_percent, interval_percent: (low.max(-100.0), high) }
}

/// The first thread, and after it the longest of the others, or all of these on so many cpus.
fn path_ns(times: &[Times], of: impl Fn(&Times) -> f64, cpus: f64) -> f64 {
    let first = times.first().map_or(0.0, &of);
    let others = || times.iter().skip(1).map(&of);
    first + others().fold(others().sum::<f64>() / cpus, f64::max)
}

/// How much longer threads take that have fewer cpus than run at a time, on average of the time but
/// for the first thread's own.
fn crowding(times: &[Times], cpus: f64, elapsed_ns: f64) -> f64 {
    let busy_ns: f64 = times.iter().map(|(_, now, _)| now).sum();
    let alone_ns = times.first().map_or(0.0, |(_, now, _)| *now);
    let together_ns = (elapsed_ns - alone_ns).max(elapsed_ns * 0.01);
    // The first one may work among the others to the end, as OpenMP's does.
    let threads = ((busy_ns - alone_ns) / together_ns).min(times.len() as f64);
    (threads / cpus).max(1.0)
}

/// A thread, and how long it is busy now and would be then.
type Times = (u32, f64, f64);

#[cfg(test)]
mod tests;
