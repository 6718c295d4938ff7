use numalab_record::study::{Disturbance, Load, LoadedMachine, Observation, StudyRun};

use super::*;

const FIRST: Cell = (0, 0, Arm::Main, 0);

fn rules(warm_ups: usize, repeats: usize) -> Rules {
    Rules { warm_ups, repeats, ..Rules::default() }
}

fn none_of(rules: &Rules) -> Attempts {
    let (disturbed, machine) = (BTreeMap::new(), SharedMachine::default());
    Attempts { rules: rules.clone(), disturbed, machine }
}

fn sample((block, treatment, arm, workload): Cell, disturbances: Vec<Disturbance>) -> SampleEntry {
    let observation = Observation { disturbances, ..Observation::default() };
    let (attempt, unix_ms, took_s) = (0, 0, 1.0);
    SampleEntry { block, treatment, arm, workload, attempt, unix_ms, took_s, observation }
}

fn quiet(cell: Cell) -> SampleEntry {
    sample(cell, Vec::new())
}

/// Returns a sample disturbed by a guest's failure, which is not a sign of a busy machine.
fn disturbed(cell: Cell) -> SampleEntry {
    sample(cell, vec![Disturbance::Guest { guest: "g01".to_owned(), reason: None }])
}

fn loaded(cell: Cell) -> SampleEntry {
    let load = Load::Foreign { foreign_ms: 120, of_ms: 2000 };
    sample(cell, vec![Disturbance::Load { on: LoadedMachine::Own, load }])
}

#[test]
fn a_cell_that_was_not_tried_is_not_done() {
    let attempts = none_of(&rules(0, 3));
    assert_eq!((attempts.count(FIRST), attempts.is_done(FIRST), attempts.done()), (0, false, 0));
}

#[test]
fn only_an_undisturbed_sample_completes_a_cell() {
    let mut attempts = none_of(&rules(0, 3));
    attempts.push(&quiet(FIRST));
    assert!(attempts.is_done(FIRST));
    for other in
        [(1, 0, Arm::Main, 0), (0, 1, Arm::Main, 0), (0, 0, Arm::Again, 0), (0, 0, Arm::Main, 1)]
    {
        assert!(!attempts.is_done(other), "{other:?}");
    }
    assert_eq!(attempts.done(), 1);
}

#[test]
fn disturbed_samples_are_taken_again_as_often_as_the_rules_allow() {
    for repeats in 0..4 {
        let mut attempts = none_of(&rules(0, repeats));
        for number in 0..=repeats {
            assert!(!attempts.is_done(FIRST), "{number} of {repeats}");
            attempts.push(&disturbed(FIRST));
        }
        assert!(attempts.is_done(FIRST), "{repeats}");
        assert_eq!(attempts.count(FIRST), repeats + 1);
    }
}

#[test]
fn a_quiet_sample_after_disturbed_ones_completes_the_cell() {
    let mut attempts = none_of(&rules(0, 9));
    attempts.push(&disturbed(FIRST));
    attempts.push(&disturbed(FIRST));
    assert!(!attempts.is_done(FIRST));
    attempts.push(&quiet(FIRST));
    assert!(attempts.is_done(FIRST));
    assert_eq!(attempts.count(FIRST), 3);
}

#[test]
fn warm_ups_are_taken_once() {
    let mut attempts = none_of(&rules(2, 5));
    let (last_warm_up, first_judged) = ((1, 0, Arm::Main, 0), (2, 0, Arm::Main, 0));
    attempts.push(&disturbed(last_warm_up));
    attempts.push(&disturbed(first_judged));
    assert!(attempts.is_done(last_warm_up));
    assert!(!attempts.is_done(first_judged));
    assert_eq!(attempts.done(), 1);
}

#[test]
fn samples_of_a_shared_machine_are_taken_once_and_a_failed_guest_is_not_a_sign_of_one() {
    let mut attempts = none_of(&rules(0, 5));
    for block in 0..12 {
        attempts.push(&disturbed((block, 0, Arm::Main, 0)));
    }
    assert!(!attempts.machine_is_shared());
    let mut attempts = none_of(&rules(0, 5));
    let mut block = 0;
    while !attempts.machine_is_shared() {
        assert!(block < 100, "a machine that is always loaded is found to be shared");
        attempts.push(&loaded((block, 0, Arm::Main, 0)));
        block += 1;
    }
    assert!(attempts.is_done(FIRST), "what was tried before is done too");
    assert_eq!(attempts.done(), block);
}

#[test]
fn attempts_in_a_journal_are_those_that_were_added() {
    let samples = [disturbed(FIRST), quiet(FIRST), disturbed((1, 0, Arm::Main, 0))];
    let rules = rules(0, 2);
    let study = crate::parse(STUDY, "s.toml", crate::Backends::NONE).unwrap();
    let started = crate::Started { version: String::new(), command: vec![], unix_ms: 0 };
    let run: StudyRun = crate::Plan::new(study, 1).unwrap().run(String::new(), started);
    let journal = samples.into_iter().map(numalab_record::study::JournalEntry::Sample).collect();
    let attempts = Attempts::of(&StudyDocument { run, journal }, &rules);
    assert_eq!((attempts.count(FIRST), attempts.count((1, 0, Arm::Main, 0))), (2, 1));
    assert_eq!(attempts.done(), 1);
}

const STUDY: &str = "name = \"s\"\nquestion = \"q?\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n\
                     [[workload]]\nname = \"w\"\ncommand = [\"true\"]\n\
                     metric = [{ name = \"t\", better = \"lower\", exit-time = true }]\n";
