//! `cells.jsonl`: one finished cell per line, which completes its lines of `samples.csv`.
//!
//! Samples are written before their cell's line, so a crash can leave samples that no line
//! completes. They belong to no result, and the next process that opens the directory truncates
//! them.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::cell::{CellId, Finished, Outcome};
use crate::kind::file;
use crate::sample::Sample;

/// An unreadable line of `cells.jsonl`.
#[derive(Debug, thiserror::Error)]
#[error("{name}, line {line}: {source}", name = file::CELLS)]
pub struct CellsError {
    /// The line number, from 1.
    pub line: usize,
    pub source: serde_json::Error,
}

/// A line of `cells.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellLine {
    #[serde(flatten)]
    pub finished: Finished,
    /// The cell's part of `samples.csv`; absent in older results.
    #[serde(flatten)]
    pub samples: Option<SampleLines>,
}

impl CellLine {
    // Written by hand because serde, behind `flatten`, does not read numbers that are the keys of a
    // map.
    fn parse(text: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Part {
            #[serde(flatten)]
            samples: Option<SampleLines>,
        }
        let Part { samples } = serde_json::from_str(text)?;
        Ok(Self { finished: serde_json::from_str(text)?, samples })
    }
}

/// A range of lines of `samples.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleLines {
    /// The number of samples before the cell's, not counting the header.
    #[serde(rename = "first_sample")]
    pub first: usize,
    /// The number of samples in it.
    #[serde(rename = "samples")]
    pub count: usize,
}

impl SampleLines {
    fn range(self) -> Range<usize> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// The part of `cells.jsonl` and `samples.csv` that is complete.
#[derive(Debug)]
pub struct CompletePart {
    /// The finished cells whose samples are all present.
    pub lines: Vec<CellLine>,
    /// The length in bytes of `cells.jsonl` up to the last finished cell.
    pub cells_bytes: usize,
    /// The length in bytes of `samples.csv` up to its last sample.
    pub samples_bytes: usize,
    /// The number of samples up to that point.
    pub samples: usize,
}

/// Finds the complete part of a run. After it, a crash may have left unterminated lines and samples
/// of an unfinished cell; a truncated file may have left cells without all their samples.
///
/// # Errors
///
/// [`CellsError`] names the unreadable line of `cells.jsonl`.
pub fn complete_part(cells: &str, samples: &str) -> Result<CompletePart, CellsError> {
    // The end of each complete line after the header.
    let ends: Vec<usize> = samples.match_indices('\n').map(|(at, _)| at + 1).collect();
    let whole = ends.len().saturating_sub(1);
    let (mut lines, mut cells_bytes) = (Vec::new(), 0);
    for (index, text) in cells.split_inclusive('\n').filter(|text| text.ends_with('\n')).enumerate()
    {
        if !text.trim().is_empty() {
            let line =
                CellLine::parse(text).map_err(|source| CellsError { line: index + 1, source })?;
            if line.samples.is_some_and(|part| part.range().end > whole) {
                break;
            }
            lines.push(line);
        }
        cells_bytes += text.len();
    }
    let kept = match lines.last() {
        None => 0,
        // Older results do not record where a cell's samples end.
        Some(line) => line.samples.map_or(whole, |part| part.range().end),
    };
    let samples_bytes = ends.get(kept).copied().unwrap_or(0);
    Ok(CompletePart { lines, cells_bytes, samples_bytes, samples: kept })
}

/// Returns each finished cell's last attempt, with its samples in their order.
pub(crate) fn last_attempts(
    lines: Vec<CellLine>,
    samples: &[Sample],
) -> (Vec<Finished>, Vec<Sample>) {
    let first_known = lines.iter().filter_map(|line| line.samples).map(|part| part.first).min();
    let unnumbered = &samples[..first_known.unwrap_or(samples.len()).min(samples.len())];
    let last: BTreeMap<CellId, CellLine> =
        lines.into_iter().map(|line| (line.finished.cell.clone(), line)).collect();
    let (mut finished, mut kept) = (Vec::new(), Vec::new());
    for (cell, line) in last {
        match line.samples {
            Some(part) => kept.extend_from_slice(samples.get(part.range()).unwrap_or_default()),
            None => {
                let before = kept.len();
                kept.extend(unnumbered.iter().filter(|sample| sample.cell == cell).cloned());
                let is_measured = !matches!(line.finished.outcome, Outcome::Failed { .. });
                if is_measured && kept.len() == before {
                    // The cell's samples were lost, so it counts as never measured.
                    continue;
                }
            }
        }
        finished.push(line.finished);
    }
    (finished, kept)
}
