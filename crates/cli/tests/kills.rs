//! Result directories under kill -9 and with concurrent commands: nothing is lost, duplicated,
//! damaged or falsely complete.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

#[path = "common/killed.rs"]
mod killed;

use killed::{is_left, kill_within, kills, names_in};

/// Number of kills per command in every change's tests.
const KILLS: u64 = 12;

/// A command that fills a directory, and the check of the directory.
struct Subject {
    begin: &'static [&'static str],
    resume: &'static [&'static str],
    /// Time from the start to the end of a run that is not killed.
    takes: Duration,
    check: fn(&Path),
}

const SCALE: Subject = Subject {
    begin: &[
        "scale",
        "--arch=arch",
        "--sequential=0",
        "--launcher=local",
        "--memory-sizes=1,2",
        "-q",
        "-o",
        "results",
    ],
    resume: &["scale", "-q", "--resume"],
    takes: Duration::from_millis(400),
    check: check_scale,
};

const MEASURE: Subject = Subject {
    begin: &["measure", "--quick", "--cpus=0", "--pages=4k", "--budget=1s", "-q", "-o", "results"],
    resume: &["measure", "-q", "--resume"],
    takes: Duration::from_millis(1500),
    check: check_measure,
};

const STUDY: Subject = Subject {
    begin: &["study", "run", "s.toml", "-q"],
    resume: &["study", "resume", "-q"],
    takes: Duration::from_millis(600),
    check: check_study,
};

const ARCHITECTURE: &str = "SYSTEM_NAME=\"ONE\"\nPARTITION=\"P\"\nCCDS_PER_NUMA=1\n\
                            NUMA node0 CPU(s): 0,1\n";

const QUESTION: &str = "name = \"s\"\nquestion = \"Is 12 more than 10?\"\n[rules]\nblocks = 3\n\
    seed = 3\nrepeats = 1\n[[factor]]\nname = \"v\"\nlevels = [10, 12]\n[[workload]]\n\
    name = \"w\"\ncommand = [\"sh\", \"-c\", 'sleep 0.02; echo t = {v}']\ntimeout-s = 60\n\
    [[workload.metric]]\nname = \"t\"\nunit = \"s\"\nbetter = \"lower\"\npattern = \"t = {t}\"\n";

struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("arch"), ARCHITECTURE).expect("written");
        fs::write(directory.path().join("s.toml"), QUESTION).expect("written");
        Self { directory }
    }

    fn start(&self, words: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
        command.args(words).current_dir(self.directory.path()).stdin(Stdio::null());
        for name in ["SLURM_JOB_ID", "SLURM_CONF"] {
            command.env_remove(name);
        }
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::piped());
        quiet.spawn().expect("numalab starts")
    }

    /// Returns the directory of results that can be resumed.
    fn results(&self, subject: &Subject) -> Option<PathBuf> {
        let first = if subject.begin[0] == "scale" { "scale.json" } else { "run.json" };
        let mut found = fs::read_dir(self.directory.path().join("results")).ok()?.flatten();
        found.find(|entry| entry.path().join(first).is_file()).map(|entry| entry.path())
    }

    /// Starts to resume a run.
    fn resume(&self, subject: &Subject, results: &Path) -> Child {
        let mut words = subject.resume.to_vec();
        words.push(results.to_str().expect("UTF-8"));
        self.start(&words)
    }
}

fn ends_well(child: Child, what: &str) {
    let output = child.wait_with_output().expect("it ended");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{what}: {errors}");
}

/// Kills a new run and each of its resumptions this number of times, or until one ends by itself.
fn is_resumed_after_kills(subject: &Subject) {
    let (mut killed, mut count) = (0, 0);
    while killed < kills(KILLS) {
        let place = Place::new();
        let mut kept = BTreeSet::new();
        for attempt in 0.. {
            count += 1;
            let results = place.results(subject);
            let child = match &results {
                Some(results) => place.resume(subject, results),
                None => place.start(subject.begin),
            };
            let status = kill_within(child, count, subject.takes);
            killed += u64::from(status.code().is_none());
            is_left(place.directory.path());
            if let Some(results) = place.results(subject) {
                let now = finished_in(&results);
                assert!(now.is_superset(&kept), "after kill {killed}: {kept:?} became {now:?}");
                kept = now;
            }
            assert!(status.code().is_none_or(|code| code == 0), "kill {killed}: {status}");
            if attempt == 6 || status.success() {
                break;
            }
        }
        let Some(results) = place.results(subject) else { continue };
        ends_well(place.resume(subject, &results), &format!("after kill {killed}"));
        (subject.check)(&results);
        let names = names_in(&results);
        assert!(!names.iter().any(|name| name.contains("draft")), "after kill {killed}: {names:?}");
    }
}

