//! The directory of a run: its content, refused content, and resuming a run that was cut at any
//! byte. The machine and its samples are made up.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use numalab_host::{Classed, ErrorClass};
use numalab_measure::{RunRecorder, Store, StoreError, directory_name, read};
use numalab_record::{
    Cell, CoreCell, Environment, Experiment, Finished, Kind, Metric, Outcome, Placement,
    ProofMethod, Run, Sample,
};
use numalab_topology::{CpuId, Machine, NodeId};
use tempfile::TempDir;

fn core(cpu: u32) -> Cell {
    Cell::of(Experiment::Core(CoreCell { cpu: CpuId(cpu) }))
}

fn run(label: Option<&str>) -> Run {
    Run {
        schema: Kind::Run.into(),
        name: "measure".to_owned(),
        label: label.map(str::to_owned),
        version: "1.2.3".to_owned(),
        command: vec!["numalab".to_owned(), "measure".to_owned()],
        started_unix_ms: 1_000,
        seed: 7,
        precision: 0.01,
        budget_ns: 60_000_000_000,
        environment: environment("6.8"),
        machine: Machine::default(),
        survey: None,
        launch: None,
        plan: Vec::new(),
    }
}

fn environment(kernel: &str) -> Environment {
    Environment { facts: BTreeMap::from([("kernel".to_owned(), kernel.into())]) }
}

fn finished(cell: &Cell, outcome: Outcome) -> Finished {
    let placement = Placement {
        cpu: CpuId(0),
        cpu_node: Some(NodeId(0)),
        affinity: "0".parse().unwrap(),
        memory_node: NodeId(0),
        address: 4096,
        buffer_bytes: 4096,
        method: ProofMethod::MovePages,
        pages_checked: 1,
        pages_per_node: BTreeMap::from([(NodeId(0), 1)]),
        bytes_per_page_size: BTreeMap::from([(4096, 4096)]),
        isa: None,
    };
    Finished { cell: cell.id.clone(), outcome, placements: vec![placement] }
}

fn samples(cell: &Cell, count: u32) -> Vec<Sample> {
    let sample = |index: u32| Sample {
        cell: cell.id.clone(),
        metric: Metric::CoreClock,
        index,
        value: 2.5 + f64::from(index) / 8.0,
        start_ns: u64::from(index) * 10,
        duration_ns: 9,
        work: 3,
        disturbed: (index == 1).then(|| "off-cpu".to_owned()),
    };
    (0..count).map(sample).collect()
}

/// A run of three cells in its directory: one precise, one out of time, one failed.
struct Kept {
    _parent: TempDir,
    directory: PathBuf,
    cells: [Cell; 3],
}

impl Kept {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let cells = [0, 1, 2].map(core);
        let mut recorder = RunRecorder::in_directory(run(None), parent.path()).unwrap();
        recorder.extend_plan(&cells).unwrap();
        let failed = Outcome::Failed { reason: "no memory".to_owned() };
        let outcomes = [Outcome::Precise, Outcome::BudgetSpent, failed];
        for (cell, outcome) in cells.iter().zip(outcomes) {
            recorder.record(&finished(cell, outcome), &samples(cell, 2)).unwrap();
        }
        let directory = recorder.directory().unwrap().to_owned();
        Self { _parent: parent, directory, cells }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.join(name)).unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.directory.join(name), bytes).unwrap();
    }
}

fn done(recorder: &RunRecorder) -> Vec<String> {
    recorder.done().into_iter().map(|id| id.0).collect()
}

#[test]
fn a_directory_is_named_by_kind_time_and_label() {
    assert_eq!(directory_name(&run(None)), "measure-19700101-000001");
    assert_eq!(directory_name(&run(Some("my box"))), "measure-19700101-000001-my_box");
    assert_eq!(directory_name(&run(Some("../x"))), "measure-19700101-000001-.._x");
    let long = "y".repeat(200);
    let name = directory_name(&run(Some(&long)));
    assert_eq!(name, format!("measure-19700101-000001-{}", "y".repeat(80)));
}

