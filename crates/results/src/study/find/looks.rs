//! Looks at the results of a study, each of which uses up a share of the permitted error.

use numalab_record::study::{EndReason, JournalEntry};

/// The numbers of looks at a study's results.
pub(super) struct Looks {
    pub(super) now: usize,
    /// After further blocks.
    pub(super) later: usize,
}

impl Looks {
    /// Counts how many times results could have been looked at: after each finished session that
    /// was followed by another, and now. A killed session printed nothing, and a session
    /// interrupted in its first block has no results.
    pub(super) fn of(journal: &[JournalEntry]) -> Self {
        let (mut now, mut ended, mut has_results) = (1, false, false);
        for entry in journal {
            match entry {
                JournalEntry::Ended { reason: EndReason::Failed(_), .. } => {}
                JournalEntry::Ended { reason: EndReason::Interrupted, .. } => ended |= has_results,
                JournalEntry::Ended { .. } => ended = true,
                JournalEntry::Sample(sample) => {
                    now += usize::from(ended);
                    ended = false;
                    has_results |= sample.block > 0;
                }
                JournalEntry::Began { .. }
                | JournalEntry::Applied(_)
                | JournalEntry::Out { .. } => {}
            }
        }
        Self { now, later: now + usize::from(ended) }
    }
}
