//! `samples.csv`, `cells.jsonl` and the samples that count.

use numalab_record::*;
use proptest::prelude::*;

const LINE: &str = "a,latency,3,1.5,ns,17,2000,20,";
const COLUMNS: [&str; 9] =
    ["cell", "metric", "index", "value", "unit", "start_ns", "duration_ns", "work", "disturbed"];

fn parse(lines: &str) -> Result<Vec<Sample>, CsvError> {
    parse_samples(&format!("{CSV_HEADER}\n{lines}\n"))
}

/// Returns the line with other text in one column.
fn with(column: &str, text: &str) -> String {
    let at = COLUMNS.iter().position(|name| *name == column).expect("a column");
    let mut fields: Vec<&str> = LINE.split(',').collect();
    fields[at] = text;
    fields.join(",")
}

#[test]
fn every_column_is_read_into_its_field() {
    let line = with("disturbed", "steal 3 ms");
    let expected = Sample {
        cell: CellId("a".to_owned()),
        metric: Metric::Latency,
        index: 3,
        value: 1.5,
        start_ns: 17,
        duration_ns: 2000,
        work: 20,
        disturbed: Some("steal 3 ms".to_owned()),
    };
    assert_eq!(parse(&line).unwrap(), std::slice::from_ref(&expected));
    let mut written = String::new();
    write_sample(&mut written, &expected);
    assert_eq!(written, line + "\n");
    assert_eq!(parse(LINE).unwrap()[0].disturbed, None);
}

#[test]
fn each_column_that_is_not_a_number_is_named_with_the_line_and_its_text() {
    for column in ["index", "value", "start_ns", "duration_ns", "work"] {
        for text in ["", "x", "1 ns", "1;5"] {
            let error = parse(&format!("{LINE}\n{}", with(column, text))).unwrap_err();
            let expected = format!("line 3: {column} is `{text}`, expected a number");
            assert_eq!(error.to_string(), expected);
        }
    }
    for (column, text) in [("index", "-1"), ("index", "4294967296"), ("work", "1.5")] {
        assert!(parse(&with(column, text)).is_err(), "{column} {text}");
    }
    let error = parse(&with("metric", "Latency")).unwrap_err().to_string();
    assert_eq!(error, "line 2: metric is `Latency`, expected a metric such as latency");
}

#[test]
fn a_line_with_fewer_or_more_than_nine_columns_is_refused_whole() {
    let fields: Vec<&str> = LINE.split(',').collect();
    for few in 1..fields.len() {
        let line = fields[..few].join(",");
        let error = parse(&line).unwrap_err();
        let expected =
            CsvError::Field { line: 2, field: COLUMNS[few], found: line, expected: "nine columns" };
        assert_eq!(error, expected);
    }
    // Two lines without a newline between them, as a crash and a restart leave them.
    let joined = format!("{}{LINE}", &LINE[..12]);
    assert!(parse(&joined).is_err());
    let joined = format!("{LINE}{LINE}");
    let error = parse(&joined).unwrap_err().to_string();
    assert_eq!(error, format!("line 2: disturbed is `{joined}`, expected nine columns"));
}

#[test]
fn a_header_of_another_file_is_quoted_and_not_all_of_a_long_one() {
    for header in ["", " cell", "cell,metric"] {
        let error = parse_samples(&format!("{header}\n{LINE}\n")).unwrap_err();
        assert_eq!(error, CsvError::Header { found: header.to_owned() });
    }
    let error = parse_samples(&format!("{CSV_HEADER}\r\n")).unwrap_err();
    assert!(error.to_string().starts_with("line 1 is `cell,"), "{error}");
    let error = parse_samples(&format!("{}\n", "ä".repeat(10_000))).unwrap_err();
    assert_eq!(error, CsvError::Header { found: "ä".repeat(80) });
    assert_eq!(parse_samples(&format!("{CSV_HEADER}\n")).unwrap(), []);
}

proptest! {
    #[test]
    fn every_sample_that_is_written_is_one_line_that_reads_back(
        reason in proptest::option::of("[^,\n\r\"]{1,20}"),
        metric in 0..Metric::ALL.len(),
        (index, start_ns, work) in any::<(u32, u64, u64)>(),
    ) {
        let sample = Sample {
            cell: CellId("latency/random/4k/cpu0/node0/64M".to_owned()),
            metric: Metric::ALL[metric],
            index,
            value: f64::from(index) / 3.0,
            start_ns,
            duration_ns: work,
            work,
            disturbed: reason,
        };
        let mut line = String::new();
        write_sample(&mut line, &sample);
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(parse(line.trim_end_matches('\n')).unwrap(), vec![sample]);
    }
}

