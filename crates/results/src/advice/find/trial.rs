//! What became of trials.

use serde::{Deserialize, Serialize};

use crate::VerdictWord;

/// Where candidates are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrialPlace {
    /// On this machine.
    Host,
    /// In a Linux guest whose memory is emulated.
    Guest,
    /// Under emulation, as a process.
    Emulation,
}

/// How trials went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trials {
    /// Blocks that were finished.
    pub blocks: usize,
    /// Whether the program gives the same each time to the last bit, so that each candidate ran
    /// once for all blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// What the program as it is brought against itself, in percent: what is found where nothing
    /// differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_percent: Option<(f64, f64)>,
    /// Why they ended.
    pub end: TrialsEnd,
    /// Where their samples are kept, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl Trials {
    /// How much the program as it is may differ from itself, in percent.
    #[must_use]
    pub fn own_difference_percent(&self) -> Option<f64> {
        self.again_percent.map(|(low, high)| low.abs().max(high.abs()))
    }
}

/// Why trials ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrialsEnd {
    /// All blocks had run.
    Done,
    /// No candidate was left that could win.
    NoneLeft,
    /// The budget was spent.
    BudgetSpent,
    /// The user interrupted them.
    Interrupted,
}

/// What a candidate brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Change of what trials judge by, in percent: of the time, less is faster.
    pub change_percent: f64,
    /// Its interval; none of a candidate that was out before there were blocks enough for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<(f64, f64)>,
    /// Whether it helps.
    pub verdict: VerdictWord,
    /// Why it was not tried to the end, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<RaceEnd>,
}

/// Why a candidate could not win any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaceEnd {
    /// After so many blocks.
    pub blocks: usize,
    /// The option that was better, by its position; none where it gained nothing worth it over the
    /// program as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<usize>,
}

/// Why an option cannot be tried where trials are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Untried {
    /// Only the program's author can make it.
    ProgramMustChange,
    /// Emulation does not have this.
    NotEmulated,
    /// Setting this takes root.
    NeedsRoot(String),
    /// This kernel does not have this setting.
    NotInKernel(String),
    /// Only programs with OpenMP's runtime take it, and this one has none.
    NoOpenMp,
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
    fn a_gain_smaller_than_what_the_program_differs_from_itself_is_none() {
        assert_eq!(best_percent((-2.0, 1.5)), Some(-6.3));
        assert_eq!(best_percent((-3.0, 28.0)), None);
        assert_eq!(best_percent((-28.0, 1.0)), None);
    }
}
