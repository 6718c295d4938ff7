//! Plans of loaded-latency cells.

use numalab_record::{Cell, Experiment, LoadedCell, Pages, StreamKernel, WorkerPlan};

use super::cell;

/// Pauses between chunks of a load worker, from nearly idle to full speed.
const DELAYS: [u32; 9] = [4_096, 2_048, 1_024, 512, 256, 128, 64, 32, 0];

/// What the cells of one loaded-latency curve have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedSpec {
    /// The chaser.
    pub chaser: WorkerPlan,
    /// The load workers.
    pub load: Vec<WorkerPlan>,
    /// What each load worker does.
    pub kernel: StreamKernel,
    /// Length of each worker's buffer in bytes.
    pub size_bytes: u64,
    /// The pages.
    pub pages: Pages,
}

/// The cells of a curve: no load first, then rising load.
#[must_use]
pub fn loaded_cells(spec: &LoadedSpec) -> Vec<Cell> {
    let delays = std::iter::once(None).chain(DELAYS.into_iter().map(Some));
    delays
        .map(|delay| {
            cell(Experiment::Loaded(LoadedCell {
                chaser: spec.chaser,
                load: spec.load.clone(),
                kernel: spec.kernel,
                delay,
                size_bytes: spec.size_bytes,
                pages: spec.pages,
            }))
        })
        .collect()
}
