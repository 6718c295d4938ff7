//! The time of a study so far, and the estimate of the rest.

use std::time::Duration;

use numalab_record::study::{JournalEntry, StudyDocument};

/// Returns the time that all sessions of a study spent on treatments and samples.
pub fn time_spent(document: &StudyDocument) -> Duration {
    let seconds: f64 = document
        .journal
        .iter()
        .map(|entry| match entry {
            JournalEntry::Applied(applied) => applied.took_s,
            JournalEntry::Sample(sample) => sample.took_s,
            _ => 0.0,
        })
        .sum();
    // A journal is read from a file: its times may be negative or not finite.
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Estimates the time of the remaining samples from those taken so far.
pub fn remaining_time(document: &StudyDocument, done: usize, in_all: usize) -> Option<Duration> {
    let left = in_all.checked_sub(done)?;
    if done == 0 {
        return None;
    }
    let seconds = time_spent(document).as_secs_f64() / done as f64 * left as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests;
