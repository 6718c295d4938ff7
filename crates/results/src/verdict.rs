//! Verdicts as they appear in documents.

use numalab_stats::Verdict;
use serde::{Deserialize, Serialize};

/// A verdict without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictWord {
    /// A difference is shown, and the candidate is better.
    Better,
    /// A difference is shown, and the candidate is worse.
    Worse,
    /// The difference is shown to be within the margin.
    Equivalent,
    /// Neither a difference nor equivalence is shown.
    Inconclusive,
}

impl From<Verdict> for VerdictWord {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Better => Self::Better,
            Verdict::Worse => Self::Worse,
            Verdict::Equivalent => Self::Equivalent,
            Verdict::Inconclusive { .. } => Self::Inconclusive,
        }
    }
}
