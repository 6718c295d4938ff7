//! Documents kept in the repository: all can be read, and damage never causes a panic.

use std::path::{Path, PathBuf};

use numalab_record::scaling::{ScalingFile, read};
use numalab_record::study::{Counted, StudyDocument};
use numalab_record::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(directory: &str, file: &str) -> String {
    let path = repository().join(directory).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads run, cells and samples of a directory.
fn run(directory: &str) -> [String; 3] {
    [file::RUN, file::CELLS, file::SAMPLES].map(|file| text(directory, file))
}

fn read_run(directory: &str) -> Document {
    let [run, cells, samples] = run(directory);
    Document::from_files(&run, &cells, &samples).expect("a kept run")
}

/// Collects the directories below `directory` that hold a run.
fn runs_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a kept directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            runs_below(&path, found);
        } else if path.ends_with(file::CELLS) {
            found.push(directory.to_owned());
        }
    }
}

#[test]
fn every_kept_run_is_read_whole_with_each_sample_in_its_cell() {
    let mut directories = Vec::new();
    runs_below(&repository().join("docs/examples"), &mut directories);
    runs_below(&repository().join("crates/cli/tests/written-before"), &mut directories);
    assert!(directories.len() >= 18, "{directories:?}");
    for directory in directories {
        let name = directory.to_str().expect("a name in UTF-8");
        let document = read_run(name);
        let lines = text(name, file::SAMPLES).lines().count() - 1;
        let samples: usize = document.cells.iter().map(|cell| cell.samples.len()).sum();
        assert_eq!(samples, lines, "{name}");
        let ended = document.cells.iter().filter(|cell| cell.ended.is_some()).count();
        assert_eq!(ended, text(name, file::CELLS).lines().count(), "{name}");
        assert_eq!(document.run.schema, Kind::Run.schema(), "{name}");
        let again = serde_json::to_string(&document).unwrap();
        assert_eq!(Kind::Run.read::<Document>(&again).unwrap(), document, "{name}");
    }
}

#[test]
fn the_samples_of_a_kept_run_are_written_as_they_were() {
    let [_, _, samples] = run("docs/examples/run");
    let mut written = format!("{CSV_HEADER}\n");
    for sample in parse_samples(&samples).unwrap() {
        write_sample(&mut written, &sample);
    }
    assert_eq!(written, samples);
}

#[test]
fn ids_of_the_kept_plan_are_those_that_their_experiments_have_today() {
    for directory in ["docs/examples/run", "crates/cli/tests/written-before/run"] {
        for cell in read_run(directory).run.plan {
            assert_eq!(cell.id.0, cell.experiment.description().id(), "{directory}");
        }
    }
}

/// Returns the text with bytes deleted or replaced, at many places.
fn damaged(text: &str) -> impl Iterator<Item = String> {
    let step = (text.len() / 20).max(1);
    (0..text.len()).step_by(step).flat_map(move |at| {
        let (head, tail) = (&text.as_bytes()[..at], &text.as_bytes()[at..]);
        let with = |middle: &[u8], skipped: usize| {
            let tail = &tail[skipped.min(tail.len())..];
            String::from_utf8_lossy(&[head, middle, tail].concat()).into_owned()
        };
        [
            with(b"", 1),
            with(b"", 40),
            with(b"\0\0\0\0", 4),
            with(b"\n", 0),
            with(b"9", 1),
            head_only(head),
        ]
    })
}

fn head_only(head: &[u8]) -> String {
    String::from_utf8_lossy(head).into_owned()
}

#[test]
fn a_damaged_run_is_refused_with_its_file_or_read_without_a_cell_more() {
    let [run, cells, samples] = run("docs/examples/run");
    let whole = Document::from_files(&run, &cells, &samples).unwrap();
    let check = |of: Result<Document, DocumentError>, file: &str| match of {
        Ok(document) => assert!(document.cells.len() <= whole.cells.len()),
        Err(error) => assert!(error.to_string().starts_with(file), "{error}"),
    };
    damaged(&run).for_each(|run| check(Document::from_files(&run, &cells, &samples), file::RUN));
    for cells in damaged(&cells) {
        check(Document::from_files(&run, &cells, &samples), file::CELLS);
    }
    let count =
        |document: &Document| document.cells.iter().map(|cell| cell.samples.len()).sum::<usize>();
    for samples in damaged(&samples) {
        let read = Document::from_files(&run, &cells, &samples);
        if let Ok(document) = &read {
            assert!(count(document) <= count(&whole), "damage makes no sample");
        }
        check(read, file::SAMPLES);
    }
}

