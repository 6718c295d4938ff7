//! Answers that are worse by more than the margin.

use numalab_stats::Verdict;

use super::{Effect, StudySummary, Subject};
use crate::shape::FarEnd;

impl StudySummary<'_> {
    /// Returns `true` if any answer is worse by more than the margin.
    pub fn any_worse(&self) -> bool {
        self.worse().next().is_some()
    }

    /// Reports whether the far end of any answer is shown to be worse.
    pub fn any_far_end_worse(&self) -> bool {
        let is_worse =
            |effect: &Effect| effect.far_end.as_ref().is_some_and(FarEnd::is_shown_worse);
        self.answers().any(|(_, effect)| is_worse(effect))
    }

    /// Returns the answers that are worse by more than the margin.
    pub fn worse(&self) -> impl Iterator<Item = (&Subject, &Effect)> {
        self.answers().filter(|(_, effect)| {
            effect.found.verdict == Verdict::Worse && effect.found.is_beyond_margin()
        })
    }
}
