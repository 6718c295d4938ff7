//! Answers that are worse by more than the margin.

use numalab_stats::Verdict;

use super::{Effect, StudySummary, Subject};

impl StudySummary<'_> {
    /// Returns `true` if any answer is worse by more than the margin.
    #[must_use]
    pub fn any_worse(&self) -> bool {
        self.worse().next().is_some()
    }

    /// Returns the answers that are worse by more than the margin.
    pub fn worse(&self) -> impl Iterator<Item = (&Subject, &Effect)> {
        self.answers().filter(|(_, effect)| {
            effect.found.verdict == Verdict::Worse && effect.found.is_beyond_margin()
        })
    }
}
