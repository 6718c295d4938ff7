//! Counts of placement proofs.

use std::collections::BTreeMap;

use numalab_record::{Pages, Placement};
use numalab_topology::CpuSet;

use super::cell::CellSummary;

/// Size of a 2 MiB page in bytes.
const HUGE_2M_BYTES: u64 = 2 << 20;

/// Counts over the placement proofs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Number of workers with a proof.
    pub workers: usize,
    /// Workers with an affinity mask that, read back, held only their cpu.
    pub pinned: usize,
    /// Workers with every sampled page on the intended node.
    pub on_node: usize,
    pub pages_checked: u64,
    /// Bytes backed by each page size; the key is the page size in bytes.
    pub bytes_per_page_size: BTreeMap<u64, u64>,
    /// Finished cells that have workers but no proof.
    pub unproven_cells: usize,
    /// Finished cells that requested huge pages.
    pub huge_cells: usize,
    /// Number of such cells with less than 90 % of their bytes on huge pages.
    pub not_huge_cells: usize,
}

impl Proof {
    /// Counts the proofs of a run.
    pub fn of(cells: &[CellSummary<'_>]) -> Self {
        let mut proof = Self::default();
        for cell in cells.iter().filter(|cell| cell.counts()) {
            let experiment = &cell.cell.experiment;
            let has_workers = !experiment.workers().is_empty();
            proof.unproven_cells += usize::from(has_workers && cell.placements.is_empty());
            for placement in cell.placements {
                proof.add(placement);
            }
            let huge = cell.cell.experiment.description().axes().pages.and_then(huge_bytes);
            // A smaller buffer cannot contain a huge page.
            let can_be = |least: &u64| cell.placements.iter().all(|p| backed(p, 0) >= *least);
            if let Some(least) = huge.filter(can_be).filter(|_| !cell.placements.is_empty()) {
                let is_huge = |placement: &Placement| is_backed_by(placement, least);
                proof.huge_cells += 1;
                proof.not_huge_cells += usize::from(!cell.placements.iter().all(is_huge));
            }
        }
        proof
    }

    /// Returns the number of workers that, themselves or with their memory, were misplaced.
    pub fn misplaced(&self) -> usize {
        self.workers - self.pinned.min(self.on_node)
    }

    fn add(&mut self, placement: &Placement) {
        self.workers += 1;
        let wanted = CpuSet::from_iter([placement.cpu]);
        self.pinned += usize::from(placement.affinity == wanted);
        self.on_node += usize::from(is_on_node(placement));
        self.pages_checked = self.pages_checked.saturating_add(placement.pages_checked);
        for (&page_bytes, &bytes) in &placement.bytes_per_page_size {
            let sum = self.bytes_per_page_size.entry(page_bytes).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
}

/// Returns `true` if every sampled page was on the intended node.
pub fn is_on_node(placement: &Placement) -> bool {
    let mut nodes = placement.pages_per_node.iter();
    nodes.all(|(&node, &pages)| node == placement.memory_node || pages == 0)
}

pub(super) fn page_bytes(pages: Pages) -> u64 {
    match pages {
        Pages::Transparent => HUGE_2M_BYTES,
        Pages::Sized(bytes) => bytes,
    }
}

/// Returns the size of these pages in bytes, if they are huge.
pub(super) fn huge_bytes(pages: Pages) -> Option<u64> {
    match pages {
        Pages::Transparent => Some(HUGE_2M_BYTES),
        Pages::Sized(bytes) => (!pages.is_small()).then_some(bytes),
    }
}

/// Reports whether 90 % of a worker's memory is in pages of at least this size.
fn is_backed_by(placement: &Placement, least_page_bytes: u64) -> bool {
    let all = backed(placement, 0);
    backed(placement, least_page_bytes) >= all - all / 10
}

/// Returns the bytes of a worker's memory in pages of at least this size.
fn backed(placement: &Placement, least_page_bytes: u64) -> u64 {
    let pages = placement.bytes_per_page_size.range(least_page_bytes..);
    pages.fold(0, |sum, (_, &bytes)| sum.saturating_add(bytes))
}