#[test]
fn stored_results_are_read_again_completely() {
    let kept = Kept::new();
    let document = read(&kept.directory).unwrap();
    assert_eq!(document.run.plan, kept.cells);
    assert_eq!((document.run.seed, document.run.version.as_str()), (7, "1.2.3"));
    let found: Vec<_> = document.cells.iter().map(|of| of.ended.clone().unwrap()).collect();
    let failed = Outcome::Failed { reason: "no memory".to_owned() };
    assert_eq!(found, [Outcome::Precise, Outcome::BudgetSpent, failed]);
    for (result, cell) in document.cells.iter().zip(&kept.cells) {
        assert_eq!(result.samples, samples(cell, 2));
        assert_eq!(result.placements, finished(cell, Outcome::Precise).placements);
    }
}

#[test]
fn a_resumed_run_keeps_its_results_and_repeats_only_failed_cells() {
    let kept = Kept::new();
    let before = read(&kept.directory).unwrap();
    let recorder = RunRecorder::resumed(&kept.directory).unwrap();
    assert_eq!(done(&recorder), ["core/cpu0", "core/cpu1"]);
    assert_eq!(recorder.document(), before);
}

#[test]
fn a_repeated_cell_has_its_last_outcome() {
    let kept = Kept::new();
    let mut recorder = RunRecorder::resumed(&kept.directory).unwrap();
    recorder.record(&finished(&kept.cells[2], Outcome::Precise), &[]).unwrap();
    let recorder = {
        drop(recorder);
        RunRecorder::resumed(&kept.directory).unwrap()
    };
    assert_eq!(done(&recorder), ["core/cpu0", "core/cpu1", "core/cpu2"]);
}

#[test]
fn a_plan_grows_only_by_new_cells() {
    let kept = Kept::new();
    let mut recorder = RunRecorder::resumed(&kept.directory).unwrap();
    recorder.extend_plan(&[core(1), core(5), core(0)]).unwrap();
    let ids: Vec<String> =
        read(&kept.directory).unwrap().run.plan.into_iter().map(|cell| cell.id.0).collect();
    assert_eq!(ids, ["core/cpu0", "core/cpu1", "core/cpu2", "core/cpu5"]);
}

/// Reports whether this cut is tested: those around the ends of lines and at some bytes within,
/// since each resumption waits for the disk.
fn is_resumed(whole: &[u8], cut: usize) -> bool {
    let is_end = |at: usize| whole.get(at) == Some(&b'\n');
    cut.is_multiple_of(53) || cut == whole.len() || is_end(cut) || is_end(cut + 1)
}

