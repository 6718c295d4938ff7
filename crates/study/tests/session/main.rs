//! Sessions in a backend with scripted failures: finished samples are kept, the former state is
//! restored, and the error is named.

mod early;
mod ends;
mod journal;
mod lab;

use numalab_record::study::{Counted, Disturbance, EndReason, JournalEntry, Load, LoadedMachine};
use numalab_study::{Journal, SessionError};

use lab::{Judge, Lab, STUDY, Scripted, failed};

fn other_load() -> Disturbance {
    let load = Load::Foreign { foreign_ms: 120, of_ms: 2000 };
    Disturbance::Load { on: LoadedMachine::Own, load }
}

#[test]
fn samples_are_repeated_only_until_a_machine_is_known_to_be_shared() {
    let study = STUDY.replace("blocks = 2", "blocks = 6").replace("repeats = 0", "repeats = 2");
    let taken = |disturbance| {
        let lab = Lab::of(&study);
        let backend = Scripted { disturbance, ..Scripted::new(None, true) };
        assert!(matches!(lab.run(&backend), Ok(EndReason::Done)));
        lab.samples()
    };
    assert_eq!(taken(None), 12);
    // Five cells three times, and the sixth once: then it is known.
    assert_eq!(taken(Some(other_load())), 5 * 3 + 7);
    // A guest that fails is tried again up to the limit.
    let guest = "g01".to_owned();
    assert_eq!(taken(Some(Disturbance::Guest { guest, reason: None })), 12 * 3);
}

#[test]
fn a_dropped_treatment_is_not_tried_again_and_without_any_the_study_ends() {
    let study = STUDY.replace("[1, 2]", "[1, 2, 3]").replace("blocks = 2", "blocks = 4");
    let lab = Lab::of(&study);
    let two_out = Judge { after_samples: 6, out: &[0, 2] };
    let backend = Scripted::new(None, true);
    assert_eq!(lab.judged(&backend, two_out).unwrap(), EndReason::Done, "the baseline stays");
    let document = numalab_study::read(&lab.results().unwrap()).unwrap();
    assert_eq!(document.out(), [(2, 2)].into());
    let cells = document.cells(0, "t", Counted::Undisturbed);
    let columns: Vec<usize> = cells.treatments.iter().map(Vec::len).collect();
    assert_eq!((cells.blocks, columns), (vec![0, 1, 2, 3], vec![4, 4, 2]));

    let lab = Lab::of(&study);
    let all_out = Judge { after_samples: 3, out: &[1, 2] };
    assert_eq!(lab.judged(&backend, all_out).unwrap(), EndReason::NoneLeft);
    assert_eq!(lab.samples(), 3);
    assert_eq!(lab.resume(&backend).unwrap(), EndReason::NoneLeft);
    assert_eq!(lab.samples(), 3, "nothing is left to be gone on with");
}

#[test]
fn a_resumed_study_stays_on_its_shared_machine() {
    let study = STUDY.replace("blocks = 2", "blocks = 4").replace("repeats = 0", "repeats = 1");
    let lab = Lab::of(&study);
    // One preparation; then in each visit a treatment, and five cells sampled twice, the sixth
    // once.
    let killed =
        Scripted { disturbance: Some(other_load()), ..Scripted::new(Some(1 + 6 + 11), true) };
    assert!(lab.run(&killed).is_err());
    assert_eq!(lab.samples(), 11);
    let backend = Scripted { disturbance: Some(other_load()), ..Scripted::new(None, true) };
    assert!(matches!(lab.resume(&backend), Ok(EndReason::Done)));
    assert_eq!(lab.samples(), 11 + 2, "nothing is taken again");
}

/// One preparation, then in each of four visits a treatment and a sample.
const CALLS: usize = 9;

#[test]
fn no_sample_is_lost_and_everything_is_restored_once_whichever_call_fails() {
    for fails_at in 0..CALLS {
        let lab = Lab::open();
        let backend = Scripted::new(Some(fails_at), true);
        let error = lab.run(&backend).unwrap_err().to_string();
        let calls = backend.calls.borrow();
        assert_eq!(calls.last(), Some(&"restore"), "{fails_at}: {calls:?}");
        assert_eq!(calls.iter().filter(|call| **call == "restore").count(), 1, "{calls:?}");
        let failing = calls[fails_at];
        assert_eq!(error, format!("call {fails_at}: {failing}: as scripted"));
        let finished = calls[..fails_at].iter().filter(|call| **call == "sample").count();
        assert_eq!(lab.samples(), finished, "{calls:?}");
        match lab.entries().last() {
            None => assert_eq!(fails_at, 0, "a study that was prepared has a journal"),
            Some(JournalEntry::Ended { reason: EndReason::Failed(reason), .. }) => {
                assert_eq!(*reason, error);
            }
            Some(other) => panic!("{other:?}"),
        }
        if fails_at > 0 {
            let whole = Scripted::new(None, true);
            assert_eq!(lab.resume(&whole).unwrap(), EndReason::Done);
            assert_eq!(lab.samples(), 4, "the rest is taken, and nothing twice");
        }
    }
}

#[test]
fn a_failed_restore_is_the_error_with_the_earlier_one() {
    for fails_at in 0..CALLS {
        let backend = Scripted::new(Some(fails_at), false);
        let error = Lab::open().run(&backend).unwrap_err();
        let name = backend.calls.borrow()[fails_at];
        let SessionError::NotRestored { restore, cause } = &error else { panic!("{error}") };
        assert_eq!(*restore, failed("knob k"));
        let cause = cause.as_ref().map(ToString::to_string);
        assert_eq!(cause, Some(format!("call {fails_at}: {name}: as scripted")));
        assert!(error.to_string().starts_with("could not be restored: knob k: "), "{error}");
    }
}

#[test]
fn a_finished_study_fails_if_it_cannot_be_restored() {
    let lab = Lab::open();
    let error = lab.run(&Scripted::new(None, false)).unwrap_err();
    let SessionError::NotRestored { cause, .. } = &error else { panic!("{error}") };
    assert!(cause.is_none(), "{error}");
    assert_eq!(lab.samples(), 4);
    let entries = lab.entries();
    let Some(JournalEntry::Ended { reason: EndReason::Failed(reason), .. }) = entries.last() else {
        panic!("{entries:?}")
    };
    assert!(reason.contains("knob k"), "{reason}");
}

#[test]
fn a_backend_is_restored_if_the_journal_cannot_be_created() {
    let lab = Lab::open();
    let backend = Scripted::new(None, true);
    let none = || Journal::resume(&lab.directory.path().join("none"));
    assert!(matches!(
        lab.session(Box::new(backend.clone()), none, Judge::default()),
        Err(SessionError::Journal(_))
    ));
    assert_eq!(*backend.calls.borrow(), ["prepare", "restore"]);
}

#[test]
fn a_backend_is_restored_if_the_environment_differs() {
    let lab = Lab::open();
    lab.run(&Scripted::new(Some(3), true)).unwrap_err();
    let journal = lab.results().unwrap().join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let other = text.replacen("\"environment\":{", "\"environment\":{\"kernel\":\"2.6\"", 1);
    std::fs::write(&journal, other).unwrap();
    let backend = Scripted::new(None, true);
    let error = lab.resume(&backend).unwrap_err();
    assert!(matches!(error, SessionError::OtherEnvironment { .. }), "{error}");
    assert_eq!(*backend.calls.borrow(), ["prepare", "restore"]);
}
