//! The files of a study, complete and cut.

use std::collections::BTreeMap;

use numalab_record::study::*;
use numalab_record::tiering::TierLook;
use numalab_record::{Environment, Kind};

fn run() -> StudyRun {
    StudyRun {
        schema: Kind::Study.into(),
        version: "0.1.0".to_owned(),
        command: vec!["numalab".to_owned()],
        started_unix_ms: 1,
        seed: 2,
        plan: "0123456789abcdef".to_owned(),
        name: "s".to_owned(),
        question: "q?".to_owned(),
        note: None,
        backend: "this machine".to_owned(),
        factors: Vec::new(),
        workloads: Vec::new(),
        rules: Rules { warm_ups: 1, ..Rules::default() },
        treatments: (0..2).map(treatment).collect(),
        published: Vec::new(),
    }
}

fn treatment(level: usize) -> Treatment {
    let value = Setting::Integer(i64::try_from(level).expect("small"));
    let settings = BTreeMap::from([("v".to_owned(), value)]);
    Treatment { name: format!("v={level}"), levels: vec![level], settings }
}

fn sample(
    block: usize,
    (treatment, arm): (usize, Arm),
    attempt: usize,
    value: f64,
) -> JournalEntry {
    let quantity = Quantity::lower("t", "s");
    let disturbed = value >= 100.0;
    JournalEntry::Sample(SampleEntry {
        block,
        treatment,
        arm,
        workload: 0,
        attempt,
        unix_ms: 5,
        took_s: 0.25,
        observation: Observation {
            readings: vec![Reading { quantity, value }],
            counters: BTreeMap::from([("numa_hint_faults".to_owned(), 3.0)]),
            evidence: vec![Evidence::of("v", "1", "1")],
            disturbances: disturbed.then_some(DISTURBED).into_iter().collect(),
            guests: vec![GuestPlace {
                guest: "g01".to_owned(),
                home: Some(0),
                memory: vec![(Some(0), 7), (None, 2)],
                cpus: None,
            }],
            looks: vec![TierLook {
                at_ns: 7,
                latency_ns: 300.5,
                fast_pages: 1,
                slow_pages: 2,
                tier_pages: Vec::new(),
                marked_pages: 3,
            }],
            files: vec![CachedFile {
                path: "/data/model".to_owned(),
                dropped_bytes: 1 << 20,
                kept_bytes: 7,
            }],
        },
    })
}

const DISTURBED: Disturbance =
    Disturbance::Load { on: LoadedMachine::Own, load: Load::Foreign { foreign_ms: 1, of_ms: 2 } };

fn journal() -> Vec<JournalEntry> {
    let facts = BTreeMap::from([("kernel".to_owned(), "6.1 \"x\"\n".into())]);
    let environment = Environment { facts };
    let mut entries = vec![JournalEntry::Began {
        plan: run().plan,
        unix_ms: 1,
        environment,
        notices: vec![Notice::PolicyWithoutEffect],
    }];
    let visits = [(0, Arm::Main), (1, Arm::Main), (0, Arm::Again)];
    for block in 0..3 {
        for visit in visits {
            entries.push(sample(block, visit, 0, 1.5));
        }
    }
    // In block 1 the other treatment was disturbed at first; in block 3 it is missing.
    entries.push(sample(3, (0, Arm::Main), 0, 1.5));
    entries[5] = sample(1, (1, Arm::Main), 0, 150.0);
    entries.insert(6, sample(1, (1, Arm::Main), 1, 1.25));
    entries.push(JournalEntry::Ended { reason: EndReason::Failed("no".to_owned()), unix_ms: 9 });
    entries
}

fn lines(entries: &[JournalEntry]) -> String {
    entries.iter().map(|entry| serde_json::to_string(entry).expect("JSON") + "\n").collect()
}

fn read(journal: &str) -> Result<StudyDocument, StudyError> {
    StudyDocument::from_files(&serde_json::to_string(&run()).expect("JSON"), journal)
}

#[test]
fn written_documents_are_read_back() {
    let document = read(&lines(&journal())).expect("a journal");
    assert_eq!(document, StudyDocument { run: run(), journal: journal() });
}

#[test]
fn every_cut_of_a_journal_gives_its_whole_lines() {
    let text = lines(&journal());
    for end in 0..=text.len() {
        let whole = text[..end].matches('\n').count();
        let document = read(&text[..end]).expect("a cut journal is a journal");
        assert_eq!(document.journal[..], journal()[..whole]);
    }
}

#[test]
fn a_damaged_line_another_plan_and_another_schema_are_named() {
    let mut text = lines(&journal());
    text.insert_str(0, "{\"entry\":\"nonsense\"}\n");
    let error = read(&text).expect_err("damaged").to_string();
    assert!(error.starts_with("journal.jsonl, line 1: ") && error.contains("nonsense"), "{error}");
    let other = lines(&journal()).replace("0123456789abcdef", "ffff");
    let error = read(&other).expect_err("another plan").to_string();
    assert!(error.contains("follows plan ffff, but run.json has 0123456789abcdef"), "{error}");
    let run =
        serde_json::to_string(&run()).expect("JSON").replace(Kind::Study.schema(), "numalab/9");
    let error = StudyDocument::from_files(&run, "").expect_err("another schema").to_string();
    assert!(error.contains("numalab/9"), "{error}");
}

#[test]
fn blocks_that_are_whole_count_and_warm_ups_do_not() {
    let document = read(&lines(&journal())).expect("a journal");
    let cells = document.cells(0, "t", Counted::Undisturbed);
    assert_eq!(cells.blocks, [1, 2]);
    assert_eq!(cells.treatments, [vec![1.5, 1.5], vec![1.25, 1.5]]);
    assert_eq!(cells.again, [1.5, 1.5]);
    let first = document.cells(0, "t", Counted::First);
    assert_eq!(first.treatments[1], [150.0, 1.5]);
    assert!(document.cells(0, "other", Counted::First).blocks.is_empty());
}

#[test]
fn where_every_attempt_was_disturbed_the_last_counts() {
    let mut entries = journal();
    entries[6] = sample(1, (1, Arm::Main), 1, 160.0);
    let document = read(&lines(&entries)).expect("a journal");
    assert_eq!(document.cells(0, "t", Counted::Undisturbed).treatments[1], [160.0, 1.5]);
}

#[test]
fn a_metrics_own_margin_overrides_the_common_one() {
    let mut rules = Rules::default();
    rules.margins.insert("w.t".to_owned(), 7.0);
    assert_eq!((rules.margin_of("w", "t"), rules.margin_of("w", "u")), (7.0, 2.0));
}
