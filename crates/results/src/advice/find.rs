//! Advice on a program's memory placement.
//!
//! A profile of the program's memory accesses determines the candidates (changes of placement that
//! apply to it); its counts and the machine's latencies give the predicted change of run time of
//! each.

mod balancing;
mod bound;
mod candidate;
mod candidates;
mod commands;
mod crowded;
mod demand;
mod load;
mod machine;
mod path;
mod predict;
mod room;
mod spread;
mod trial;
mod waits;

pub use candidate::Candidate;
pub use candidates::{candidates, candidates_unprofiled};
pub(crate) use commands::place_file;
pub use commands::{ToolCommand, commands};
pub use crowded::CrowdedSegment;
pub use machine::{CostsKnown, CpuPlace, KernelNow, MachineCosts, cpu_list, node_list};
pub use predict::{Prediction, predict};
pub use spread::Spread;
pub use trial::{Measured, RaceEnd, TrialPlace, Trials, TrialsEnd, Untried};

use numalab_record::ProgramMemory;
use numalab_record::study::Quantity;
use numalab_stats::Direction;
use serde::{Deserialize, Serialize};

use crate::VerdictWord;

/// Minimum share of a program's time that a change must save to be worthwhile.
pub const WORTH_SHARE: f64 = 0.02;

/// Largest difference in percentage points at which two predictions count as equal.
const ALIKE_POINTS: f64 = 0.1;

/// Advice for one program, best candidate first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Advice {
    /// The program's command line.
    pub command: Vec<String>,
    /// The machine that the advice is for.
    pub machine: MachineCosts,
    /// The place where candidates are tried.
    pub place: TrialPlace,
    /// Measurements of the program; `None` if it was not profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The metric that trials judge by; `None` for run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Quantity>,
    /// The outcome of the trials, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<Trials>,
    /// Shared memory that fills the nodes on which it was first touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded: Option<CrowdedSegment>,
    /// One entry per candidate.
    pub options: Vec<AdvisedOption>,
}

/// Measurements from one run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Profile {
    /// The run time without changes, in ns of the target machine.
    pub elapsed_ns: u64,
    /// The share of its threads' time that waits for memory or for other cores' caches, 0 to 1.
    pub memory_share: f64,
    /// Number of threads that run at a time.
    pub threads: usize,
}

/// A candidate with its prediction and its trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AdvisedOption {
    /// The change of placement that this option makes.
    pub candidate: Candidate,
    /// The predicted change; `None` if one run cannot predict it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Prediction>,
    /// The change measured in trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// The reason why it cannot be tried here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untried: Option<Untried>,
    /// Command lines that apply it, the one used in trials first; empty for a change of the
    /// program's source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ToolCommand>,
}

impl AdvisedOption {
    fn new(candidate: Candidate, predicted: Option<Prediction>) -> Self {
        Self { candidate, predicted, measured: None, untried: None, commands: Vec::new() }
    }

    /// Returns `true` if its nodes have too little room for the program's memory.
    pub fn lacks_room(&self) -> bool {
        matches!(self.untried, Some(Untried::NoRoom { .. }))
    }

    /// Returns `true` if trials or, without them, the prediction show a gain that may be worth a change
    /// of the program.
    pub(super) fn is_worth_a_change(&self) -> bool {
        match &self.measured {
            Some(measured) => measured.verdict == VerdictWord::Better,
            None => self.predicted.is_some_and(Prediction::is_likely_gain),
        }
    }

    /// Returns the predicted change, to sort options by; options without a prediction come last.
    fn expected_percent(&self) -> f64 {
        self.predicted.map_or(f64::INFINITY, |predicted| predicted.change_percent)
    }

    /// Returns the predicted change rounded to the digits printed, so that options that look equal
    /// keep the order of their kinds.
    fn expected_tenths(&self) -> f64 {
        (self.expected_percent() / ALIKE_POINTS).round()
    }

