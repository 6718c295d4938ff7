//! Kinds of documents and of directories.

use numalab_record::{Kind, KindError, file};
use serde_json::{Value, json};

fn kind_of_directory(files: &[&str]) -> Option<Kind> {
    Kind::of_directory(|name| files.contains(&name))
}

#[test]
fn a_directory_is_of_the_kind_of_its_files_a_journal_before_all_others() {
    assert_eq!(kind_of_directory(&[]), None);
    assert_eq!(
        kind_of_directory(&[file::CELLS, file::SAMPLES, file::REPORT_HTML, file::STUDY]),
        None
    );
    assert_eq!(kind_of_directory(&[file::RUN]), Some(Kind::Run));
    assert_eq!(kind_of_directory(&[file::RUN, file::JOURNAL]), Some(Kind::Study));
    assert_eq!(
        kind_of_directory(&[file::RUN, file::STUDY]),
        Some(Kind::Study),
        "its journal is lost"
    );
    assert_eq!(kind_of_directory(&[file::BISECT]), Some(Kind::Bisect));
    assert_eq!(kind_of_directory(&[file::BISECT, file::SCALE]), Some(Kind::Scale));
    assert_eq!(kind_of_directory(&[file::SCALE, file::RUN]), Some(Kind::Run));
    assert_eq!(
        [file::RUN, file::JOURNAL, file::SCALE, file::BISECT],
        ["run.json", "journal.jsonl", "scale.json", "bisect.json"]
    );
}

#[test]
fn a_directory_of_another_kind_is_refused_and_an_empty_one_is_not() {
    let check = |kind: Kind, files: &[&str]| kind.check_directory(|name| files.contains(&name));
    assert!(check(Kind::Study, &[]).is_ok());
    assert!(check(Kind::Run, &[file::RUN]).is_ok());
    let error = check(Kind::Run, &[file::RUN, file::JOURNAL]).unwrap_err().to_string();
    assert_eq!(error, "holds a study, expected a run; `numalab report DIR` reads it");
    let error = check(Kind::Study, &[file::SCALE]).unwrap_err().to_string();
    assert_eq!(error, "holds a scaling run, expected a study; `numalab report DIR` reads it");
}

#[test]
fn json_without_a_known_schema_is_refused_with_the_schema_that_it_has() {
    for (json, schema) in [
        ("null", ""),
        ("[]", ""),
        ("7", ""),
        ("{}", ""),
        (r#"{"schema":7}"#, ""),
        (r#"{"schema":"numalab/1"}"#, "numalab/1"),
        (r#"{"schema":"numalab/run-3"}"#, "numalab/run-3"),
        (r#"{"schema":"NUMALAB/RUN-2"}"#, "NUMALAB/RUN-2"),
    ] {
        let error = Kind::Run.read::<Value>(json).unwrap_err();
        let expected = format!("has schema `{schema}`, expected one such as `numalab/run-2`");
        assert_eq!(error.to_string(), expected, "{json}");
        assert!(matches!(Kind::of(json), Err(KindError::Unknown { .. })), "{json}");
    }
    for damaged in ["", "{", "\0\0\0", r#"{"schema":"numalab/run-2""#] {
        let error = Kind::of(damaged).unwrap_err();
        assert!(error.to_string().starts_with("cannot be read: "), "{damaged}: {error}");
    }
}

#[test]
fn an_earlier_document_gets_the_schema_of_its_kind_and_no_other_change() {
    for (kind, mut document) in [
        (Kind::Run, json!({"schema": "numalab/1", "plan": [], "x": 1})),
        (Kind::Study, json!({"schema": "numalab/1", "plan": "ab", "treatments": []})),
        (Kind::Ranks, json!({"schema": "numalab-ranks/1", "ranks": []})),
        (Kind::Scale, json!({"schema": "numalab-scale/1", "steps": []})),
    ] {
        let read: Value = kind.read(&document.to_string()).unwrap();
        document["schema"] = kind.schema().into();
        assert_eq!(read, document);
        let again: Value = kind.read(&read.to_string()).unwrap();
        assert_eq!(again, document);
    }
}

#[test]
fn a_document_that_breaks_its_schema_is_refused_by_the_missing_member() {
    let error = Kind::Run.read::<numalab_record::Run>(r#"{"schema":"numalab/run-2"}"#);
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "cannot be read: missing field `name` at line 1 column 26");
}

#[test]
fn schemas_are_names_with_a_version_and_serialise_as_such() {
    for kind in Kind::ALL {
        let (name, version) = kind.schema().rsplit_once('-').unwrap();
        assert!(name.starts_with("numalab/") && version.parse::<u32>().is_ok(), "{name}");
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.schema());
        assert_eq!(String::from(kind), kind.schema());
        assert_eq!(format!("{kind:>40}").len(), 40, "{kind} pads");
    }
    let mut said: Vec<String> = Kind::ALL.map(|kind| kind.to_string()).to_vec();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), Kind::ALL.len(), "each kind has different words");
}
