//! Plans `numalab measure`: first the core and the curve over sizes, then, with the caches' end
//! known, all cells that need a size beyond it.

use numalab_record::{
    BandwidthCell, Cell, CoreCell, Document, Effort, Experiment, LatencyCell, Metric, Pages,
    StreamKernel, SurveyChoice,
};
use numalab_stats::{Sample, SizePoint, plateaus};
use numalab_topology::Machine;

use crate::error::MeasureError;
use crate::kind::MEASURED_BEYOND_CACHES;
use crate::kind::loaded::loaded_surface;
use crate::plan::check_plan;
use crate::scope::{Scope, ScopeError};
use crate::survey::Survey;

/// A size surely beyond the caches, if nothing better is known.
const BEYOND_CACHES_BYTES: u64 = 256 << 20;

/// The plan of a whole measuring run.
#[derive(Clone, Debug)]
pub struct MeasurePlan<'a> {
    survey: Survey<'a>,
    /// The size beyond the caches, if another run fixes it.
    beyond_bytes: Option<u64>,
}

impl<'a> MeasurePlan<'a> {
    /// Creates a plan for the cpus and nodes in `scope`; `pages` back the large buffers.
    pub fn new(machine: &'a Machine, scope: Scope, effort: Effort, pages: Pages) -> Self {
        Self { survey: Survey { machine, scope, effort, pages }, beyond_bytes: None }
    }

    /// Returns the plan of an earlier run on this machine, from its options.
    ///
    /// # Errors
    ///
    /// [`ScopeError`] if one of its cpus or nodes cannot be used any more.
    pub fn again(machine: &'a Machine, choice: &SurveyChoice) -> Result<Self, ScopeError> {
        let scope = Scope::new(machine, Some(&choice.cpus), Some(&choice.nodes))?;
        let plan = Self::new(machine, scope, choice.effort, choice.pages);
        Ok(Self { beyond_bytes: choice.beyond_bytes, ..plan })
    }

    /// Returns the options, which suffice to plan the same run [again](Self::again).
    pub fn choice(&self) -> SurveyChoice {
        SurveyChoice {
            effort: self.survey.effort,
            cpus: self.survey.scope.cpus.iter().copied().collect(),
            nodes: self.survey.scope.nodes.iter().copied().collect(),
            pages: self.survey.pages,
            beyond_bytes: self.beyond_bytes,
        }
    }

    /// Returns the plan with the sizes of another run, so that the two can be compared: each run
    /// finds a slightly different end of the machine's caches.
    pub fn like(self, other: Option<&Document>) -> Self {
        // Bandwidth cells have the size beyond the caches that the other run used.
        let size = |cell: &Cell| cell.experiment.cell().map(|cell: &BandwidthCell| cell.size_bytes);
        let beyond_bytes = other.and_then(|other| other.run.plan.iter().find_map(size));
        Self { beyond_bytes: beyond_bytes.or(self.beyond_bytes), ..self }
    }

    /// Fails if nothing of the curve can be measured, for lack of pages of the chosen size.
    ///
    /// # Errors
    /// The reason of the curve's first cell.
    pub fn check(&self) -> Result<(), MeasureError> {
        check_plan(&self.survey.curve(BEYOND_CACHES_BYTES))
    }

    /// Returns the latency curve over sizes on the first cpu, and the core. The largest size is
    /// first, so that the figure of memory is shown at once and exists even if the budget runs out.
    pub fn first_phase(&self) -> Vec<Cell> {
        let mut cells = self.survey.curve(BEYOND_CACHES_BYTES);
        cells.push(Cell::of(Experiment::Core(CoreCell { cpu: self.survey.first_worker().cpu })));
        cells
    }

    /// Returns all other cells, at a size beyond the caches found by the first phase.
    pub fn second_phase(&self, first: &Document) -> Vec<Cell> {
        self.phase_beyond(self.beyond_bytes(Some(first)))
    }

    /// Returns the bytes of a worker's buffer beyond the caches found by the first phase, or a
    /// guess without it.
    fn beyond_bytes(&self, first: Option<&Document>) -> u64 {
        let found = || first.map_or(BEYOND_CACHES_BYTES, beyond_caches);
        let fitting = || found().min(self.survey.most_bytes_per_worker());
        self.beyond_bytes.unwrap_or_else(fitting)
    }

    /// Returns both phases, with a guess in place of the first one's result.
    pub fn foreseen(&self) -> Vec<Cell> {
        let mut cells = self.first_phase();
        cells.extend(self.phase_beyond(self.beyond_bytes(None)));
        cells
    }

    /// Returns this plan's cells, with its loaded cells replaced by load on the memory of every
    /// node by these kernels; `first` is the result of the first phase, if there is one.
    pub fn with_surface(
        &self,
        cells: Vec<Cell>,
        kernels: &[StreamKernel],
        first: Option<&Document>,
    ) -> Vec<Cell> {
        let Survey { machine, scope, pages, .. } = &self.survey;
        let cpu = scope.cpus.first().copied().unwrap_or_default();
        let buffers = (self.beyond_bytes(first), *pages);
        let surface = loaded_surface(machine, scope, cpu, kernels, buffers);
        let is_load = |cell: &Cell| matches!(cell.experiment, Experiment::Loaded(_));
        cells.into_iter().filter(|cell| !is_load(cell)).chain(surface).collect()
    }

    fn phase_beyond(&self, beyond_bytes: u64) -> Vec<Cell> {
        MEASURED_BEYOND_CACHES.iter().flat_map(|kind| kind(&self.survey, beyond_bytes)).collect()
    }
}

/// Returns four times the size at which the last cache ends in the curve, so that at most a quarter
/// of the visits can hit it. Without a curve, returns a size that is surely enough.
pub fn beyond_caches(document: &Document) -> u64 {
    let point = |result: &numalab_record::CellResult| {
        let latency: &LatencyCell = result.cell.experiment.cell()?;
        let latency_ns = Sample::new(result.values(Metric::Latency)).ok()?.median();
        Some(SizePoint { size_bytes: latency.size_bytes, latency_ns })
    };
    let points: Vec<SizePoint> = document.cells.iter().filter_map(point).collect();
    let levels = plateaus(&points).unwrap_or_default();
    let last_capacity = levels.iter().filter_map(|level| level.capacity_bytes).next_back();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in bytes")]
    let last_capacity = last_capacity.map(|bytes| bytes as u64);
    last_capacity.map_or(BEYOND_CACHES_BYTES, |bytes| {
        // A power of two absorbs small differences in the capacity found.
        (bytes.saturating_mul(4)).next_power_of_two().max(BEYOND_CACHES_BYTES / 4)
    })
}

#[cfg(test)]
mod tests;
