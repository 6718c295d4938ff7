//! What came of one boot: for each guest where it lay and what its jobs gave.

use std::collections::BTreeMap;

use numalab_record::study::{Disturbance, Evidence};

/// All guests of one treatment, after all jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub guests: Vec<GuestOutcome>,
    /// What holds for all of them: the hypervisor, its nodes.
    pub facts: Vec<Evidence>,
    /// What the memory emulator reported; phase N is job N, counted from 1.
    pub memory_report: Option<String>,
    /// What else this machine did during a job, where that matters.
    pub disturbances: BTreeMap<usize, Disturbance>,
}

/// One guest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GuestOutcome {
    pub name: String,
    /// The node it belongs to: by plan, or that of the cpu it ran on.
    pub home: Option<u32>,
    /// Frames, or bytes, on each node.
    pub memory: BTreeMap<u32, u64>,
    /// What lies in no node's memory.
    pub elsewhere: u64,
    /// The CPUs that it may run on, where that is known.
    pub cpus: Option<String>,
    /// What else shows where it is.
    pub evidence: Vec<Evidence>,
    /// What came of each job that it did.
    pub jobs: BTreeMap<usize, JobOutcome>,
    /// Why it was lost, if it was.
    pub lost: Option<String>,
}

/// What came of a job in one guest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JobOutcome {
    pub exit: u8,
    pub output: String,
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl GuestOutcome {
    /// The share of its memory on its own node; `None` if either is not known.
    pub(super) fn local_share(&self) -> Option<f64> {
        let total = self.memory.values().sum::<u64>() + self.elsewhere;
        let home = self.home?;
        let local = self.memory.get(&home).copied().unwrap_or(0);
        (total > 0).then(|| local as f64 / total as f64)
    }
}

impl Outcome {
    /// The share of all guests' memory that is on each one's own node.
    pub(super) fn local_share(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self
            .guests
            .iter()
            .filter(|guest| guest.lost.is_none())
            .map(GuestOutcome::local_share)
            .collect();
        let shares = shares.filter(|shares| !shares.is_empty())?;
        Some(shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

/// How evenly values are shared (Jain): 1 if all are the same, 1/n if one has everything.
pub(super) fn fairness(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(home: u32, memory: &[(u32, u64)]) -> GuestOutcome {
        GuestOutcome {
            home: Some(home),
            memory: memory.iter().copied().collect(),
            ..GuestOutcome::default()
        }
    }

    #[test]
    fn the_local_share_is_the_mean_of_the_guests_that_are_left() {
        let mut gone = guest(0, &[(1, 5)]);
        gone.lost = Some("it crashed".to_owned());
        let guests = vec![guest(0, &[(0, 3), (1, 1)]), guest(1, &[(0, 2)]), gone];
        let outcome = Outcome { guests, ..Outcome::default() };
        assert_eq!(outcome.local_share(), Some(0.375));
        assert_eq!(Outcome::default().local_share(), None);
    }

    #[test]
    fn fairness_is_one_for_equals_and_a_share_for_one_that_takes_all() {
        assert_eq!(fairness(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(fairness(&[4.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(fairness(&[0.0]), None);
    }
}
