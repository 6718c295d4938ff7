use numalab_record::study::{Applied, Arm, EndReason, Observation, SampleEntry};

use super::*;
use crate::{Backends, Plan, Started, parse};

const STUDY: &str = "name = \"s\"\nquestion = \"q?\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n\
                     [[workload]]\nname = \"w\"\ncommand = [\"true\"]\n\
                     metric = [{ name = \"t\", better = \"lower\", exit-time = true }]\n";

fn document(journal: Vec<JournalEntry>) -> StudyDocument {
    let started = Started { version: String::new(), command: Vec::new(), unix_ms: 0 };
    let plan = Plan::new(parse(STUDY, "s.toml", Backends::NONE).unwrap(), 1).unwrap();
    StudyDocument { run: plan.run(String::new(), started), journal }
}

fn applied(took_s: f64) -> JournalEntry {
    JournalEntry::Applied(Applied {
        block: 0,
        treatment: 0,
        arm: Arm::Main,
        took_s,
        evidence: Vec::new(),
    })
}

fn sample(took_s: f64) -> JournalEntry {
    JournalEntry::Sample(SampleEntry {
        block: 0,
        treatment: 0,
        arm: Arm::Main,
        workload: 0,
        attempt: 0,
        unix_ms: 0,
        took_s,
        observation: Observation::default(),
    })
}

fn ended() -> JournalEntry {
    JournalEntry::Ended { reason: EndReason::Done, unix_ms: u64::MAX }
}

#[test]
fn treatments_and_samples_take_time_and_pauses_between_sessions_none() {
    assert_eq!(time_spent(&document(Vec::new())), Duration::ZERO);
    let of = document(vec![applied(0.5), sample(2.0), ended(), applied(0.25), sample(1.25)]);
    assert_eq!(time_spent(&of), Duration::from_secs(4));
}

#[test]
fn an_invalid_time_does_not_panic() {
    assert_eq!(time_spent(&document(vec![sample(-3.0)])), Duration::ZERO);
    assert_eq!(time_spent(&document(vec![sample(f64::NAN)])), Duration::ZERO);
    assert_eq!(time_spent(&document(vec![sample(f64::INFINITY)])), Duration::ZERO);
}

#[test]
fn each_remaining_sample_takes_the_mean_time_of_earlier_ones() {
    let of = document(vec![applied(1.0), sample(2.0), sample(3.0)]);
    assert_eq!(remaining_time(&of, 2, 6), Some(Duration::from_secs(12)));
    assert_eq!(remaining_time(&of, 2, 2), Some(Duration::ZERO));
    assert_eq!(remaining_time(&of, 0, 6), None, "nothing is known yet");
    assert_eq!(remaining_time(&of, 3, 2), None, "more than there are");
}
