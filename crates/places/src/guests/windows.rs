//! The time window of each job of a boot, from the agent's events.

use std::collections::BTreeMap;

use numalab_guest::xen::XenEvent;

/// The moments between which each job ran. All guests begin a job together, once the previous one
/// is done.
#[derive(Debug)]
pub(super) struct JobWindows<T> {
    /// The moment at which the last job ended, or the guests had been created.
    idle: Option<T>,
    jobs: BTreeMap<usize, (T, T)>,
}

impl<T: Copy> JobWindows<T> {
    pub(super) fn new() -> Self {
        Self { idle: None, jobs: BTreeMap::new() }
    }

    pub(super) fn see(&mut self, event: &XenEvent, now: T) {
        match event {
            XenEvent::Placed(_) => self.idle = Some(now),
            XenEvent::Answered(answer) => {
                let begun = self.jobs.get(&answer.job).map(|(begun, _)| *begun);
                if let Some(begun) = begun.or(self.idle) {
                    self.jobs.insert(answer.job, (begun, now));
                }
                self.idle = Some(now);
            }
            _ => {}
        }
    }

    /// Returns each job with its start and end.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (usize, T, T)> + '_ {
        self.jobs.iter().map(|(job, (begun, done))| (*job, *begun, *done))
    }
}

#[cfg(test)]
mod tests {
    use numalab_guest::xen::{DomainAnswer, DomainPlace, LostPhase};

    use super::*;

    #[test]
    fn a_job_runs_from_the_end_of_the_one_before_to_the_last_answer() {
        let placed = XenEvent::Placed(DomainPlace::default());
        let answered = |job| XenEvent::Answered(DomainAnswer { job, ..DomainAnswer::default() });
        let lost = XenEvent::Lost {
            domain: "g02".to_owned(),
            phase: LostPhase::Job,
            reason: "it crashed".to_owned(),
        };
        let mut windows = JobWindows::new();
        let events =
            [placed.clone(), placed, answered(0), answered(0), lost, answered(1), answered(2)];
        for (moment, event) in events.iter().enumerate() {
            windows.see(event, moment);
        }
        let jobs: Vec<_> = windows.jobs().collect();
        assert_eq!(jobs, [(0, 1, 3), (1, 3, 5), (2, 5, 6)]);
    }

    #[test]
    fn a_boot_without_guests_has_no_jobs() {
        assert_eq!(JobWindows::<u32>::new().jobs().count(), 0);
    }
}
