//! The outcome of trials.

use serde::{Deserialize, Serialize};

use crate::VerdictWord;

/// The place where candidates are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialPlace {
    /// This machine.
    Host,
    /// A Linux guest with emulated memory.
    Guest,
    /// A process under emulation.
    Emulation,
}

/// The outcome of all trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trials {
    /// Number of finished blocks.
    pub blocks: usize,
    /// True if the program's results repeat exactly, so that each candidate ran once for all
    /// blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// The interval of the unchanged program's difference from itself in percent: the noise of the
    /// trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_percent: Option<(f64, f64)>,
    /// The reason for their end.
    pub end: TrialsEnd,
    /// The directory of their samples, if kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl Trials {
    /// Returns the largest difference between two runs of the unchanged program, in percent.
    pub fn own_difference_percent(&self) -> Option<f64> {
        self.again_percent.map(|(low, high)| low.abs().max(high.abs()))
    }
}

/// The reason for the end of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialsEnd {
    /// All blocks ran.
    Done,
    /// No remaining candidate could win.
    NoneLeft,
    /// The budget ran out.
    BudgetSpent,
    /// The user interrupted them.
    Interrupted,
}

/// A candidate's measured effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measured {
    /// The change of the trials' metric in percent; for a time, negative is faster.
    pub change_percent: f64,
    /// The 95 % interval of the change; `None` if the candidate dropped out after too few blocks
    /// for an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<(f64, f64)>,
    /// The verdict on the candidate.
    pub verdict: VerdictWord,
    /// The reason why it dropped out early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<RaceEnd>,
}

/// The reason why a candidate could not win any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RaceEnd {
    /// Number of blocks before it dropped out.
    pub blocks: usize,
    /// The position of the option that beat it; `None` if it gained nothing worthwhile over the
    /// unchanged program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<usize>,
}

/// The reason why an option cannot be tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Untried {
    /// The program's source must change.
    ProgramMustChange,
    /// Emulation does not support the candidate.
    NotEmulated,
    /// Trials leave it out because it changes the system for other programs too.
    NotInTrials,
    /// The setting needs root.
    NeedsRoot(String),
    /// This kernel does not have the setting.
    NotInKernel(String),
    /// The candidate needs an OpenMP runtime, and this program has none.
    NoOpenMp,
    /// The program's memory does not fit on a node.
    NoRoom {
        node: u32,
        /// The memory that the node would have to hold, in bytes.
        needed_bytes: u64,
        /// The memory that it can take, in bytes.
        left_bytes: u64,
    },
    /// The program failed with it.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::super::{Advice, Candidate, MachineCosts};
    use super::*;

    fn best_percent(again_percent: (f64, f64)) -> Option<f64> {
        let candidates = vec![Candidate::HugePages];
        let mut advice =
            Advice::unprofiled(&[], candidates, MachineCosts::default(), TrialPlace::Host);
        advice.trials = Some(Trials {
            blocks: 8,
            repeats: false,
            again_percent: Some(again_percent),
            end: TrialsEnd::Done,
            directory: None,
        });
        advice.options[0].measured = Some(Measured {
            change_percent: -6.3,
            interval_percent: Some((-9.0, -4.0)),
            verdict: VerdictWord::Better,
            out: None,
        });
        advice.best().and_then(|option| option.measured.as_ref()).map(|of| of.change_percent)
    }

    #[test]
    fn a_gain_smaller_than_the_programs_own_variation_does_not_count() {
        assert_eq!(best_percent((-2.0, 1.5)), Some(-6.3));
        assert_eq!(best_percent((-3.0, 28.0)), None);
        assert_eq!(best_percent((-28.0, 1.0)), None);
    }
}
