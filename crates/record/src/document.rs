//! A run with all its measurements, as one value.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cell::{Cell, CellId, Finished, Outcome};
use crate::cells_file::{CellsError, complete_part, last_attempts};
use crate::csv::{CsvError, parse_samples};
use crate::kind::{Kind, KindError, file};
use crate::metric::Metric;
use crate::placement::Placement;
use crate::run::Run;
use crate::sample::Sample;
use crate::shared::counted_values;

/// A cell with all its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellResult {
    /// The planned cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The outcome of the cell; `None` if the run was interrupted before the cell ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Outcome>,
    /// The placement of each worker.
    pub placements: Vec<Placement>,
    /// The cell's samples in time order, including disturbed ones.
    pub samples: Vec<Sample>,
}

impl CellResult {
    /// Returns the values of `metric` that count, in time order: the undisturbed ones, or all if
    /// [`all_windows_count`](crate::all_windows_count).
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        counted_values(self.samples.iter().filter(|sample| sample.metric == metric))
    }
}

/// A run with its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Document {
    /// Everything known before the first sample.
    #[serde(flatten)]
    pub run: Run,
    /// The cells in the plan's order.
    pub cells: Vec<CellResult>,
}

/// An error in the files of a result directory.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// `run.json` cannot be read, or is of another kind.
    #[error("{name} {0}", name = file::RUN)]
    Run(#[source] KindError),
    /// A complete line of `cells.jsonl` cannot be read.
    #[error(transparent)]
    Cells(#[from] CellsError),
    /// `samples.csv` cannot be read.
    #[error("{name}: {0}", name = file::SAMPLES)]
    Samples(#[from] CsvError),
}

impl Document {
    /// Joins the contents of the three files of a result directory. Unterminated last lines, as a
    /// crash leaves them, are dropped, and so are samples of unfinished cells.
    ///
    /// # Errors
    ///
    /// [`DocumentError`] names the file, the line and the error.
    pub fn from_files(run: &str, cells: &str, samples: &str) -> Result<Self, DocumentError> {
        let run: Run = Kind::Run.read(run).map_err(DocumentError::Run)?;
        let complete = complete_part(cells, samples)?;
        let samples = parse_samples(&samples[..complete.samples_bytes])?;
        let (finished, samples) = last_attempts(complete.lines, &samples);
        Ok(Self::join(run, finished, samples))
    }

    /// Joins a run with its finished cells and samples; those that belong to no planned cell are
    /// dropped.
    pub fn join(run: Run, finished: Vec<Finished>, samples: Vec<Sample>) -> Self {
        let unmeasured = |cell: &Cell| CellResult {
            cell: cell.clone(),
            ended: None,
            placements: Vec::new(),
            samples: Vec::new(),
        };
        let mut cells: Vec<CellResult> = run.plan.iter().map(unmeasured).collect();
        let index: BTreeMap<CellId, usize> =
            run.plan.iter().enumerate().map(|(at, cell)| (cell.id.clone(), at)).collect();
        for done in finished {
            if let Some(&at) = index.get(&done.cell) {
                cells[at].ended = Some(done.outcome);
                cells[at].placements = done.placements;
            }
        }
        for sample in samples {
            if let Some(&at) = index.get(&sample.cell) {
                cells[at].samples.push(sample);
            }
        }
        Self { run, cells }
    }
}
