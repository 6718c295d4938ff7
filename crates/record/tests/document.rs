//! Reading the files of a result directory returns the document that was written.

use std::collections::BTreeMap;

use numalab_record::*;
use numalab_topology::{CpuId, CpuSet, Machine, NodeId};

fn cell(id: &str, size_bytes: u64) -> Cell {
    Cell {
        id: CellId(id.into()),
        experiment: Experiment::Latency(LatencyCell {
            worker: WorkerPlan { cpu: CpuId(0), node: NodeId(0) },
            size_bytes,
            pattern: AccessPattern::Stride(256),
            pages: Pages::Transparent,
            team: Team::Serial,
        }),
    }
}

fn run() -> Run {
    Run {
        schema: Kind::Run.into(),
        name: "latency".into(),
        label: None,
        version: "0.1.0".into(),
        command: vec!["numalab".into(), "latency".into()],
        started_unix_ms: 1,
        seed: 7,
        precision: 0.01,
        budget_ns: 1_000_000,
        environment: Environment::default(),
        machine: Machine::default(),
        survey: None,
        launch: None,
        plan: vec![cell("a", 4096), cell("b", 8192)],
    }
}

fn finished(id: &str) -> Finished {
    let placement = Placement {
        cpu: CpuId(0),
        cpu_node: Some(NodeId(0)),
        affinity: CpuSet::from_iter([CpuId(0)]),
        memory_node: NodeId(0),
        address: 0x7f00_0000_0000,
        buffer_bytes: 4096,
        method: ProofMethod::MovePages,
        pages_checked: 1,
        pages_per_node: BTreeMap::from([(NodeId(0), 1)]),
        bytes_per_page_size: BTreeMap::from([(4096, 4096)]),
        isa: None,
    };
    Finished { cell: CellId(id.into()), outcome: Outcome::Precise, placements: vec![placement] }
}

fn sample(id: &str, value: f64) -> Sample {
    Sample {
        cell: CellId(id.into()),
        metric: Metric::Latency,
        index: 0,
        value,
        start_ns: 5,
        duration_ns: 6,
        work: 7,
        disturbed: None,
    }
}

fn files() -> (String, String, String) {
    let run = serde_json::to_string_pretty(&run()).expect("run serialises");
    let cells = format!("{}\n", serde_json::to_string(&finished("a")).expect("cell serialises"));
    let mut samples = format!("{CSV_HEADER}\n");
    write_sample(&mut samples, &sample("a", 1.25));
    write_sample(&mut samples, &sample("unplanned", 9.0));
    (run, cells, samples)
}

#[test]
fn a_directory_written_is_the_document_read() {
    let (run_text, cells, samples) = files();
    let document = Document::from_files(&run_text, &cells, &samples).expect("readable");
    assert_eq!(document.run, run());
    assert_eq!(document.cells[0].ended, Some(Outcome::Precise));
    assert_eq!(document.cells[0].placements, finished("a").placements);
    assert_eq!(document.cells[0].values(Metric::Latency), [1.25]);
    assert_eq!(document.cells[1].ended, None);
}

#[test]
fn a_document_survives_json() {
    let (run_text, cells, samples) = files();
    let document = Document::from_files(&run_text, &cells, &samples).expect("readable");
    let json = serde_json::to_string(&document).expect("serialises");
    assert_eq!(serde_json::from_str::<Document>(&json).expect("reads back"), document);
}

#[test]
fn a_line_of_cells_cut_off_by_a_crash_is_dropped() {
    let (run_text, cells, samples) = files();
    let cut = format!("{cells}{}", &cells[..cells.len() / 2]);
    let document = Document::from_files(&run_text, &cut, &samples).expect("readable");
    assert_eq!(document.cells[0].ended, Some(Outcome::Precise));
}

#[test]
fn results_of_another_schema_are_refused_by_its_name() {
    let (run_text, cells, samples) = files();
    let other = run_text.replace(Kind::Run.schema(), "numalab/99");
    let error = Document::from_files(&other, &cells, &samples).expect_err("unknown schema");
    let expected = "run.json has schema `numalab/99`, expected one such as `numalab/run-2`";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn every_difference_of_two_environments_is_named_once() {
    let facts = |pairs: &[(&str, &str)]| Environment {
        facts: pairs.iter().map(|(name, text)| ((*name).into(), Fact::read(name, text))).collect(),
    };
    let here = facts(&[("kernel", "6.1"), ("thp", "always")]);
    let there = facts(&[("kernel", "6.12"), ("thp", "always"), ("governor", "performance")]);
    let [performance, old, new] = ["performance", "6.1", "6.12"].map(Fact::from);
    assert_eq!(
        here.differences(&there),
        [("governor", None, Some(&performance)), ("kernel", Some(&old), Some(&new))]
    );
}

#[test]
fn facts_that_change_by_themselves_do_not_distinguish_environments() {
    let lasting = |name, text| Environment::lasting(name, &Fact::read(name, text));
    assert_eq!(lasting("load_average", "1"), None);
    assert_eq!(lasting("huge_pages_2048kb", "8").as_deref(), Some("8"));
    assert_eq!(lasting("huge_pages_2048kb_free", "3"), None);
    assert_eq!(lasting("memory_total_kb", "263921388").as_deref(), Some("252 GiB"));
    assert_eq!(lasting("kernel", "6.1.0 (x)").as_deref(), Some("6.1.0 (x)"));
    let facts = |load: &str, pages: &str, memory: &str| Environment {
        facts: [("load_average", load), ("huge_pages_2048kb", pages), ("memory_total_kb", memory)]
            .map(|(name, text)| (name.into(), Fact::read(name, text)))
            .into(),
    };
    let here = facts("1", "7", "263921388");
    assert_eq!(here.differences(&facts("2", "7", "263921300")), []);
    assert_eq!(here.differences(&facts("2", "7 (7 free)", "263921300")), [], "of 0.1.0");
    let fewer = facts("2", "6", "263921300");
    let [seven, six] = [7, 6].map(Fact::Count);
    let expected = [("huge_pages_2048kb", Some(&seven), Some(&six))];
    assert_eq!(here.differences(&fewer), expected);
}

#[test]
fn facts_are_typed_in_json_and_the_texts_of_0_1_0_are_read_as_what_they_are() {
    let old = r#"{"clock_invariant":"yes","cpu_quota":"1.5","isolated_cpus":"2","kernel":"6.1",
        "memory_modules":"2 in 4 slots","memory_total_kb":"996240","tool_x":"yes"}"#;
    let environment: Environment = serde_json::from_str(old).unwrap();
    let written = serde_json::to_value(&environment).unwrap();
    let typed = serde_json::json!({"clock_invariant": true, "cpu_quota": 1.5, "isolated_cpus": "2",
        "kernel": "6.1", "memory_modules": "2 in 4 slots", "memory_total_kb": 996_240,
        "tool_x": "yes"});
    assert_eq!(written, typed);
    assert_eq!(serde_json::from_value::<Environment>(written).unwrap(), environment);
    let now = Environment {
        facts: [
            ("clock_invariant", Fact::Flag(true)),
            ("cpu_quota", Fact::Number(1.5)),
            ("isolated_cpus", "2".into()),
            ("kernel", "6.1".into()),
            ("memory_modules", Fact::Count(2)),
            ("memory_total_kb", Fact::Count(996_241)),
            ("tool_x", "yes".into()),
        ]
        .map(|(name, fact)| (name.to_owned(), fact))
        .into(),
    };
    assert_eq!(environment.differences(&now), [], "the same system");
}
