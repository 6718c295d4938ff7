//! What a comparison says, as documents have it.

use numalab_stats::Verdict;
use serde::{Deserialize, Serialize};

/// A verdict in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerdictWord {
    /// A difference is shown, for the better.
    Better,
    /// A difference is shown, for the worse.
    Worse,
    /// The difference is shown to lie within the margin.
    Equivalent,
    /// Neither is shown.
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
