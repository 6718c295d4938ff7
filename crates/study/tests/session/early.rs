//! Treatments that a backend runs ahead of time: what ends early is on disk at once, as kill -9
//! shows.

use std::env;
use std::process::Command;

use numalab_record::study::{Evidence, JournalEntry, Observation, Treatment};
use numalab_study::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};

use crate::lab::{Lab, Scripted};

/// The directory in which the killed process writes.
const WRITES: &str = "NUMALAB_TEST_EARLY";

/// The second treatment of a block ends first, and numalab is killed while the first one runs.
struct Ahead {
    scripted: Scripted,
    waits: usize,
}

impl Backend for Ahead {
    fn describe(&self) -> String {
        self.scripted.describe()
    }

    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        self.scripted.inspect(scope)
    }

    fn prepare(self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        let scripted = Box::new(self.scripted.clone());
        Ok(Preparation { backend: self, ..scripted.prepare(scope)? })
    }
}

impl Prepared for Ahead {
    fn first_ready(&mut self, treatments: &[&Treatment]) -> usize {
        self.waits += 1;
        if self.waits > 1 {
            let killed = Command::new("sh").args(["-c", "kill -9 $PPID"]).status();
            unreachable!("{killed:?}");
        }
        assert_ne!(treatments[0].name, treatments[1].name);
        1
    }

    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        self.scripted.apply(treatment)
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        self.scripted.sample(request)
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        Box::new(self.scripted).restore()
    }
}

#[test]
#[ignore = "another test runs it in a separate process"]
fn a_process_that_is_killed() {
    let Some(directory) = env::var_os(WRITES) else { return };
    let lab = Lab::open();
    let backend = Ahead { scripted: Scripted::new(None, true), waits: 0 };
    lab.run_in(directory.as_ref(), Box::new(backend)).unwrap();
}

#[test]
fn what_ends_before_the_treatment_that_is_due_survives_a_kill() {
    let lab = Lab::open();
    let killed = Command::new(env::current_exe().unwrap())
        .args(["--exact", "early::a_process_that_is_killed", "--ignored"])
        .env(WRITES, lab.directory.path())
        .output()
        .unwrap();
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let taken = |entries: &[JournalEntry]| -> Vec<(usize, usize)> {
        let samples = entries.iter().filter_map(|entry| match entry {
            JournalEntry::Sample(sample) => Some((sample.block, sample.treatment)),
            _ => None,
        });
        samples.collect()
    };
    let due = lab.plan.visits(0)[0].treatment;
    let early = lab.plan.visits(0)[1].treatment;
    assert_eq!(taken(&lab.entries()), [(0, early)], "{killed:?}");
    lab.resume(&Scripted::new(None, true)).unwrap();
    let all = taken(&lab.entries());
    assert_eq!(all[..2], [(0, early), (0, due)]);
    assert_eq!(all.len(), 4, "each once: {all:?}");
}
