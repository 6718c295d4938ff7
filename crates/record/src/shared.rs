//! Machines shared with other users: detecting them, and which disturbed values still count.
//!
//! No rule here looks at a value.

use crate::sample::Sample;
use crate::study::SampleEntry;

/// The number of clean windows from which an interval can be computed; disturbed ones add nothing
/// beyond it.
const ENOUGH_CLEAN: usize = 6;
/// The number of disturbed windows per clean one at which the wait for clean windows ends.
const MOST_DISTURBED_PER_CLEAN: usize = 3;

/// Returns true if there are too few clean windows, so that disturbed ones count too: a machine
/// that is always busy never gives clean ones. The rule does not look at values.
pub fn all_windows_count(clean: usize, disturbed: usize) -> bool {
    clean < ENOUGH_CLEAN && disturbed > MOST_DISTURBED_PER_CLEAN * clean
}

/// Returns the values that count among one metric's samples, in order: the undisturbed ones, or all
/// if [`all_windows_count`].
pub fn counted_values<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Vec<f64> {
    let is_clean = |sample: &&Sample| sample.disturbed.is_none();
    let clean: Vec<f64> = samples.clone().filter(is_clean).map(|sample| sample.value).collect();
    let disturbed = samples.clone().count() - clean.len();
    match all_windows_count(clean.len(), disturbed) {
        true => samples.map(|sample| sample.value).collect(),
        false => clean,
    }
}

/// Returns true if most samples were disturbed, so that repeating them would not help.
pub fn is_shared(taken: usize, disturbed: usize) -> bool {
    2 * disturbed > taken
}

/// The number of samples of a study from which its machine can be called shared.
const FEWEST_SAMPLES: usize = 6;

/// Determines from a study's samples whether its machine is shared. Once it is shared it stays so,
/// because skipped retries are not made up for later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedMachine {
    taken: usize,
    disturbed: usize,
    found: bool,
}

impl SharedMachine {
    /// Evaluates the samples of a journal, in order.
    pub fn of<'a>(samples: impl Iterator<Item = &'a SampleEntry>) -> Self {
        let mut machine = Self::default();
        samples.for_each(|sample| machine.push(sample));
        machine
    }

    /// Takes one more sample into account; retries are ignored.
    pub fn push(&mut self, sample: &SampleEntry) {
        if sample.attempt == 0 {
            self.taken += 1;
            self.disturbed += usize::from(sample.observation.is_disturbed_by_load());
        }
        self.found |= self.taken >= FEWEST_SAMPLES && is_shared(self.taken, self.disturbed);
    }

    /// Returns true if other load disturbs most samples.
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
        // Neither a retry nor a failed guest shows that other users load the machine.
        assert!(!machine_of(&[(1, Some(&load)); 9]).is_found());
        assert!(!machine_of(&[(0, Some(&crashed)); 9]).is_found());
    }
}