    /// Returns `true` if both options bind to one node and have the same prediction, or both lack
    /// one and their nodes are alike.
    fn is_bound_alike(&self, other: &Self, machine: &MachineCosts) -> bool {
        let (Candidate::Bind { node: one }, Candidate::Bind { node: two }) =
            (&self.candidate, &other.candidate)
        else {
            return false;
        };
        match (self.predicted, other.predicted) {
            (Some(one), Some(two)) => {
                (one.change_percent - two.change_percent).abs() < ALIKE_POINTS
            }
            (None, None) => machine.are_alike(*one, *two),
            _ => false,
        }
    }
}

impl Advice {
    /// Advises on a program from the counts of one run on the machine.
    pub fn of(
        command: &[String],
        program: &ProgramMemory,
        machine: MachineCosts,
        place: TrialPlace,
    ) -> Self {
        let option = |candidate: Candidate| {
            let predicted = predict(&candidate, program, &machine);
            let untried = room::lacking(&candidate, program, &machine);
            AdvisedOption { untried, ..AdvisedOption::new(candidate, predicted) }
        };
        let found = candidates(program, &machine).into_iter().map(option);
        let mut options: Vec<AdvisedOption> = found.collect();
        options.sort_by(|one, other| one.expected_tenths().total_cmp(&other.expected_tenths()));
        keep_best_regions(&mut options);
        let busy_ns: u64 = program.threads.iter().map(|thread| thread.busy_ns).sum();
        let accesses = program.regions.iter().flat_map(|region| &region.accesses);
        let waited_ns: u64 = accesses.map(|by| by.waits().waited_ns).sum();
        let profile = Profile {
            elapsed_ns: program.elapsed_ns,
            memory_share: waited_ns as f64 / busy_ns.max(1) as f64,
            threads: program.threads.len(),
        };
        Self {
            command: command.to_vec(),
            crowded: crowded::crowded(program, &machine),
            machine,
            place,
            profile: Some(profile),
            metric: None,
            trials: None,
            options,
        }
    }

    /// Lists the candidates for a program without a profile, which only trials can judge.
    pub fn unprofiled(
        command: &[String],
        candidates: Vec<Candidate>,
        machine: MachineCosts,
        place: TrialPlace,
    ) -> Self {
        let options = candidates.into_iter().map(|of| AdvisedOption::new(of, None)).collect();
        let (command, profile, metric, trials) = (command.to_vec(), None, None, None);
        let crowded = None;
        Self { command, machine, place, profile, metric, trials, crowded, options }
    }

    /// Returns the options predicted to be worthwhile, best first, of those whose memory fits.
    pub fn promising(&self) -> impl Iterator<Item = &AdvisedOption> {
        let fits = |option: &&AdvisedOption| !option.lacks_room();
        let gains = |option: &&AdvisedOption| option.predicted.is_some_and(Prediction::is_gain);
        self.options.iter().filter(fits).filter(gains)
    }

    /// Returns `true` if the program waits for memory too little for any placement to matter.
    pub fn hardly_waits(&self) -> bool {
        self.profile.is_some_and(|profile| profile.memory_share < WORTH_SHARE)
    }

    /// Returns the options worth a trial, best first: likely gains, even if factors outside the
    /// model might make them losses; then those that only a trial can judge, if the program waits
    /// for memory at all. Of nodes with the same prediction for binding, only the first is tried.
    pub fn worth_a_trial(&self) -> impl Iterator<Item = &AdvisedOption> {
        let is_open = |option: &&AdvisedOption| match option.predicted {
            Some(predicted) => predicted.is_likely_gain(),
            None => !self.hardly_waits(),
        };
        let open = move || self.options.iter().filter(is_open).filter(|of| !of.lacks_room());
        self.once_each(open)
    }