#[test]
fn every_whole_line_before_a_crash_is_kept() {
    let [run, cells, samples] = run("docs/examples/run");
    for end in (0..=samples.len()).step_by(samples.len() / 50) {
        let cut = &samples[..end];
        let lines = cut.matches('\n').count();
        match Document::from_files(&run, &cells, cut) {
            Ok(document) => {
                let kept: usize = document.cells.iter().map(|cell| cell.samples.len()).sum();
                assert_eq!(kept, lines - 1);
            }
            Err(error) => assert!(lines == 0, "{error}"),
        }
    }
    for end in (0..=cells.len()).step_by(cells.len() / 30) {
        let document = Document::from_files(&run, &cells[..end], &samples).unwrap();
        let ended = document.cells.iter().filter(|cell| cell.ended.is_some()).count();
        assert_eq!(ended, cells[..end].matches('\n').count());
    }
}

#[test]
fn kept_studies_are_read_and_read_back_and_have_values_of_every_treatment() {
    for directory in ["docs/examples/study", "crates/cli/tests/written-before/study"] {
        let [run, journal] = [file::RUN, file::JOURNAL].map(|file| text(directory, file));
        let document = StudyDocument::from_files(&run, &journal).unwrap();
        assert_eq!(document.journal.len(), journal.lines().count(), "{directory}");
        assert_eq!(document.run.schema, Kind::Study.schema());
        let json = serde_json::to_string(&document).unwrap();
        assert_eq!(Kind::Study.read::<StudyDocument>(&json).unwrap(), document, "{directory}");
        let sample = document.samples().next().expect("a sample");
        let metric = &sample.observation.readings[0].quantity.metric;
        let cells = document.cells(sample.workload, metric, Counted::Undisturbed);
        assert!(!cells.blocks.is_empty(), "{directory}");
        let expected = cells.blocks.len();
        assert!(cells.treatments.iter().all(|values| values.len() == expected), "{directory}");
        for journal in damaged(&journal).step_by(7) {
            if let Err(error) = StudyDocument::from_files(&run, &journal) {
                assert!(error.to_string().starts_with("journal.jsonl, line "), "{error}");
            }
        }
    }
}

#[test]
fn the_kept_ranks_of_an_earlier_version_are_read_in_both_their_forms() {
    let directory = "crates/cli/tests/written-before/ranks";
    let stem = "sequential_domain0_1ranks_1-2MB";
    let [csv, json] = ["csv", "json"].map(|ending| {
        let path = format!("{stem}.{ending}");
        ScalingFile { text: text(directory, &path), path }
    });
    let kept: serde_json::Value = Kind::Ranks.read(&json.text).unwrap();
    let (scaling, _) = read("before", &[csv, json]).unwrap();
    let (step, rank) = (&scaling.steps[0], &kept["ranks"][0]);
    assert_eq!(step.sizes_bytes, [1 << 20, 2 << 20]);
    for (at, size) in step.sizes_bytes.iter().enumerate() {
        let of = |name: &str| rank[name][at].as_f64().expect("a figure");
        let (shown, mean) = (step.values[at][0], of("mean"));
        assert!((shown - mean).abs() < 0.006, "{shown} is {mean} with two digits");
        assert_eq!(step.at(*size), Some(&[of("median")][..]));
    }
    let place = step.places[0].expect("a place");
    assert_eq!((place.cpu.0, place.memory_node.map(|node| node.0)), (0, Some(0)));
    assert!(step.disturbed.is_some_and(|share| share > 0.0), "{:?}", step.disturbed);
}
