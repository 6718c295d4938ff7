//! The outcome of a boot: the location of each guest and the results of its jobs.

use std::collections::BTreeMap;

use numalab_record::study::{Disturbance, Evidence};

/// All guests of a treatment, after all jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub guests: Vec<GuestOutcome>,
    /// Facts that apply to all of them: the hypervisor, its nodes.
    pub facts: Vec<Evidence>,
    /// The memory emulator's report; phase N is job N, counted from 1.
    pub memory_report: Option<String>,
    /// The disturbances by this machine during a job, if they matter.
    pub disturbances: BTreeMap<usize, Disturbance>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GuestOutcome {
    pub name: String,
    /// Home node: as planned, or the node of the cpu that the guest ran on.
    pub home: Option<u32>,
    /// The frames, or bytes, on each node.
    pub memory: BTreeMap<u32, u64>,
    /// The memory that is on no node.
    pub elsewhere: u64,
    /// The CPUs that the guest may run on, if known.
    pub cpus: Option<String>,
    /// Further evidence of the guest's location.
    pub evidence: Vec<Evidence>,
    pub jobs: BTreeMap<usize, JobOutcome>,
    /// The reason why the guest was lost, if it was.
    pub lost: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JobOutcome {
    pub exit: u8,
    pub output: String,
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl GuestOutcome {
    /// Returns the share of the guest's memory on its home node; `None` if either is unknown.
    pub(super) fn local_share(&self) -> Option<f64> {
        let total = self.memory.values().sum::<u64>() + self.elsewhere;
        let home = self.home?;
        let local = self.memory.get(&home).copied().unwrap_or(0);
        (total > 0).then(|| local as f64 / total as f64)
    }
}

impl Outcome {
    /// Returns the share of all guests' memory that is on the guest's home node.
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

/// Returns Jain's fairness index: 1 if all values are equal, 1/n if one has everything.
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