/// A crash can end the last write to either file anywhere.
#[test]
fn a_run_with_cells_cut_at_any_byte_is_resumed() {
    let kept = Kept::new();
    let (whole, samples) = (kept.bytes("cells.jsonl"), kept.bytes("samples.csv"));
    let ends: Vec<usize> =
        (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
    for cut in (0..=whole.len()).filter(|cut| is_resumed(&whole, *cut)) {
        kept.write("cells.jsonl", &whole[..cut]);
        kept.write("samples.csv", &samples);
        let recorder = RunRecorder::resumed(&kept.directory)
            .unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let lines = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(done(&recorder).len(), lines.min(2), "cut at {cut}");
        let left = kept.bytes("cells.jsonl");
        let kept_bytes = ends.iter().rev().find(|end| **end <= cut).copied().unwrap_or(0);
        assert_eq!(left, whole[..kept_bytes], "cut at {cut}: the rest of the line is gone");
        let left = String::from_utf8(kept.bytes("samples.csv")).unwrap();
        assert_eq!(left.lines().count(), 1 + 2 * lines, "cut at {cut}: two samples a cell");
    }
}

/// Not a crash but a truncated copy: a cell without all its samples is not finished.
#[test]
fn samples_cut_at_any_byte_leave_the_complete_cells() {
    let kept = Kept::new();
    let (whole, cells) = (kept.bytes("samples.csv"), kept.bytes("cells.jsonl"));
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in header..=whole.len() {
        kept.write("samples.csv", &whole[..cut]);
        kept.write("cells.jsonl", &cells);
        let document =
            read(&kept.directory).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let lines = whole[header..cut].iter().filter(|byte| **byte == b'\n').count();
        for (at, result) in document.cells.iter().enumerate() {
            let is_whole = lines >= 2 * (at + 1);
            assert_eq!(result.ended.is_some(), is_whole, "cut at {cut}");
            assert_eq!(result.samples.len(), if is_whole { 2 } else { 0 }, "cut at {cut}");
        }
        if is_resumed(&whole, cut) {
            let mut recorder = RunRecorder::resumed(&kept.directory).unwrap();
            assert_eq!(recorder.document(), document, "cut at {cut}");
            let again = finished(&kept.cells[0], Outcome::Precise);
            recorder.record(&again, &samples(&kept.cells[0], 1)).unwrap();
            let read = read(&kept.directory).unwrap();
            assert_eq!(read.cells[0].samples.len(), 1, "cut at {cut}: the last attempt counts");
            assert_eq!(read.cells[1..], document.cells[1..], "cut at {cut}");
        }
    }
}

#[test]
fn samples_of_an_unfinished_cell_are_removed() {
    let kept = Kept::new();
    let before = read(&kept.directory).unwrap();
    let mut text = kept.bytes("samples.csv");
    let complete = text.len();
    for sample in samples(&kept.cells[1], 3) {
        let mut line = String::new();
        numalab_record::write_sample(&mut line, &sample);
        text.extend_from_slice(line.as_bytes());
    }
    kept.write("samples.csv", &text);
    assert_eq!(read(&kept.directory).unwrap(), before);
    assert_eq!(RunRecorder::resumed(&kept.directory).unwrap().document(), before);
    assert_eq!(kept.bytes("samples.csv").len(), complete);
}

#[test]
fn results_without_the_ends_of_cells_are_read_and_resumed() {
    let kept = Kept::new();
    let before = read(&kept.directory).unwrap();
    let lines: String = before
        .cells
        .iter()
        .take(2)
        .map(|result| {
            let old = finished(&result.cell, result.ended.clone().unwrap());
            serde_json::to_string(&old).unwrap() + "\n"
        })
        .collect();
    kept.write("cells.jsonl", lines.as_bytes());
    let document = read(&kept.directory).unwrap();
    assert_eq!(document.cells[..2], before.cells[..2]);
    assert_eq!((&document.cells[2].ended, document.cells[2].samples.len()), (&None, 0));
    let mut recorder = RunRecorder::resumed(&kept.directory).unwrap();
    let third = finished(&kept.cells[2], Outcome::Precise);
    recorder.record(&third, &samples(&kept.cells[2], 2)).unwrap();
    let now = read(&kept.directory).unwrap();
    assert_eq!(now, recorder.document());
    assert_eq!(now.cells[2].samples.len(), 2);
}

#[test]
fn a_second_writer_of_the_directory_is_refused() {
    let kept = Kept::new();
    let first = RunRecorder::resumed(&kept.directory).unwrap();
    let error = RunRecorder::resumed(&kept.directory).unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    assert_eq!(error.class(), ErrorClass::Failed);
    drop(first);
    RunRecorder::resumed(&kept.directory).unwrap();
}

#[test]
fn a_header_that_is_not_one_is_refused_by_line() {
    let kept = Kept::new();
    kept.write("samples.csv", b"cell,value\n");
    let error = read(&kept.directory).unwrap_err();
    assert_eq!(error.class(), ErrorClass::BadInput);
    let expected = format!(
        "{}: samples.csv: line 1 is `cell,value`, expected `{}`",
        kept.directory.display(),
        numalab_record::CSV_HEADER
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_damaged_cell_is_refused_by_file_and_line() {
    let kept = Kept::new();
    kept.write("cells.jsonl", b"{\"cell\":\n{}\n");
    let error = read(&kept.directory).unwrap_err();
    let start = format!("{}: cells.jsonl, line 1: ", kept.directory.display());
    assert!(error.to_string().starts_with(&start), "{error}");
    assert!(matches!(error, StoreError::Unreadable { .. }));
}

#[test]
fn a_directory_with_other_content_is_refused_and_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let error = RunRecorder::resumed(directory.path()).unwrap_err();
    let said = format!("{}: holds no result; ", directory.path().display());
    assert!(error.to_string().starts_with(&said), "{error}");
    for name in ["run.json", "journal.jsonl", "study.toml"] {
        fs::write(directory.path().join(name), "x").unwrap();
    }
    let error = RunRecorder::resumed(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::OtherKind { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::BadInput);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
}

#[test]
fn a_parent_that_is_a_file_is_refused_by_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = RunRecorder::in_directory(run(None), &file).unwrap_err();
    assert!(matches!(error, StoreError::Io(_)), "{error}");
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}

#[test]
fn runs_of_one_name_and_second_get_a_directory_each() {
    let parent = tempfile::tempdir().unwrap();
    let name = || {
        let recorder = RunRecorder::in_directory(run(None), parent.path()).unwrap();
        recorder.directory().unwrap().file_name().unwrap().to_owned()
    };
    let names = [name(), name(), name()];
    let base = "measure-19700101-000001";
    assert_eq!(
        names,
        [base.to_owned(), format!("{base}-2"), format!("{base}-3")].map(std::ffi::OsString::from)
    );
}

#[test]
fn a_run_on_another_system_is_refused_by_the_first_fact_that_differs() {
    let kept = Kept::new();
    let recorder = RunRecorder::resumed(&kept.directory).unwrap();
    recorder.check_same_system(&environment("6.8")).unwrap();
    let error = recorder.check_same_system(&environment("6.9")).unwrap_err();
    assert_eq!(error.class(), ErrorClass::BadInput);
    let expected = format!(
        "{} was started with kernel `6.8`, but now it is `6.9`: start a new run",
        kept.directory.display()
    );
    assert_eq!(error.to_string(), expected);
    // A fact that only one of them has is not a difference.
    recorder.check_same_system(&Environment::default()).unwrap();
}

#[test]
fn a_run_in_memory_has_the_same_document_and_no_directory() {
    let kept = Kept::new();
    let document = read(&kept.directory).unwrap();
    let mut recorder = RunRecorder::in_memory(run(None));
    recorder.extend_plan(&kept.cells).unwrap();
    for result in &document.cells {
        let finished = Finished {
            cell: result.cell.id.clone(),
            outcome: result.ended.clone().unwrap(),
            placements: result.placements.clone(),
        };
        recorder.record(&finished, &result.samples).unwrap();
    }
    assert_eq!(recorder.document(), document);
    assert_eq!(recorder.directory(), None);
}

#[test]
fn a_document_from_elsewhere_is_kept_without_its_unfinished_parts() {
    let kept = Kept::new();
    let mut document = read(&kept.directory).unwrap();
    document.cells[1].ended = None;
    document.cells[1].samples.clear();
    document.cells[1].placements.clear();
    let parent = tempfile::tempdir().unwrap();
    let recorder = RunRecorder::of(&document, parent.path()).unwrap();
    assert_eq!(read(recorder.directory().unwrap()).unwrap(), document);
}

#[test]
fn a_report_is_written_next_to_the_results() {
    let kept = Kept::new();
    let path = Store::write_file(&kept.directory, "report.txt", "text").unwrap();
    assert_eq!(path, kept.directory.join("report.txt"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    let error = Store::write_file(Path::new("/nowhere/at/all"), "x", "").unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all/x"), "{error}");
}

#[test]
fn a_full_disk_and_a_refused_directory_are_reported_with_a_remedy() {
    use numalab_host::files::FileError;
    use std::io::{Error, ErrorKind};
    let shown = |kind: ErrorKind| {
        let at = FileError::at(Path::new("/r"), "append samples");
        StoreError::from(at(Error::from(kind))).to_string()
    };
    let full = shown(ErrorKind::StorageFull);
    assert!(full.ends_with("free some space; `measure` can resume its own runs"), "{full}");
    assert_eq!(full.strip_prefix(&*shown(ErrorKind::QuotaExceeded)), None);
    let denied = shown(ErrorKind::PermissionDenied);
    assert!(denied.ends_with("; choose another place with -o"), "{denied}");
    assert!(!shown(ErrorKind::NotFound).contains(';'));
}
