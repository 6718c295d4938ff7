//! Machines that others use too: what is disturbed there, and still counts.
//!
//! No rule here looks at a value.

use crate::sample::Sample;
use crate::study::SampleEntry;

/// So many clean windows have an interval: disturbed ones add nothing to them.
const ENOUGH_CLEAN: usize = 6;
/// Fewer clean windows than that are waited for until this many are disturbed for each.
const MOST_DISTURBED_PER_CLEAN: usize = 3;

/// Whether so few windows are clean that the disturbed ones count too: a machine that is always
/// busy leaves none, and to wait for them takes long and finds nothing. No value is looked at.
#[must_use]
pub fn all_windows_count(clean: usize, disturbed: usize) -> bool {
    clean < ENOUGH_CLEAN && disturbed > MOST_DISTURBED_PER_CLEAN * clean
}

/// The values that count of one metric's samples, in their order: the undisturbed ones, or all
/// where [`all_windows_count`].
#[must_use]
pub fn counted_values<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Vec<f64> {
    let is_clean = |sample: &&Sample| sample.disturbed.is_none();
    let clean: Vec<f64> = samples.clone().filter(is_clean).map(|sample| sample.value).collect();
    let disturbed = samples.clone().count() - clean.len();
    match all_windows_count(clean.len(), disturbed) {
        true => samples.map(|sample| sample.value).collect(),
        false => clean,
    }
}

/// Whether most of what was taken was disturbed: to take it again would find the same.
#[must_use]
pub fn is_shared(taken: usize, disturbed: usize) -> bool {
    2 * disturbed > taken
}

/// So many samples of a study are taken before its machine is called shared.
const FEWEST_SAMPLES: usize = 6;

/// Watches a study's samples for whether its machine is shared. Once it is, it stays so: what
/// was left undone because of it is not done later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedMachine {
    taken: usize,
    disturbed: usize,
    found: bool,
}

impl SharedMachine {
    /// What the samples of a journal say, in their order.
    pub fn of<'a>(samples: impl Iterator<Item = &'a SampleEntry>) -> Self {
        let mut machine = Self::default();
        samples.for_each(|sample| machine.push(sample));
        machine
    }

    /// Takes one more sample into account; one that was taken again says nothing new.
    pub fn push(&mut self, sample: &SampleEntry) {
        if sample.attempt == 0 {
            self.taken += 1;
            self.disturbed += usize::from(sample.observation.is_disturbed_by_load());
        }
        self.found |= self.taken >= FEWEST_SAMPLES && is_shared(self.taken, self.disturbed);
    }

    /// Whether other load disturbs most samples.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Arm, Disturbance, Load, LoadedMachine, Observation};
    use crate::{CellId, Metric};

    fn values(disturbed: &[bool]) -> Vec<f64> {
        let sample = |(index, disturbed): (usize, &bool)| Sample {
            cell: CellId("one".to_owned()),
            metric: Metric::Latency,
            index: 0,
            value: index as f64,
            start_ns: 0,
            duration_ns: 1,
            work: 1,
            disturbed: disturbed.then(|| "off-cpu".to_owned()),
        };
        let samples: Vec<Sample> = disturbed.iter().enumerate().map(sample).collect();
        counted_values(samples.iter())
    }

    #[test]
    fn clean_windows_count_unless_they_are_few_and_three_of_four_are_disturbed() {
        assert_eq!(values(&[true, false, true, true]), [1.0]);
        assert_eq!(values(&[true, false, true, true, true]).len(), 5);
        assert_eq!(values(&[true]), [0.0]);
        let six = [&[true; 30][..], &[false; 6]].concat();
        assert_eq!(values(&six).len(), 6);
        assert!(values(&[]).is_empty());
    }

    fn machine_of(samples: &[(usize, Option<&Disturbance>)]) -> SharedMachine {
        let sample = |&(attempt, disturbance): &(usize, Option<&Disturbance>)| SampleEntry {
            block: 0,
            treatment: 0,
            arm: Arm::Main,
            workload: 0,
            attempt,
            unix_ms: 0,
            took_s: 1.0,
            observation: Observation {
                disturbances: disturbance.into_iter().cloned().collect(),
                ..Observation::default()
            },
        };
        let samples: Vec<SampleEntry> = samples.iter().map(sample).collect();
        SharedMachine::of(samples.iter())
    }

    #[test]
    fn a_machine_is_shared_once_most_of_six_first_attempts_are_disturbed_by_load_and_stays_so() {
        let load = Load::Foreign { foreign_ms: 9, of_ms: 20 };
        let load = Disturbance::Load { on: LoadedMachine::Own, load };
        let crashed = Disturbance::Guest { guest: "g01".to_owned(), reason: None };
        let (busy, quiet) = ((0, Some(&load)), (0, None));
        assert!(!machine_of(&[busy; 5]).is_found());
        assert!(machine_of(&[busy; 6]).is_found());
        assert!(!machine_of(&[[busy; 3], [quiet; 3]].concat()).is_found());
        assert!(machine_of(&[&[busy; 6][..], &[quiet; 30]].concat()).is_found());
        // Neither another attempt nor a guest that failed says that others use the machine.
        assert!(!machine_of(&[(1, Some(&load)); 9]).is_found());
        assert!(!machine_of(&[(0, Some(&crashed)); 9]).is_found());
    }
}