/// Checks that if three commands resume a killed run at once, each succeeds or reports that another
/// one runs.
fn has_one_owner(subject: &Subject) {
    for round in 0..kills(KILLS) / 4 {
        let place = Place::new();
        kill_within(place.start(subject.begin), round, subject.takes);
        let Some(results) = place.results(subject) else { continue };
        let three = [(); 3].map(|()| place.resume(subject, &results));
        for child in three {
            let output = child.wait_with_output().expect("it ended");
            let errors = String::from_utf8_lossy(&output.stderr);
            let refused = errors.contains(": another numalab");
            let code = if refused { 1 } else { 0 };
            assert_eq!(output.status.code(), Some(code), "{errors}");
        }
        ends_well(place.resume(subject, &results), "the last one");
        (subject.check)(&results);
    }
}

/// Returns the finished part of a directory: whole lines of its journal, or files.
fn finished_in(results: &Path) -> BTreeSet<String> {
    let names = names_in(results);
    let of_ranks = names.iter().filter(|name| name.ends_with(".csv") && *name != "samples.csv");
    let read = |name: &str| fs::read_to_string(results.join(name)).unwrap_or_default();
    let journal = ["cells.jsonl", "journal.jsonl"].map(read).concat();
    let whole = journal.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(str::to_owned).chain(of_ranks.map(|name| read(name))).collect()
}

fn lines_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("readable");
    assert!(text.ends_with('\n'), "{}: {text}", path.display());
    text.lines().map(str::to_owned).collect()
}

fn json_lines(path: &Path) -> Vec<Value> {
    let parse = |line: &String| serde_json::from_str(line).expect("a line of JSON");
    lines_of(path).iter().map(parse).collect()
}

fn check_scale(results: &Path) {
    let names = names_in(results);
    assert!(!names.iter().any(|name| name.ends_with(".part")), "{names:?}");
    for ranks in [1, 2] {
        let stem = format!("sequential_domain0_{ranks}ranks_1,2MB");
        let lines = lines_of(&results.join(format!("{stem}.csv")));
        let sizes: Vec<&str> = lines.iter().filter_map(|line| line.split(',').next()).collect();
        assert_eq!(sizes, ["size (MB)", "1", "2"], "{lines:?}");
        for line in &lines[1..] {
            let values: Vec<f64> = line.split(',').map(|text| text.parse().expect(line)).collect();
            assert_eq!(values.len(), 1 + ranks, "{lines:?}");
        }
        let json = fs::read_to_string(results.join(format!("{stem}.json"))).expect("JSON too");
        let json: Value = serde_json::from_str(&json).expect("whole");
        assert_eq!(json["launch"]["ranks"].as_array().map(Vec::len), Some(ranks));
        let cells = json["cells"].as_array().expect("the cells of a run");
        assert_eq!(cells.len(), 2 * ranks);
        assert!(cells.iter().all(|cell| cell["samples"].as_array().map(Vec::len) == Some(20)));
    }
}

fn check_measure(results: &Path) {
    let cells = json_lines(&results.join("cells.jsonl"));
    let done: Vec<&Value> = cells.iter().filter(|cell| cell["outcome"] != "failed").collect();
    let names: BTreeSet<&str> = done.iter().filter_map(|cell| cell["cell"].as_str()).collect();
    assert_eq!(names.len(), done.len(), "a cell twice");
    let run = fs::read_to_string(results.join("run.json")).expect("a run");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    let plan = run["plan"].as_array().expect("a plan");
    // Cells that the time limit did not allow for are missing.
    assert!(plan.len() >= names.len() && !names.is_empty(), "{names:?}");
    let samples = lines_of(&results.join("samples.csv"));
    let keys: BTreeSet<Vec<&str>> =
        samples.iter().map(|line| line.split(',').take(3).collect()).collect();
    assert_eq!(keys.len(), samples.len(), "a sample twice");
    let complete: u64 = cells.iter().filter_map(|cell| cell["samples"].as_u64()).sum();
    assert_eq!(complete, samples.len() as u64 - 1, "samples that belong to no cell");
}

