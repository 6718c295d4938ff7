//! Which placement is right for a program: what it does to its memory, what could be done about
//! that, and what each change would bring by its counts and the machine's latencies.

mod balancing;
mod bound;
mod candidate;
mod candidates;
mod commands;
mod demand;
mod load;
mod machine;
mod path;
mod predict;
mod spread;
mod trial;
mod waits;

pub use candidate::Candidate;
pub use candidates::{candidates, candidates_unprofiled};
pub use commands::{ToolCommand, commands};
pub use machine::{CostsKnown, CpuPlace, KernelNow, MachineCosts, cpu_list, node_list};
pub use predict::{Prediction, predict};
pub use spread::Spread;
pub use trial::{Measured, RaceEnd, TrialPlace, Trials, TrialsEnd, Untried};

use numalab_record::ProgramMemory;
use numalab_record::study::Quantity;
use numalab_stats::Direction;
use serde::{Deserialize, Serialize};

use crate::VerdictWord;

/// Less of a program's time is not worth a change.
pub const WORTH_SHARE: f64 = 0.02;

/// Predictions this near each other, in percentage points, are the same.
const ALIKE_POINTS: f64 = 0.1;

/// What is advised, the best candidate first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The program, with its arguments.
    pub command: Vec<String>,
    /// The machine that the advice is for.
    pub machine: MachineCosts,
    /// Where candidates are tried.
    pub place: TrialPlace,
    /// What is known of the program; nothing where it was not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// What trials judge by where that is not the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Quantity>,
    /// How the trials went, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<Trials>,
    /// What could be done.
    pub options: Vec<AdvisedOption>,
}

/// What one run told of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// How long it takes as it is, in ns of the machine.
    pub elapsed_ns: u64,
    /// Of its threads' time, the part that waits for memory or for other caches.
    pub memory_share: f64,
    /// Threads that it has at a time.
    pub threads: usize,
}

/// One thing that could be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdvisedOption {
    /// What.
    pub candidate: Candidate,
    /// What it is expected to bring; nothing where one run does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Prediction>,
    /// What it brought when it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Why it cannot be tried here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untried: Option<Untried>,
    /// Command lines that do it, that of the trials first; none for what only the program's author
    /// can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ToolCommand>,
}

impl AdvisedOption {
    fn new(candidate: Candidate, predicted: Option<Prediction>) -> Self {
        Self { candidate, predicted, measured: None, untried: None, commands: Vec::new() }
    }

    /// The change that is expected, for putting options in order: those without a prediction last.
    fn expected_percent(&self) -> f64 {
        self.predicted.map_or(f64::INFINITY, |predicted| predicted.change_percent)
    }

    /// The same where options differ by as much as is printed; those that do not are in the order of
    /// their kinds.
    fn expected_tenths(&self) -> f64 {
        (self.expected_percent() / ALIKE_POINTS).round()
    }

    /// Whether both bind, and are predicted to bring the same.
    fn is_bound_alike(&self, other: &Self) -> bool {
        let binds = [self, other].map(|of| matches!(of.candidate, Candidate::Bind { .. }));
        let [one, two] = [self, other].map(Self::expected_percent);
        binds == [true, true] && (one - two).abs() < ALIKE_POINTS
    }
}

impl Advice {
    /// Advice for a program that ran once on the machine, by what was counted.
    #[must_use]
    pub fn of(
        command: &[String],
        program: &ProgramMemory,
        machine: MachineCosts,
        place: TrialPlace,
    ) -> Self {
        let option = |candidate: Candidate| {
            let predicted = predict(&candidate, program, &machine);
            AdvisedOption::new(candidate, predicted)
        };
        let found = candidates(program, &machine).into_iter().map(option);
        let mut options: Vec<AdvisedOption> = found.collect();
        options.sort_by(|one, other| one.expected_tenths().total_cmp(&other.expected_tenths()));
        keep_best_region(&mut options);
        let busy_ns: u64 = program.threads.iter().map(|thread| thread.busy_ns).sum();
        let accesses = program.regions.iter().flat_map(|region| &region.accesses);
        let waited_ns: u64 = accesses.map(|by| by.waited_ns).sum();
        let profile = Profile {
            elapsed_ns: program.elapsed_ns,
            memory_share: waited_ns as f64 / busy_ns.max(1) as f64,
            threads: program.threads.len(),
        };
        Self {
            command: command.to_vec(),
            machine,
            place,
            profile: Some(profile),
            metric: None,
            trials: None,
            options,
        }
    }

    /// Candidates for a program of which nothing is known: trials alone decide.
    #[must_use]
    pub fn unprofiled(
        command: &[String],
        candidates: Vec<Candidate>,
        machine: MachineCosts,
        place: TrialPlace,
    ) -> Self {
        let options = candidates.into_iter().map(|of| AdvisedOption::new(of, None)).collect();
        let (command, profile, metric, trials) = (command.to_vec(), None, None, None);
        Self { command, machine, place, profile, metric, trials, options }
    }

    /// Those that are expected to be worth it, best first.
    pub fn promising(&self) -> impl Iterator<Item = &AdvisedOption> {
        self.options.iter().filter(|option| option.predicted.is_some_and(Prediction::is_gain))
    }

    /// Whether the program waits for memory so little that no placement matters.
    #[must_use]
    pub fn hardly_waits(&self) -> bool {
        self.profile.is_some_and(|profile| profile.memory_share < WORTH_SHARE)
    }

    /// Those that a trial may show to be worth it, best first: likely gains, even where what
    /// predictions leave out might make them losses; then those that only a trial can tell of, if
    /// the program waits for memory at all. Of nodes to which binding is predicted to bring the same,
    /// as on a machine whose nodes are alike, the first.
    pub fn worth_a_trial(&self) -> impl Iterator<Item = &AdvisedOption> {
        let is_open = |option: &&AdvisedOption| match option.predicted {
            Some(predicted) => predicted.is_likely_gain(),
            None => !self.hardly_waits(),
        };
        let open = move || self.options.iter().filter(is_open);
        let is_again = move |at: usize, option: &AdvisedOption| {
            open().take(at).any(|before| before.is_bound_alike(option))
        };
        open()
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

    /// Whether a change is larger than what the program as it is differs from itself: else it says
    /// nothing of the candidate.
    #[must_use]
    pub fn exceeds_own_difference(&self, measured: &Measured) -> bool {
        let own = self.trials.as_ref().and_then(Trials::own_difference_percent);
        own.is_none_or(|own| measured.change_percent.abs() > own)
    }

    /// What to do: the candidate that was best when it was tried; where none was better, the one that
    /// is expected to be best of those that were not tried, or cannot be. None where there is no
    /// gain to be had.
    #[must_use]
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
            // What was less promising than what failed is not advised without a trial.
            option.measured.is_none() && !(any_tried && option.candidate.is_by_command())
        });
        best.map(|(option, _)| option).or_else(|| untried.next())
    }
}

/// Of the ways in which one region could be bound, the best one, and only if it is likely to gain.
fn keep_best_region(options: &mut Vec<AdvisedOption>) {
    let mut is_first = true;
    options.retain(|option| match option.candidate {
        Candidate::BindRegion { .. } => {
            std::mem::take(&mut is_first)
                && option.predicted.is_some_and(Prediction::is_likely_gain)
        }
        _ => true,
    });
}
