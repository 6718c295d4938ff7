//! Answers that are worse by more than the margin.

use numalab_stats::Verdict;

use super::{Effect, StudySummary, Subject};
use crate::shape::Tail;

impl StudySummary<'_> {
    /// Returns `true` if any answer is worse by more than the margin.
    pub fn any_worse(&self) -> bool {
        self.worse().next().is_some()
    }

    /// Returns `true` if any answer is decided.
    pub fn any_decided(&self) -> bool {
        self.answers().any(|(_, effect)| effect.found.verdict.is_decided())
    }

    /// Reports whether the tail of any answer is shown to be worse.
    pub fn any_tail_worse(&self) -> bool {
        let is_worse = |effect: &Effect| effect.tail.as_ref().is_some_and(Tail::is_shown_worse);
        self.answers().any(|(_, effect)| is_worse(effect))
    }

    /// Returns the answers that are worse by more than the margin.
    pub fn worse(&self) -> impl Iterator<Item = (&Subject, &Effect)> {
        self.answers().filter(|(_, effect)| {
            effect.found.verdict == Verdict::Worse && effect.found.is_beyond_margin()
        })
    }
}
