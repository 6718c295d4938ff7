//! The ends of sessions: interrupted, precise, out of time; and the calls of an observer.

use std::time::Duration;

use numalab_host::Interrupt;
use numalab_record::study::{Counted, Disturbance, EndReason, JournalEntry, StudyDocument};
use numalab_study::{Journal, Observer, Session, Started};

use super::lab::{Lab, STUDY, Scripted};

/// Records its calls, and finds the study precise after a number of samples.
#[derive(Default)]
struct Heard {
    sampled: Vec<(usize, usize)>,
    starts: usize,
    rests: usize,
    shared: usize,
    precise_after: Option<usize>,
    interrupt_after: Option<(usize, Interrupt)>,
}

impl Observer for Heard {
    fn starting(&mut self, _notices: &[numalab_record::study::Notice]) {
        self.starts += 1;
    }

    fn sampled(&mut self, done: usize, in_all: usize) {
        self.sampled.push((done, in_all));
        if let Some((after, interrupt)) = &self.interrupt_after
            && done >= *after
        {
            interrupt.request();
        }
    }

    fn first_block(&mut self, _rest: Duration) {
        self.rests += 1;
    }

    fn machine_is_shared(&mut self) {
        self.shared += 1;
    }

    fn is_precise(&mut self, document: &StudyDocument) -> bool {
        self.precise_after.is_some_and(|after| document.samples().count() >= after)
    }
}

fn lab(rules: &str) -> Lab {
    Lab::of(&STUDY.replace("blocks = 2", rules))
}

fn run(lab: &Lab, heard: &mut Heard, interrupt: &Interrupt, backend: &Scripted) -> EndReason {
    let started = Started { version: "0".to_owned(), command: Vec::new(), unix_ms: 1 };
    let run = lab.plan.run("a script".to_owned(), started);
    let journal = || Journal::create(lab.directory.path(), run, STUDY);
    let session = Session::new(&lab.plan, interrupt);
    session.run(Box::new(backend.clone()), journal, heard).unwrap().1
}

fn quiet() -> Scripted {
    Scripted::new(None, true)
}

#[test]
fn an_observer_is_called_at_the_start_for_each_cell_and_after_the_first_block() {
    let (lab, mut heard) = (lab("blocks = 2"), Heard::default());
    assert_eq!(run(&lab, &mut heard, &Interrupt::never(), &quiet()), EndReason::Done);
    assert_eq!(heard.sampled, [(1, 4), (2, 4), (3, 4), (4, 4)]);
    assert_eq!((heard.starts, heard.rests, heard.shared), (1, 1, 0));
}

#[test]
fn an_interrupt_ends_a_study_after_the_current_sample_and_it_can_be_resumed() {
    let (lab, interrupt) = (lab("blocks = 3"), Interrupt::never());
    let interrupt_after = Some((2, interrupt.clone()));
    let mut heard = Heard { interrupt_after, ..Heard::default() };
    let backend = quiet();
    assert_eq!(run(&lab, &mut heard, &interrupt, &backend), EndReason::Interrupted);
    assert_eq!(lab.samples(), 2);
    assert_eq!(backend.calls.borrow().last(), Some(&"restore"));
    let entries = lab.entries();
    let ended = Some(&EndReason::Interrupted);
    let last = entries.last().and_then(|entry| match entry {
        JournalEntry::Ended { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(last, ended);
    assert_eq!(lab.resume(&quiet()).unwrap(), EndReason::Done);
    assert_eq!(lab.samples(), 6);
}

#[test]
fn a_study_that_is_precise_ends_after_its_block_if_its_rules_ask() {
    let precise = || Heard { precise_after: Some(3), ..Heard::default() };
    let asking = lab("blocks = 5\nprecision-percent = 1.0");
    let ended = run(&asking, &mut precise(), &Interrupt::never(), &quiet());
    assert_eq!((ended, asking.samples()), (EndReason::Precise, 4));
    let not_asking = lab("blocks = 3");
    let ended = run(&not_asking, &mut precise(), &Interrupt::never(), &quiet());
    assert_eq!((ended, not_asking.samples()), (EndReason::Done, 6));
}

#[test]
fn warm_ups_do_not_make_a_study_precise() {
    let study = STUDY
        .replace("blocks = 2\nwarm-ups = 0", "blocks = 3\nwarm-ups = 2\nprecision-percent = 1.0");
    let lab = Lab::of(&study);
    let mut heard = Heard { precise_after: Some(1), ..Heard::default() };
    let ended = run(&lab, &mut heard, &Interrupt::never(), &quiet());
    assert_eq!((ended, lab.samples()), (EndReason::Precise, 6));
    let document = numalab_study::read(&lab.results().unwrap()).unwrap();
    let cells = document.cells(0, "t", Counted::Undisturbed);
    assert_eq!(cells.blocks, [2], "and are not judged");
}

#[test]
fn a_cell_that_stays_disturbed_is_tried_up_to_the_limit_of_the_rules() {
    let study = STUDY.replace("repeats = 0", "repeats = 2");
    let lab = Lab::of(&study);
    let guest = Disturbance::Guest { guest: "g01".to_owned(), reason: None };
    let backend = Scripted { disturbance: Some(guest), ..quiet() };
    run(&lab, &mut Heard::default(), &Interrupt::never(), &backend);
    let document = numalab_study::read(&lab.results().unwrap()).unwrap();
    let attempts: Vec<usize> = document.samples().map(|of| of.attempt).collect();
    assert_eq!(attempts, [0, 1, 2].repeat(4));
}

#[test]
fn the_repeated_baseline_is_a_separate_cell() {
    let lab = Lab::of(&STUDY.replace("aa = false", "aa = true"));
    let mut heard = Heard::default();
    run(&lab, &mut heard, &Interrupt::never(), &quiet());
    assert_eq!((lab.samples(), heard.sampled.last()), (6, Some(&(6, 6))));
}
