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
