//! The chases of `numalab measure`: the curve, the matrix, address translation, all cpus at once.

use numalab_host::{base_pages, page_size_bytes};
use numalab_record::{AccessPattern, Cell, Effort, LatencyCell, Pages, Team};

use super::{LatencySpec, curve_sizes, latency_cells, plain_pattern};
use crate::scope::{MatrixShape, all_workers, matrix_workers};
use crate::survey::Survey;

/// Smallest number of pages in a TLB probe: fewer than any first level holds.
const FEWEST_TLB_PAGES: u64 = 16;
/// Number of small pages that exceeds the last TLB level of most processors.
const MOST_TLB_PAGES: u64 = 8192;
/// Sizes of the curve are multiples of this, as its smallest ones are.
const SIZE_STEP_BYTES: u64 = 2 << 10;
/// With more matrix cells than this, one cpu represents its node.
const MOST_MATRIX_CELLS: usize = 256;

/// Plans all chases at a size beyond every cache.
pub(in crate::kind) fn beyond_caches(survey: &Survey<'_>, size_bytes: u64) -> Vec<Cell> {
    [survey.matrix(size_bytes), survey.translation(size_bytes), survey.interference(size_bytes)]
        .concat()
}

impl Survey<'_> {
    /// Plans the latency curve over sizes on the first cpu, beginning with `memory_bytes` or the
    /// largest size.
    pub(crate) fn curve(&self, memory_bytes: u64) -> Vec<Cell> {
        let mut sizes = self.curve_sizes();
        let memory = sizes.iter().position(|&size| size >= memory_bytes);
        let memory = memory.unwrap_or(sizes.len().saturating_sub(1));
        // Memory first, so that its figure exists even if the budget runs out.
        sizes[..=memory].rotate_right(1);
        latency_cells(&[self.first_worker()], &sizes, self.plain_latency())
    }

    fn plain_latency(&self) -> LatencySpec {
        self.latency(plain_pattern(self.pages), self.pages)
    }

    fn latency(&self, pattern: AccessPattern, pages: Pages) -> LatencySpec {
        LatencySpec { pattern, pages, team: Team::Serial }
    }

    pub(crate) fn curve_sizes(&self) -> Vec<u64> {
        let largest = match self.effort {
            Effort::Quick => 256 << 20,
            Effort::Normal => 1 << 30,
            Effort::Thorough => 8 << 30,
        };
        let largest = largest.min(self.most_bytes_per_worker());
        let sizes = curve_sizes(4 << 10, largest);
        if self.effort != Effort::Quick {
            return sizes;
        }
        let mut quick: Vec<u64> = sizes.into_iter().step_by(2).collect();
        quick.extend(self.sizes_about_caches().filter(|size| *size < largest));
        quick.sort_unstable();
        quick.dedup();
        quick
    }

    /// Returns three quarters, one and four thirds of the size of each cache of the first cpu: at one
    /// size an octave, the end of a cache of 32 KiB would be anywhere between 32 and 64.
    fn sizes_about_caches(&self) -> impl Iterator<Item = u64> + '_ {
        let caches = self.machine.data_caches_of(self.first_worker().cpu).into_iter();
        let sizes = caches.filter_map(|cache| cache.size_bytes);
        sizes.flat_map(|size| {
            [size / 4 * 3, size, size / 3 * 4].map(|size| size & !(SIZE_STEP_BYTES - 1))
        })
    }

    fn matrix(&self, size_bytes: u64) -> Vec<Cell> {
        let fits = self.scope.cpus.len() * self.scope.nodes.len() <= MOST_MATRIX_CELLS;
        let shape = match self.effort {
            Effort::Quick => MatrixShape::PerNode,
            _ if fits => MatrixShape::PerCpu,
            _ => MatrixShape::PerNode,
        };
        let workers = matrix_workers(self.machine, &self.scope, shape);
        latency_cells(&workers, &[size_bytes], self.plain_latency())
    }

    /// Plans random and page-local chases on large pages and on base pages, and one line of each
    /// page, which show the cost of a page walk and the reach of the TLB.
    fn translation(&self, size_bytes: u64) -> Vec<Cell> {
        let worker = self.first_worker();
        let mut cells = Vec::new();
        for pages in [self.pages, base_pages()] {
            let mut chase = |pattern, sizes: &[u64]| {
                cells.extend(latency_cells(&[worker], sizes, self.latency(pattern, pages)));
            };
            chase(AccessPattern::PageLocal, &[size_bytes]);
            chase(AccessPattern::Random, &[size_bytes]);
            for (apart_bytes, counts) in self.tlb_probes(pages, size_bytes) {
                let sizes: Vec<u64> = counts.iter().map(|count| count * apart_bytes).collect();
                chase(AccessPattern::OneLinePer(apart_bytes), &sizes);
            }
            if pages == self.pages && pages == base_pages() {
                break;
            }
        }
        // The matrix has the same cells for this worker.
        cells.retain(|cell| !self.is_in_matrix(cell));
        cells
    }

    /// Returns the distances between lines and, for each, the numbers of lines: one line per page,
    /// on large pages up to the memory of other cells. One line per base page size within large
    /// pages shows whether the TLB keeps a large page as one entry.
    fn tlb_probes(&self, pages: Pages, size_bytes: u64) -> Vec<(u64, Vec<u64>)> {
        let base_bytes = page_size_bytes(base_pages());
        if pages == base_pages() {
            return vec![(base_bytes, self.tlb_counts(MOST_TLB_PAGES))];
        }
        let page_bytes = page_size_bytes(pages);
        let curve = self.curve_sizes().last().copied().unwrap_or(0);
        let quick = self.effort == Effort::Quick;
        let most_bytes = if quick { size_bytes } else { curve.max(size_bytes) };
        let most = (most_bytes / page_bytes).min(MOST_TLB_PAGES);
        let within = if quick { vec![] } else { vec![MOST_TLB_PAGES / 16, MOST_TLB_PAGES / 4] };
        let within = [within, vec![MOST_TLB_PAGES]].concat();
        vec![(page_bytes, self.tlb_counts(most)), (base_bytes, within)]
    }

    fn tlb_counts(&self, most: u64) -> Vec<u64> {
        // Two counts per octave, as for the sizes of curves.
        let powers = (FEWEST_TLB_PAGES.ilog2()..=most.max(1).ilog2()).map(|bit| 1_u64 << bit);
        let counts = powers.flat_map(|power| [power, power + power / 2]);
        let step = if self.effort == Effort::Quick { 2 } else { 1 };
        counts.step_by(step).filter(|count| *count <= most).collect()
    }

    fn is_in_matrix(&self, cell: &Cell) -> bool {
        cell.experiment.cell().is_some_and(|cell: &LatencyCell| {
            cell.pattern == plain_pattern(self.pages) && cell.pages == self.pages
        })
    }

    /// Plans all cpus chasing at once, each in its nearest memory.
    fn interference(&self, size_bytes: u64) -> Vec<Cell> {
        let workers = all_workers(self.machine, &self.scope);
        // A single chaser cannot interfere with others.
        if workers.len() < 2 || self.effort == Effort::Quick {
            return Vec::new();
        }
        let spec = LatencySpec { team: Team::Concurrent, ..self.plain_latency() };
        latency_cells(&workers, &[size_bytes], spec)
    }
}
