//! The complete part of a run, for files cut anywhere by a crash or a full disk.

use numalab_record::*;

const RUN: &str = "docs/examples/run";

fn text(file: &str) -> String {
    let path = format!("{}/../../{RUN}/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns `cells.jsonl` and `samples.csv` of three cells with two, zero and three samples.
fn files() -> (String, String) {
    let line = |cell: &str, part: &str| {
        format!("{{\"cell\":\"{cell}\",\"outcome\":\"precise\",\"placements\":[]{part}}}\n")
    };
    let part = |first, count| format!(",\"first_sample\":{first},\"samples\":{count}");
    let cells = [line("a", &part(0, 2)), line("b", &part(2, 0)), line("c", &part(2, 3))].concat();
    let sample = |(index, cell)| format!("{cell},latency,{index},1.5,ns,0,1,1,\n");
    let samples: String = ["a", "a", "c", "c", "c"].iter().enumerate().map(sample).collect();
    (cells, format!("{CSV_HEADER}\n{samples}"))
}

fn cells_of(part: &CompletePart) -> Vec<&str> {
    part.lines.iter().map(|line| line.finished.cell.0.as_str()).collect()
}

#[test]
fn files_that_are_whole_are_complete_to_their_last_byte() {
    let (cells, samples) = files();
    let part = complete_part(&cells, &samples).unwrap();
    assert_eq!(cells_of(&part), ["a", "b", "c"]);
    assert_eq!((part.cells_bytes, part.samples_bytes), (cells.len(), samples.len()));
    assert_eq!(part.samples, 5);
    let count = |line: &CellLine| line.samples.map(|part| (part.first, part.count));
    let counts: Vec<_> = part.lines.iter().map(count).collect();
    assert_eq!(counts, [Some((0, 2)), Some((2, 0)), Some((2, 3))]);
}

#[test]
fn samples_of_a_cell_that_was_being_measured_are_behind_the_complete_part() {
    let (cells, samples) = files();
    let begun = format!("{samples}d,latency,5,1.5,ns,0,1,1,\nd,lat");
    let part = complete_part(&cells, &begun).unwrap();
    assert_eq!((cells_of(&part).len(), part.samples, part.samples_bytes), (3, 5, samples.len()));
    let none = complete_part("", &begun).unwrap();
    assert_eq!((cells_of(&none).len(), none.samples), (0, 0));
    assert_eq!(none.samples_bytes, CSV_HEADER.len() + 1, "the header stays");
}

#[test]
fn a_cell_with_missing_samples_and_all_cells_after_it_are_incomplete() {
    let (cells, samples) = files();
    let lines: Vec<&str> = samples.split_inclusive('\n').collect();
    let ends = |kept: usize| {
        let part = complete_part(&cells, &lines[..=kept].concat()).unwrap();
        (cells_of(&part).concat(), part.samples)
    };
    let expected = [("", 0), ("", 0), ("ab", 2), ("ab", 2), ("ab", 2), ("abc", 5)];
    for (kept, (names, samples)) in expected.into_iter().enumerate() {
        assert_eq!(ends(kept), (names.to_owned(), samples), "{kept} samples kept");
    }
}

#[test]
fn a_line_of_cells_without_its_end_is_not_there_and_a_damaged_whole_one_is_named() {
    let (cells, samples) = files();
    for cut in 0..cells.len() {
        let part = complete_part(&cells[..cut], &samples).unwrap();
        assert_eq!(part.lines.len(), cells[..cut].matches('\n').count(), "cut at {cut}");
        assert_eq!(part.cells_bytes, cells[..cut].rfind('\n').map_or(0, |end| end + 1));
    }
    let damaged = format!("\n{cells}{{\"cell\":\"d\"}}\n");
    let error = complete_part(&damaged, &samples).unwrap_err();
    assert_eq!(error.line, 5);
    assert!(error.to_string().starts_with("cells.jsonl, line 5: "), "{error}");
}

#[test]
fn a_number_of_samples_beyond_all_numbers_is_of_no_complete_cell() {
    let (_, samples) = files();
    let most = usize::MAX;
    let line = format!(
        "{{\"cell\":\"a\",\"outcome\":\"precise\",\"placements\":[],\"first_sample\":{most},\
         \"samples\":{most}}}\n"
    );
    let part = complete_part(&line, &samples).unwrap();
    assert_eq!((part.lines.len(), part.cells_bytes, part.samples), (0, 0, 0));
}

/// Adds to each line of the kept run's `cells.jsonl` the range of its samples, which the version
/// that wrote it left out: cells follow each other as in `samples.csv`.
fn numbered(cells: &str, samples: &str) -> String {
    let of_cell = |name: &str| {
        let begin = format!("{name},");
        samples.lines().filter(|line| line.starts_with(&begin)).count()
    };
    let mut first = 0;
    let mut line = |line: &str| {
        let finished: Finished = serde_json::from_str(line).unwrap();
        let count = of_cell(&finished.cell.0);
        let samples = Some(SampleLines { first, count });
        first += count;
        serde_json::to_string(&CellLine { finished, samples }).unwrap() + "\n"
    };
    cells.lines().map(&mut line).collect()
}

#[test]
fn a_kept_run_cut_at_any_line_is_read_as_its_first_cells() {
    let [run, cells, samples] = [file::RUN, file::CELLS, file::SAMPLES].map(text);
    let cells = numbered(&cells, &samples);
    let whole = Document::from_files(&run, &cells, &samples).unwrap();
    assert!(whole.cells.iter().all(|cell| cell.ended.is_some()), "it is complete");
    let lines: Vec<&str> = samples.split_inclusive('\n').collect();
    for kept in (1..=lines.len()).step_by(lines.len().div_ceil(40)) {
        let cut = lines[..kept].concat();
        let part = complete_part(&cells, &cut).unwrap();
        let (cells, cut) = (&cells[..part.cells_bytes], &cut[..part.samples_bytes]);
        let read = Document::from_files(&run, cells, cut).unwrap();
        let ended = read.cells.iter().filter(|cell| cell.ended.is_some());
        assert_eq!(ended.count(), part.lines.len(), "{kept} lines");
        for (read, whole) in read.cells.iter().zip(&whole.cells) {
            assert!(read.ended.is_none() || read == whole, "{kept} lines: {:?}", read.cell.id);
        }
    }
}

/// Older results do not record where the samples of a cell are.
#[test]
fn a_cell_of_an_older_result_that_lost_its_samples_is_unmeasured() {
    let (run, cells) = (text("run.json"), text("cells.jsonl"));
    let samples = text("samples.csv");
    let header = samples.lines().next().unwrap();
    let whole = Document::from_files(&run, &cells, &samples).unwrap();
    assert!(whole.cells.iter().any(|cell| cell.ended.is_some()));
    let empty = Document::from_files(&run, &cells, &format!("{header}\n")).unwrap();
    let measured =
        |cell: &&CellResult| matches!(cell.ended, Some(Outcome::Precise | Outcome::BudgetSpent));
    assert_eq!(empty.cells.iter().filter(measured).count(), 0);
}