fn check_study(results: &Path) {
    let entries = json_lines(&results.join("journal.jsonl"));
    let samples = entries.iter().filter(|entry| entry["entry"] == "sample");
    let key = |entry: &Value| {
        ["block", "treatment", "arm", "workload", "attempt"].map(|name| entry[name].to_string())
    };
    let keys: Vec<_> = samples.map(key).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "a sample twice");
    // Three blocks and an uncounted first one, of two levels plus the first one again.
    let cells: BTreeSet<_> =
        keys.iter().map(|[block, treatment, arm, ..]| (block, treatment, arm)).collect();
    assert_eq!(cells.len(), 4 * 3, "a sample is missing");
    assert!(entries.iter().any(|entry| entry["reason"] == "done"), "not said to be done");
}

#[test]
fn a_scaling_run_that_is_killed_again_and_again_ends_with_every_row_once() {
    is_resumed_after_kills(&SCALE);
}

#[test]
fn a_measuring_run_that_is_killed_again_and_again_ends_with_every_sample_once() {
    is_resumed_after_kills(&MEASURE);
}

#[test]
fn a_study_that_is_killed_again_and_again_ends_with_every_sample_once() {
    is_resumed_after_kills(&STUDY);
}

#[test]
fn three_that_resume_a_scaling_run_at_once_leave_every_row_once() {
    has_one_owner(&SCALE);
}

#[test]
fn three_that_resume_a_measuring_run_at_once_leave_every_sample_once() {
    has_one_owner(&MEASURE);
}

#[test]
fn three_that_resume_a_study_at_once_leave_every_sample_once() {
    has_one_owner(&STUDY);
}

/// Hosts of the examples; `fleet collect` reads them in this time.
const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/fleet/hosts");
const COLLECTED: Duration = Duration::from_millis(150);

fn collects(place: &Place, store: &str) -> Child {
    place.start(&["fleet", "collect", HOSTS, "--store", store])
}

/// Checks that every run is stored once, and that a collection without kills gives the same.
fn check_store(place: &Place, whole: &str) {
    ends_well(collects(place, "store.jsonl"), "the last one");
    let store = fs::read_to_string(place.directory.path().join("store.jsonl")).expect("a store");
    assert!(store == whole, "{store:.200}");
    let drafts = names_in(place.directory.path());
    let drafts: Vec<_> = drafts.iter().filter(|name| name.contains("draft")).collect();
    assert!(drafts.is_empty(), "{drafts:?}");
}

/// Returns the store of a collection that is not killed.
fn whole_store(place: &Place) -> String {
    ends_well(collects(place, "whole.jsonl"), "it is not killed");
    fs::read_to_string(place.directory.path().join("whole.jsonl")).expect("a store")
}

#[test]
fn a_collection_that_is_killed_again_and_again_has_every_run_once() {
    let place = Place::new();
    let whole = whole_store(&place);
    let store = place.directory.path().join("store.jsonl");
    let mut killed = 0;
    for count in 0.. {
        let status = kill_within(collects(&place, "store.jsonl"), count, COLLECTED);
        assert!(status.code().is_none_or(|code| code == 0), "kill {killed}: {status}");
        killed += u64::from(status.code().is_none());
        if let Ok(text) = fs::read_to_string(&store) {
            // A new file is empty until it is complete.
            assert!(text.is_empty() || text == whole, "after kill {killed}: {text:.200}");
            fs::remove_file(&store).expect("removed");
        }
        if killed >= kills(KILLS) {
            break;
        }
    }
    check_store(&place, &whole);
}

#[test]
fn three_that_collect_at_once_leave_every_run_once() {
    for _ in 0..kills(KILLS) / 4 {
        let place = Place::new();
        let whole = whole_store(&place);
        for child in [(); 3].map(|()| collects(&place, "store.jsonl")) {
            ends_well(child, "one of three");
        }
        check_store(&place, &whole);
    }
}

/// If a cell cannot get its buffer, for example one wholly on huge pages, only that cell fails.
#[test]
fn many_concurrent_runs_each_end_with_the_cells_they_could_measure() {
    let many = if kills(0) == 0 { 4 } else { 50 };
    let places: Vec<Place> = (0..many).map(|_| Place::new()).collect();
    let begin = ["measure", "--quick", "--cpus=0", "--budget=3s", "-q", "-o", "results"];
    let measuring: Vec<Child> = places.iter().map(|place| place.start(&begin)).collect();
    for (place, child) in places.iter().zip(measuring) {
        ends_well(child, "one of many");
        let results = place.results(&MEASURE).expect("a run");
        check_measure(&results);
        let cells = json_lines(&results.join("cells.jsonl"));
        let left_out = cells.iter().filter(|cell| cell["outcome"] == "failed");
        assert!(left_out.clone().all(|cell| cell["reason"].is_string()), "{cells:?}");
        eprintln!("{} of {} cells left out", left_out.count(), cells.len());
    }
}
