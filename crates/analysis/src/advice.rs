//! Which placement is right for a program: what it does to its memory, what could be done about
//! that, and what each change would bring by its counts and the machine's latencies.

mod bound;
mod candidate;
mod demand;
mod predict;
mod waits;

use numalab_record::ProgramMemory;
use numalab_record::study::Quantity;
use numalab_stats::Direction;
use serde::{Deserialize, Serialize};

pub use candidate::{Candidate, candidates};
pub use predict::{Prediction, predict};

use crate::VerdictWord;

/// Less of a program's time is not worth a change.
pub const WORTH_SHARE: f64 = 0.02;

/// Predictions this near each other, in percentage points, are the same.
const ALIKE_POINTS: f64 = 0.1;

/// A machine as predictions need it. Nodes by position, rows the cpus' node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineCosts {
    /// The nodes' numbers.
    pub nodes: Vec<u32>,
    /// CPUs of each node.
    pub cpus: Vec<usize>,
    /// ns of an access to memory.
    pub latency_ns: Vec<Vec<f64>>,
    /// ns of a line from another core's cache: within a node's group, and between nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_ns: Option<(f64, f64)>,
    /// ns of a hit in the caches that cpus share, the farthest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_cache_ns: Option<f64>,
    /// 10^6 bytes a second of each node's memory, 0 without a limit; none where there are no limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth_mb_s: Vec<f64>,
    /// Whether walks of page tables cost anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub walks: bool,
}

/// What is advised, the best candidate first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The program, with its arguments.
    pub command: Vec<String>,
    /// The machine that the advice is for.
    pub machine: MachineCosts,
    /// How long the program takes as it is, in ns of that machine.
    pub elapsed_ns: u64,
    /// Of its threads' time, the part that waits for memory or for other caches.
    pub memory_share: f64,
    /// What trials judge by where that is not the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Quantity>,
    /// What could be done.
    pub options: Vec<AdvisedOption>,
}

/// One thing that could be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdvisedOption {
    /// What.
    pub candidate: Candidate,
    /// What it is expected to bring.
    pub predicted: Prediction,
    /// What it brought when it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// The command line, where it is a matter of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The same without numalab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_numalab: Option<String>,
}

impl MachineCosts {
    /// The node of a thread if threads take cpus node by node in the order of their numbers, over
    /// and over.
    fn packed_node(&self, thread: u32) -> Option<u32> {
        let seats = self.nodes.iter().zip(&self.cpus);
        let seats = seats.flat_map(|(node, cpus)| std::iter::repeat_n(*node, *cpus));
        let all: usize = self.cpus.iter().sum();
        seats.clone().nth(usize::try_from(thread).ok()? % all.max(1))
    }
}

impl AdvisedOption {
    /// Whether both bind, and are predicted to bring the same.
    fn is_bound_alike(&self, other: &Self) -> bool {
        let binds = [self, other].map(|of| matches!(of.candidate, Candidate::Bind { .. }));
        let [one, two] = [self, other].map(|of| of.predicted.change_percent);
        binds == [true, true] && (one - two).abs() < ALIKE_POINTS
    }
}

/// What a candidate brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Change of what trials judge by, in percent: of the time, less is faster.
    pub change_percent: f64,
    /// Its interval.
    pub interval_percent: (f64, f64),
    /// Whether it helps.
    pub verdict: VerdictWord,
}

impl Advice {
    /// Advice for a program that ran once on the machine, by what was counted.
    #[must_use]
    pub fn of(command: &[String], program: &ProgramMemory, machine: MachineCosts) -> Self {
        let found = candidates(program, &machine);
        let option = |candidate: Candidate| AdvisedOption {
            predicted: predict(&candidate, program, &machine),
            command: None,
            without_numalab: None,
            measured: None,
            candidate,
        };
        let mut options: Vec<AdvisedOption> = found.into_iter().map(option).collect();
        let change = |option: &AdvisedOption| option.predicted.change_percent;
        options.sort_by(|one, other| change(one).total_cmp(&change(other)));
        let busy_ns: u64 = program.threads.iter().map(|thread| thread.busy_ns).sum();
        let accesses = program.regions.iter().flat_map(|region| &region.accesses);
        let waited_ns: u64 = accesses.map(|by| by.waited_ns).sum();
        Self {
            command: command.to_vec(),
            machine,
            elapsed_ns: program.elapsed_ns,
            memory_share: waited_ns as f64 / busy_ns.max(1) as f64,
            metric: None,
            options,
        }
    }

    /// Those that are expected to be worth it, best first.
    pub fn promising(&self) -> impl Iterator<Item = &AdvisedOption> {
        self.options.iter().filter(|option| option.predicted.is_gain())
    }

    /// Those that a trial may show to be worth it, best first: likely gains, even where what
    /// predictions leave out might make them losses. Of nodes to which binding is predicted to bring
    /// the same, as on a machine whose nodes are alike, the first.
    pub fn worth_a_trial(&self) -> impl Iterator<Item = &AdvisedOption> {
        let likely = || self.options.iter().filter(|option| option.predicted.is_likely_gain());
        let is_again = move |at: usize, option: &AdvisedOption| {
            likely().take(at).any(|before| before.is_bound_alike(option))
        };
        likely()
            .enumerate()
            .filter(move |(at, option)| !is_again(*at, option))
            .map(|(_, option)| option)
    }

    /// A change of what trials judge by as one of a time: below 0 it is for the better.
    #[must_use]
    pub fn as_of_time(&self, percent: f64) -> f64 {
        match self.metric.as_ref().map(|metric| metric.better) {
            Some(Direction::HigherIsBetter) => -percent,
            Some(Direction::LowerIsBetter) | None => percent,
        }
    }

    /// What to do: the candidate that was best when it was tried; where none was better, the one that
    /// is expected to be best of those that were not tried, or cannot be. None where there is no
    /// gain to be had.
    #[must_use]
    pub fn best(&self) -> Option<&AdvisedOption> {
        let tried = self.options.iter().filter_map(|of| Some((of, of.measured.as_ref()?)));
        let better = tried.filter(|(_, measured)| measured.verdict == VerdictWord::Better);
        let change = |measured: &Measured| self.as_of_time(measured.change_percent);
        let best = better.min_by(|one, other| change(one.1).total_cmp(&change(other.1)));
        let any_tried = self.options.iter().any(|option| option.measured.is_some());
        let mut untried = self.promising().filter(|option| {
            // What was less promising than what failed is not advised without a trial.
            option.measured.is_none() && !(any_tried && option.candidate.is_by_command())
        });
        best.map(|(option, _)| option).or_else(|| untried.next())
    }
}
