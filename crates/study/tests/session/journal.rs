//! The directory of a study: its content, refused content, and resuming a study that was cut at any
//! byte.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_host::{Classed, ErrorClass};
use numalab_record::study::{EndReason, JournalEntry};
use numalab_study::{Journal, JournalError, Started, is_study, read};

use super::lab::{Lab, STUDY, Scripted};

/// Returns a finished study with its directory.
fn done() -> (Lab, PathBuf) {
    let lab = Lab::open();
    assert_eq!(lab.run(&Scripted::new(None, true)).unwrap(), EndReason::Done);
    let path = lab.results().unwrap();
    (lab, path)
}

fn journal_of(directory: &Path) -> Vec<u8> {
    fs::read(directory.join("journal.jsonl")).unwrap()
}

fn write_journal(directory: &Path, bytes: &[u8]) {
    fs::write(directory.join("journal.jsonl"), bytes).unwrap();
}

/// Returns the number of samples in complete lines of a journal.
fn whole_samples(bytes: &[u8]) -> usize {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let text = String::from_utf8(bytes[..whole].to_vec()).unwrap();
    let is_sample = |line: &&str| matches!(serde_json::from_str(line), Ok(JournalEntry::Sample(_)));
    text.lines().filter(is_sample).count()
}

#[test]
fn a_refused_directory_is_reported_with_the_option_that_names_another() {
    use numalab_host::files::FileError;
    let at = FileError::at(Path::new("results"), "create it");
    let error = JournalError::from(at(std::io::ErrorKind::PermissionDenied.into())).to_string();
    assert!(error.ends_with("; choose another place with -o"), "{error}");
}

#[test]
fn a_directory_is_named_by_the_study_and_its_time_and_holds_question_run_and_journal() {
    let (_lab, path) = done();
    assert_eq!(path.file_name().unwrap(), "s-19700101-000000");
    let mut names: Vec<_> =
        fs::read_dir(&path).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".lock", "journal.jsonl", "run.json", "study.toml"]);
    assert_eq!(fs::read_to_string(path.join("study.toml")).unwrap(), STUDY);
    assert!(is_study(&path));
    assert!(!is_study(path.parent().unwrap()));
}

#[test]
fn two_studies_of_one_name_and_second_have_a_directory_each() {
    let lab = Lab::open();
    for _ in 0..2 {
        assert_eq!(lab.run(&Scripted::new(None, true)).unwrap(), EndReason::Done);
    }
    let count = fs::read_dir(lab.directory.path()).unwrap().count();
    assert_eq!(count, 2);
}

#[test]
fn a_journal_has_the_environment_first_then_each_treatment_before_its_samples_and_the_end_last() {
    let (lab, _) = done();
    let kinds: Vec<&str> = lab
        .entries()
        .iter()
        .map(|entry| match entry {
            JournalEntry::Sample(_) => "sample",
            JournalEntry::Ended { .. } => "ended",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "sample").count(), 4);
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("other", "ended"));
    assert_eq!(kinds.iter().filter(|kind| **kind == "ended").count(), 1);
}

#[test]
fn samples_follow_the_order_of_the_plan() {
    let (lab, path) = done();
    let document = read(&path).unwrap();
    let taken: Vec<_> =
        document.samples().map(|of| (of.block, of.treatment, of.arm, of.workload)).collect();
    let planned: Vec<_> = (0..2)
        .flat_map(|block| lab.plan.visits(block).into_iter().map(move |visit| (block, visit)))
        .map(|(block, visit)| (block, visit.treatment, visit.arm, 0))
        .collect();
    assert_eq!(taken, planned);
    assert_eq!(document.run.plan, lab.plan.hash());
    assert_eq!(document.run.treatments, lab.plan.treatments());
}

/// A kill can end the last write anywhere. Complete lines stay, and the rest is taken again.
#[test]
fn a_journal_that_was_cut_at_any_byte_can_be_read() {
    let (_lab, path) = done();
    let whole = journal_of(&path);
    for end in 0..=whole.len() {
        write_journal(&path, &whole[..end]);
        let document = read(&path).unwrap_or_else(|error| panic!("cut at {end}: {error}"));
        let least = whole_samples(&whole[..end]);
        let found = document.samples().count();
        // A line that lacks only its newline is complete.
        assert!((least..=least + 1).contains(&found), "cut at {end}: {found} of {least}");
    }
}

