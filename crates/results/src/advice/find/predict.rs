//! The predicted effect of a candidate: each thread's time less the waiting that it would save. Two
//! models compose the run time from the threads' times, and the interval spans both: either all
//! times shrink alike, or the slowest thread and the one that started it determine the run time. No
//! prediction is faster than the bandwidth of the memory allows.

use std::collections::BTreeMap;

use numalab_record::{ContendedLine, ProgramMemory};
use serde::{Deserialize, Serialize};

use super::balancing::balanced_ns;
use super::demand::least_ns;
use super::machine::MachineCosts;
use super::path::{busy_now, busy_then, crowding, is_fork_join, path_ns};
use super::waits::saved_ns;
use super::{Candidate, WORTH_SHARE};

/// Uncertainty of the run-time model: a share of the predicted change, plus a number of percentage
/// points.
const UNKNOWN_PART: f64 = 0.2;
const UNKNOWN_POINTS: f64 = 2.0;

/// A predicted change of run time in percent; negative is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prediction {
    /// The predicted change.
    pub change_percent: f64,
    /// The lower and upper bound of the change.
    pub interval_percent: (f64, f64),
}

impl Prediction {
    /// Returns `true` if the change is worthwhile and its whole interval is a gain.
    pub fn is_gain(self) -> bool {
        self.is_likely_gain() && self.interval_percent.1 < 0.0
    }

    /// Returns the prediction between two extremes.
    fn or(self, other: Self) -> Self {
        let [(low, high), (other_low, other_high)] = [self, other].map(|of| of.interval_percent);
        Self {
            change_percent: f64::midpoint(self.change_percent, other.change_percent),
            interval_percent: (low.min(other_low), high.max(other_high)),
        }
    }

    /// Returns `true` if the interval includes a worthwhile gain.
    pub fn may_gain(self) -> bool {
        self.interval_percent.0 < -100.0 * WORTH_SHARE
    }

    /// Returns `true` if the predicted change is worthwhile, whatever its interval.
    pub fn is_likely_gain(self) -> bool {
        self.change_percent < -100.0 * WORTH_SHARE
    }
}

/// Predicts a candidate's effect on a program from a run without it.
///
/// Returns `None` where one run cannot tell: when threads share caches and cores differently,
/// contend for lines with more than one other, or depend on the kernel's behaviour over time.
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
        _ if waits_in_turn(program) && candidate.moves_threads(program, machine) => None,
        Candidate::Balancing { mode: 1 } => {
            let moved = saved_ns(candidate, program, machine);
            let [mean, most, least] = balanced_ns(&moved, program).map(|saved| changed(&saved));
            let (low, high) = (most.interval_percent.0, least.interval_percent.1);
            Some(Prediction { interval_percent: (low, high), ..mean })
        }
        _ => {
            let found = changed(&saved_ns(candidate, program, machine));
            let Some(shared) = machine.with_shared_limits() else { return Some(found) };
            let saved = saved_ns(candidate, program, &shared);
            Some(found.or(self::changed(candidate, program, &shared, &saved)))
        }
    }
}

/// Returns `true` if most of the threads' time is spent waiting for lines that more than two of
/// them contend for. How long one of them keeps a line depends on which cores are close: `sysbench
/// memory` with four threads fetches a line 129,000 times across two nodes, but 30,000 times on one
/// node, in a quarter of the time.
fn waits_in_turn(program: &ProgramMemory) -> bool {
    let of_many = program.contended_lines.iter().filter(|line| line.threads.len() > 2);
    let waited_ns: u64 = of_many.map(ContendedLine::waited_ns).sum();
    let busy_ns: u64 = program.threads.iter().map(|thread| thread.busy_ns).sum();
    2 * waited_ns > busy_ns
}

/// Returns the change of run time if threads save the given times.
fn changed(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
    saved: &BTreeMap<u32, f64>,
) -> Prediction {
    let now = busy_now(program, machine);
    let then = busy_then(candidate, program, machine, saved);
    let elapsed_ns = (program.elapsed_ns as f64).max(1.0);
    let path = 1.0 + (path_ns(&then, machine) - path_ns(&now, machine)) / elapsed_ns;
    // Threads that wait for each other do not share their cpus all of the time.
    let [now_ns, then_ns] = [&now, &then].map(|of| of.iter().map(|(_, ns)| ns).sum::<f64>());
    let alike = then_ns / now_ns.max(1.0);
    let alike = alike * crowding(&now, candidate.cpus(machine), elapsed_ns);
    let least = least_ns(candidate, program, machine) / elapsed_ns;
    let ways = [alike, path].map(|part| 100.0 * (part.max(0.0).max(least) - 1.0));
    let change_percent = if is_fork_join(program, machine) { ways[1] } else { ways[0] };
    let beyond = UNKNOWN_PART * change_percent.abs() + UNKNOWN_POINTS;
    let low = ways[0].min(ways[1]).max(-100.0) - beyond;
    let high = ways[0].max(ways[1]) + beyond;
    Prediction { change_percent, interval_percent: (low.max(-100.0), high) }
}

#[cfg(test)]
mod tests;
