//! Journals of studies: what counts, what was dropped, and what is damaged.

use std::collections::BTreeMap;

use numalab_record::study::*;
use numalab_record::*;
use serde_json::json;

const PLAN: &str = "0123456789abcdef";

fn run(treatments: usize, aa: bool, warm_ups: usize) -> StudyRun {
    let treatment = |level| Treatment {
        name: format!("v={level}"),
        levels: vec![level],
        settings: BTreeMap::new(),
    };
    StudyRun {
        schema: Kind::Study.into(),
        version: "1".to_owned(),
        command: Vec::new(),
        started_unix_ms: 0,
        seed: 0,
        plan: PLAN.to_owned(),
        name: "s".to_owned(),
        question: "q?".to_owned(),
        note: None,
        backend: "this machine".to_owned(),
        factors: Vec::new(),
        workloads: Vec::new(),
        rules: Rules { aa, warm_ups, ..Rules::default() },
        treatments: (0..treatments).map(treatment).collect(),
        published: Vec::new(),
    }
}

fn sample(block: usize, treatment: usize, value: f64) -> SampleEntry {
    SampleEntry {
        block,
        treatment,
        arm: Arm::Main,
        workload: 0,
        attempt: 0,
        unix_ms: 0,
        took_s: 1.0,
        observation: Observation {
            readings: vec![Quantity::lower("t", "s").at(value)],
            ..Observation::default()
        },
    }
}

fn disturbed(sample: SampleEntry) -> SampleEntry {
    let load = Load::Throttled { events: 1 };
    let disturbances = vec![Disturbance::Load { on: LoadedMachine::Own, load }];
    let observation = Observation { disturbances, ..sample.observation };
    SampleEntry { observation, ..sample }
}

fn document(run: StudyRun, samples: Vec<SampleEntry>) -> StudyDocument {
    StudyDocument { run, journal: samples.into_iter().map(JournalEntry::Sample).collect() }
}

#[test]
fn the_first_clean_attempt_counts_or_the_last_where_none_is_clean() {
    let attempts = vec![
        disturbed(sample(0, 0, 1.0)),
        sample(0, 0, 2.0),
        sample(0, 0, 3.0),
        disturbed(sample(1, 0, 4.0)),
        disturbed(sample(1, 0, 5.0)),
    ];
    let document = document(run(1, false, 0), attempts);
    let values = |counted| document.cells(0, "t", counted).treatments.remove(0);
    assert_eq!(values(Counted::Undisturbed), [2.0, 5.0]);
    assert_eq!(values(Counted::First), [1.0, 4.0]);
    assert_eq!(document.counted(Counted::First).len(), 2);
    assert_eq!(document.samples().count(), 5);
}

#[test]
fn a_treatment_that_was_given_up_has_fewer_values_and_holds_up_no_block() {
    let mut document = document(run(3, false, 0), Vec::new());
    for block in 0..4 {
        for treatment in (0..3).filter(|treatment| *treatment != 2 || block < 2) {
            document.journal.push(JournalEntry::Sample(sample(block, treatment, block as f64)));
        }
    }
    assert_eq!(document.cells(0, "t", Counted::First).blocks, [0, 1], "its values are missing");
    document.journal.push(JournalEntry::Out { treatment: 2, from_block: 2 });
    assert_eq!(document.out(), BTreeMap::from([(2, 2)]));
    let cells = document.cells(0, "t", Counted::First);
    assert_eq!(cells.blocks, [0, 1, 2, 3]);
    assert_eq!(
        cells.treatments,
        [vec![0.0, 1.0, 2.0, 3.0], vec![0.0, 1.0, 2.0, 3.0], vec![0.0, 1.0]]
    );
    assert_eq!(cells.again, [0.0; 0]);
}

#[test]
fn a_block_without_the_baseline_once_more_counts_only_where_there_is_no_such_arm() {
    let again = SampleEntry { arm: Arm::Again, ..sample(0, 0, 9.0) };
    let samples = vec![sample(0, 0, 1.0), again, sample(1, 0, 2.0)];
    let with = document(run(1, true, 0), samples.clone()).cells(0, "t", Counted::First);
    assert_eq!((with.blocks, with.again, with.treatments), (vec![0], vec![9.0], vec![vec![1.0]]));
    let without = document(run(1, false, 0), samples).cells(0, "t", Counted::First);
    assert_eq!((without.blocks, without.treatments), (vec![0, 1], vec![vec![1.0, 2.0]]));
}

#[test]
fn warm_ups_and_other_workloads_and_metrics_are_left_out() {
    let other = SampleEntry { workload: 1, ..sample(2, 0, 7.0) };
    let document = document(run(1, false, 2), vec![sample(1, 0, 1.0), sample(2, 0, 2.0), other]);
    assert_eq!(document.cells(0, "t", Counted::First).blocks, [2]);
    assert_eq!(document.cells(1, "t", Counted::First).treatments, [[7.0]]);
    assert!(document.cells(2, "t", Counted::First).blocks.is_empty());
    assert!(document.cells(0, "T", Counted::First).blocks.is_empty());
}