#[test]
fn a_journal_cut_at_any_byte_is_resumed_to_the_same_samples() {
    let (lab, path) = done();
    let whole = journal_of(&path);
    let cells = |path: &Path| -> Vec<_> {
        let document = read(path).unwrap();
        document.samples().map(|of| (of.block, of.treatment, of.arm, of.attempt)).collect()
    };
    let expected = cells(&path);
    // Cuts at the end of each line and within it, since each resumption waits for the disk.
    let is_end = |at: usize| whole.get(at) == Some(&b'\n');
    let ends = (0..whole.len()).filter(|at| is_end(*at + 40) || is_end(at.wrapping_sub(1)));
    for end in ends {
        write_journal(&path, &whole[..end]);
        let backend = Scripted::new(None, true);
        let ended = lab.resume(&backend).unwrap_or_else(|error| panic!("cut at {end}: {error}"));
        assert_eq!(ended, EndReason::Done, "cut at {end}");
        assert_eq!(cells(&path), expected, "cut at {end}");
        let text = String::from_utf8(journal_of(&path)).unwrap();
        assert!(text.ends_with('\n'), "cut at {end}");
        let sampled = backend.calls.borrow().iter().filter(|call| **call == "sample").count();
        assert!(sampled <= 4 - whole_samples(&whole[..end]), "cut at {end}: {sampled} again");
    }
}

#[test]
fn resuming_a_finished_study_takes_no_sample() {
    let (lab, _) = done();
    let backend = Scripted::new(None, true);
    assert_eq!(lab.resume(&backend).unwrap(), EndReason::Done);
    assert_eq!(lab.samples(), 4);
    assert!(!backend.calls.borrow().contains(&"sample"), "{:?}", backend.calls.borrow());
}

#[test]
fn a_damaged_line_that_is_not_the_last_is_refused_with_its_directory() {
    let (_lab, path) = done();
    let text = String::from_utf8(journal_of(&path)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1] = "{\"sample\":{\"block\":";
    write_journal(&path, (lines.join("\n") + "\n").as_bytes());
    let error = read(&path).unwrap_err();
    assert!(matches!(error, JournalError::Unreadable { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::BadInput);
    assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
    let refused = Journal::resume(&path).unwrap_err();
    assert_eq!(refused.to_string(), error.to_string());
    assert_eq!(journal_of(&path), (lines.join("\n") + "\n").into_bytes(), "it is left as it is");
}

#[test]
fn a_directory_that_is_not_a_study_is_refused_and_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let error = Journal::resume(directory.path()).unwrap_err();
    let run = directory.path().join("run.json").display().to_string();
    assert!(error.to_string().starts_with(&run), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    for name in ["run.json", "cells.jsonl", "samples.csv"] {
        fs::write(directory.path().join(name), "x").unwrap();
    }
    let error = Journal::resume(directory.path()).unwrap_err();
    assert!(matches!(error, JournalError::OtherKind { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::BadInput);
    assert!(error.to_string().starts_with(&directory.path().display().to_string()), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
}

#[test]
fn a_run_that_is_not_json_is_refused() {
    let (_lab, path) = done();
    fs::write(path.join("run.json"), "{").unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, JournalError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("run.json"), "{error}");
}

#[test]
fn a_parent_that_is_a_file_is_refused_by_its_path() {
    let lab = Lab::open();
    let file = lab.directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let started = Started { version: "0".to_owned(), command: Vec::new(), unix_ms: 1 };
    let run = lab.plan.run("b".to_owned(), started);
    let error = Journal::create(&file, run, STUDY).unwrap_err();
    assert!(matches!(error, JournalError::Io(_)), "{error}");
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
}

#[test]
fn a_run_replaced_before_the_first_sample_is_read_later() {
    let lab = Lab::open();
    let started = Started {
        version: "1.2".to_owned(),
        command: vec!["study".to_owned(), "run".to_owned()],
        unix_ms: 86_400_000,
    };
    let run = lab.plan.run("a script".to_owned(), started);
    let mut journal = Journal::create(lab.directory.path(), run.clone(), STUDY).unwrap();
    assert_eq!(journal.directory().file_name().unwrap(), "s-19700102-000000");
    let mut more = run;
    more.rules.blocks = 77;
    journal.replace_run(more.clone()).unwrap();
    assert_eq!(journal.document().run, more);
    let directory = journal.directory().to_owned();
    drop(journal);
    let found = read(&directory).unwrap();
    assert_eq!(found.run, more);
    assert_eq!(found.journal, []);
}
