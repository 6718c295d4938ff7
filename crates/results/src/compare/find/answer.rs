//! Answers as they appear in documents.

use numalab_stats::Verdict;
use serde::{Deserialize, Serialize};

use super::Answer;

/// An answer without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerWord {
    /// A difference is shown, and the candidate is better.
    Better,
    /// A difference is shown, and the candidate is worse.
    Worse,
    /// The difference is shown to be within the margin.
    Equivalent,
    /// Neither a difference nor equivalence is shown.
    Inconclusive,
    /// There are fewer than four units, which do not show how the machine varies, or the figure is
    /// a round trip from cpu to cpu.
    #[serde(rename = "not judged")]
    NotJudged,
    /// A cell differs from its kind, but a side has only one run.
    #[serde(rename = "seen once")]
    SeenOnce,
}

impl AnswerWord {
    /// Returns the answer's name, which is stable across versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
            Self::NotJudged => "not judged",
            Self::SeenOnce => "seen once",
        }
    }
}

impl From<Answer> for AnswerWord {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::NotJudged => Self::NotJudged,
            Answer::SeenOnce => Self::SeenOnce,
            Answer::Judged(Verdict::Better) => Self::Better,
            Answer::Judged(Verdict::Worse) => Self::Worse,
            Answer::Judged(Verdict::Equivalent) => Self::Equivalent,
            Answer::Judged(Verdict::Inconclusive { .. }) => Self::Inconclusive,
        }
    }
}