    /// Returns the options that may gain, best first, but with predictions too small or too
    /// uncertain to count as a likely gain, so that only a trial can decide. None if the program
    /// hardly waits for memory.
    pub fn undecided(&self) -> impl Iterator<Item = &AdvisedOption> {
        let may_gain = |option: &&AdvisedOption| {
            let predicted = option.predicted.filter(|predicted| !predicted.is_likely_gain());
            !self.hardly_waits() && predicted.is_some_and(Prediction::may_gain)
        };
        self.once_each(move || self.options.iter().filter(may_gain).filter(|of| !of.lacks_room()))
    }

    /// Leaves only the first of several nodes to bind to that are expected to be equal.
    fn once_each<'a, Found: Iterator<Item = &'a AdvisedOption>>(
        &'a self,
        options: impl Fn() -> Found + Copy + 'a,
    ) -> impl Iterator<Item = &'a AdvisedOption> {
        let is_again = move |at: usize, option: &AdvisedOption| {
            options().take(at).any(|before| before.is_bound_alike(option, &self.machine))
        };
        options()
            .enumerate()
            .filter(move |(at, option)| !is_again(*at, option))
            .map(|(_, option)| option)
    }

    /// Converts a change of the trials' metric so that, as for a time, below 0 is better.
    pub fn as_of_time(&self, percent: f64) -> f64 {
        match self.metric.as_ref().map(|metric| metric.better) {
            Some(Direction::HigherIsBetter) => -percent,
            Some(Direction::LowerIsBetter) | None => percent,
        }
    }

    /// Returns `true` if a change exceeds the unchanged program's difference from itself; a smaller
    /// one says nothing about the candidate.
    pub fn exceeds_own_difference(&self, measured: &Measured) -> bool {
        let own = self.trials.as_ref().and_then(Trials::own_difference_percent);
        own.is_none_or(|own| measured.change_percent.abs() > own)
    }

    /// Returns the recommended option: the one that did best in trials, or, if none helped, the
    /// most promising of those that were not or could not be tried. `None` if nothing promises a
    /// gain.
    pub fn best(&self) -> Option<&AdvisedOption> {
        let tried = self.options.iter().filter_map(|of| Some((of, of.measured.as_ref()?)));
        let better = tried.filter(|(_, measured)| {
            let is_better = measured.verdict == VerdictWord::Better && measured.out.is_none();
            is_better && self.exceeds_own_difference(measured)
        });
        let change = |measured: &Measured| self.as_of_time(measured.change_percent);
        let best = better.min_by(|one, other| change(one.1).total_cmp(&change(other.1)));
        let any_tried = self.options.iter().any(|option| option.measured.is_some());
        let mut untried = self.promising().filter(|option| {
            // An option less promising than one that failed needs a trial before it is recommended.
            option.measured.is_none() && !(any_tried && option.candidate.is_by_command())
        });
        best.map(|(option, _)| option).or_else(|| untried.next())
    }

    /// Returns the change of the program that was not tried and is predicted, even at the worse end of
    /// its interval, to gain more than the recommended option did in trials.
    pub fn better_change(&self) -> Option<&AdvisedOption> {
        let measured = self.best()?.measured.as_ref()?.change_percent;
        let is_better = |option: &&AdvisedOption| {
            let is_untried_change = option.measured.is_none() && !option.candidate.is_by_command();
            is_untried_change
                && option
                    .predicted
                    .is_some_and(|of| of.is_gain() && of.interval_percent.1 < measured)
        };
        // Predictions are of the run time, whatever trials judge by.
        self.options.iter().filter(|_| self.metric.is_none()).find(is_better)
    }
}

/// Keeps only the best way to bind a region, and the best to place a file, and each only if it is
/// likely to gain.
fn keep_best_regions(options: &mut Vec<AdvisedOption>) {
    let mut is_first = [true; 2];
    options.retain(|option| {
        let kind = match option.candidate {
            Candidate::BindRegion { .. } => 0,
            Candidate::PlaceFile { .. } => 1,
            _ => return true,
        };
        std::mem::take(&mut is_first[kind])
            && option.predicted.is_some_and(Prediction::is_likely_gain)
    });
}