/// Returns a latency run that plans only these cells.
pub fn planned(plan: Vec<Cell>) -> Run {
    Run {
        schema: Kind::Run.into(),
        name: "latency".to_owned(),
        label: None,
        version: "1".to_owned(),
        command: Vec::new(),
        started_unix_ms: 0,
        seed: 0,
        precision: 0.01,
        budget_ns: 1,
        environment: Environment::default(),
        machine: numalab_topology::Machine::default(),
        survey: None,
        launch: None,
        plan,
    }
}

fn run() -> String {
    let worker = WorkerPlan { cpu: numalab_topology::CpuId(0), node: numalab_topology::NodeId(0) };
    let of = |size_bytes| {
        Cell::of(Experiment::Latency(LatencyCell {
            worker,
            size_bytes,
            pattern: AccessPattern::Random,
            pages: Pages::BASE_4K,
            team: Team::Serial,
        }))
    };
    serde_json::to_string(&planned(vec![of(4096), of(8192)])).unwrap()
}

const FIRST: &str = "latency/random/4k/cpu0/node0/4K";
const SECOND: &str = "latency/random/4k/cpu0/node0/8K";

fn document(cells: &str, samples: &str) -> Result<Document, DocumentError> {
    Document::from_files(&run(), cells, &format!("{CSV_HEADER}\n{samples}"))
}

#[test]
fn a_damaged_line_of_cells_is_named_by_its_number_empty_lines_counted() {
    let done = format!(r#"{{"cell":"{FIRST}","outcome":"precise","placements":[]}}"#);
    let whole = format!("{done}\n\n");
    let sample = format!("{FIRST},latency,0,1.5,ns,0,1,1,\n");
    assert_eq!(document(&whole, &sample).unwrap().cells[0].ended, Some(Outcome::Precise));
    for damaged in ["{", "null", "[]", r#"{"cell":"a","placements":[]}"#, "\0\0"] {
        let error = document(&format!("{whole}{damaged}\n"), "").unwrap_err().to_string();
        assert!(error.starts_with("cells.jsonl, line 3: "), "{damaged}: {error}");
        assert!(document(&format!("{whole}{damaged}"), "").is_ok(), "{damaged} has no end");
    }
    let error = document(&whole, "a,latency\n").unwrap_err().to_string();
    assert_eq!(error, "samples.csv: line 2: index is `a,latency`, expected nine columns");
}

#[test]
fn a_cell_that_ended_twice_ended_as_it_did_last_and_unplanned_ones_are_dropped() {
    let done = |cell, outcome| format!("{{\"cell\":\"{cell}\",{outcome},\"placements\":[]}}\n");
    let cells = [
        done(SECOND, r#""outcome":"budget-spent""#),
        done("another", r#""outcome":"precise""#),
        done(SECOND, r#""outcome":"failed","reason":"no memory""#),
    ];
    let read = document(&cells.concat(), "").unwrap();
    let failed = Outcome::Failed { reason: "no memory".to_owned() };
    let ended: Vec<_> = read.cells.iter().map(|cell| cell.ended.clone()).collect();
    assert_eq!(ended, [None, Some(failed)]);
}

#[test]
fn samples_go_to_their_cell_in_their_order_and_disturbed_ones_count_only_where_few_are_clean() {
    let line =
        |cell, value: u32, disturbed| format!("{cell},latency,0,{value},ns,0,1,1,{disturbed}\n");
    let of = |clean: u32, disturbed: u32| {
        let mut text = String::new();
        for value in 1..=disturbed {
            text += &line(SECOND, value, "steal");
        }
        for value in 100..100 + clean {
            text += &line(SECOND, value, "");
        }
        text += &line(FIRST, 7, "");
        text += &format!("{SECOND},bandwidth,0,1,GB/s,0,1,1,\n");
        let ended = |cell| format!(r#"{{"cell":"{cell}","outcome":"precise","placements":[]}}"#);
        let cells = format!("{}\n{}\n", ended(FIRST), ended(SECOND));
        let document = document(&cells, &text).unwrap();
        assert_eq!(document.cells[0].values(Metric::Latency), [7.0]);
        assert_eq!(document.cells[1].values(Metric::Bandwidth), [1.0]);
        document.cells[1].values(Metric::Latency)
    };
    assert_eq!(of(1, 3), [100.0]);
    assert_eq!(of(1, 4), [1.0, 2.0, 3.0, 4.0, 100.0]);
    assert_eq!(of(5, 15).len(), 5);
    assert_eq!(of(5, 16).len(), 21);
    assert_eq!(of(6, 100).len(), 6);
    assert_eq!(of(0, 1), [1.0]);
}