#[test]
fn a_damaged_number_of_a_block_takes_no_time_and_no_other_block_along() {
    let far = vec![sample(0, 0, 1.0), sample(usize::MAX, 0, 2.0), sample(1 << 60, 0, 3.0)];
    let cells = document(run(1, false, 0), far).cells(0, "t", Counted::First);
    assert_eq!(cells.blocks, [0, 1 << 60, usize::MAX]);
    assert_eq!(cells.treatments, [[1.0, 3.0, 2.0]]);
    let none = document(run(1, false, 0), vec![sample(0, 7, 1.0)]);
    assert!(none.cells(0, "t", Counted::First).blocks.is_empty(), "no such treatment");
}

#[test]
fn entries_are_lines_that_name_their_kind() {
    let applied = Applied {
        block: 1,
        treatment: 2,
        arm: Arm::Again,
        took_s: 0.5,
        evidence: vec![Evidence::fact("kernel", "6.1"), Evidence::of("thp", "always", "never")],
    };
    let entries = [
        (
            JournalEntry::Applied(applied),
            json!({"entry": "applied", "block": 1, "treatment": 2, "arm": "again", "took_s": 0.5,
                "evidence": [{"what": "kernel", "found": "6.1"},
                    {"what": "thp", "wanted": "always", "found": "never"}]}),
        ),
        (
            JournalEntry::Out { treatment: 1, from_block: 3 },
            json!({"entry": "out", "treatment": 1, "from_block": 3}),
        ),
        (
            JournalEntry::Ended { reason: EndReason::BudgetSpent, unix_ms: 7 },
            json!({"entry": "ended", "reason": "budget-spent", "unix_ms": 7}),
        ),
        (
            JournalEntry::Ended { reason: EndReason::Failed("no".to_owned()), unix_ms: 7 },
            json!({"entry": "ended", "reason": {"failed": "no"}, "unix_ms": 7}),
        ),
        (
            JournalEntry::Sample(sample(1, 0, 2.0)),
            json!({"entry": "sample", "block": 1, "treatment": 0, "arm": "main", "workload": 0,
                "attempt": 0, "unix_ms": 0, "took_s": 1.0,
                "readings": [{"metric": "t", "unit": "s", "better": "lower", "value": 2.0}]}),
        ),
    ];
    for (entry, expected) in entries {
        assert_eq!(serde_json::to_value(&entry).unwrap(), expected);
        assert_eq!(serde_json::from_value::<JournalEntry>(expected).unwrap(), entry);
    }
}

#[test]
fn a_damaged_line_is_named_by_its_number_in_any_position() {
    let run = serde_json::to_string(&run(1, false, 0)).unwrap();
    let line = |entry: &JournalEntry| serde_json::to_string(entry).unwrap() + "\n";
    let whole = line(&JournalEntry::Sample(sample(0, 0, 1.0)));
    for damaged in ["{}", "\0", "nonsense", "{\"entry\":\"sample\"}", "[]"] {
        let text = format!("{whole}\n{damaged}\n{whole}");
        let error = StudyDocument::from_files(&run, &text).unwrap_err().to_string();
        assert!(error.starts_with("journal.jsonl, line 3: "), "{error}");
    }
    let other = JournalEntry::Began {
        plan: "another".to_owned(),
        unix_ms: 0,
        environment: Environment::default(),
        notices: Vec::new(),
    };
    let error = StudyDocument::from_files(&run, &(whole + &line(&other))).unwrap_err().to_string();
    let expected = format!("journal.jsonl, line 2: follows plan another, but run.json has {PLAN}");
    assert_eq!(error, expected);
    let error = StudyDocument::from_files("{", "").unwrap_err().to_string();
    assert!(error.starts_with("run.json cannot be read: "), "{error}");
}

#[test]
fn the_backend_of_studies_written_before_was_called_their_world() {
    let mut json = serde_json::to_value(run(1, true, 0)).unwrap();
    let backend = json.as_object_mut().unwrap().remove("backend").unwrap();
    json["world"] = backend;
    json["schema"] = "numalab/1".into();
    let read = StudyDocument::from_files(&json.to_string(), "").unwrap();
    assert_eq!(read.run, run(1, true, 0));
}

#[test]
fn a_machine_is_shared_once_most_of_six_first_attempts_were_disturbed_and_stays_so() {
    let found = |samples: &[bool]| {
        let mut machine = SharedMachine::default();
        for is_disturbed in samples {
            let clean = sample(0, 0, 1.0);
            machine.push(&if *is_disturbed { disturbed(clean) } else { clean });
        }
        machine.is_found()
    };
    assert!(!found(&[true; 5]));
    assert!(found(&[true; 6]));
    assert!(!found(&[true, true, true, false, false, false]), "half is not most");
    assert!(found(&[true, true, true, true, false, false]));
    assert!(found(&[[true; 6], [false; 6]].concat()), "it stays so");
    let again = SampleEntry { attempt: 1, ..disturbed(sample(0, 0, 1.0)) };
    assert!(!SharedMachine::of(std::iter::repeat_n(&again, 100)).is_found());
    assert!(is_shared(3, 2) && !is_shared(4, 2));
}
