//! What `numalab measure` measures: first the core and the curve over sizes, then,
//! with the caches' end known, everything that needs a size beyond them.

use numalab_host::page_size_bytes;
use numalab_record::{
    AccessPattern, Cell, CoreCell, Document, Experiment, LatencyCell, Metric, Pages, StreamKernel,
    Team, WorkerPlan,
};
use numalab_stats::{Sample, SizePoint, plateaus};
use numalab_topology::Machine;

use crate::plan::{
    BandwidthSpec, LatencySpec, LoadedSpec, MatrixShape, Scope, all_workers, bandwidth_cells,
    bandwidth_matrix, c2c_cells, c2c_pairs, curve_sizes, isa_name, latency_cells, loaded_cells,
    matrix_workers, plain_pattern,
};

/// How much is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// About 10 s: a health check.
    Quick,
    /// About a minute.
    #[default]
    Normal,
    /// As long as it takes to see everything.
    Thorough,
}

/// Where DRAM is surely reached if nothing better is known.
const BEYOND_CACHES_BYTES: u64 = 256 << 20;
/// The TLB is probed from so many pages on: fewer than any first level holds.
const FEWEST_TLB_PAGES: u64 = 16;
/// More small pages than the last level of a TLB holds, for most processors.
const MOST_TLB_PAGES: u64 = 8192;
/// More matrix cells than this, and one cpu speaks for its node.
const MOST_MATRIX_CELLS: usize = 256;

/// The plan of a whole measuring run.
#[derive(Clone, Debug)]
pub struct MeasurePlan<'a> {
    machine: &'a Machine,
    scope: Scope,
    effort: Effort,
    /// The pages for everything that is not about pages.
    pages: Pages,
    /// The size beyond the caches, where another run fixes it.
    beyond_bytes: Option<u64>,
}

impl<'a> MeasurePlan<'a> {
    /// A plan for the cpus and nodes in `scope`; `pages` back the large buffers.
    #[must_use]
    pub fn new(machine: &'a Machine, scope: Scope, effort: Effort, pages: Pages) -> Self {
        Self { machine, scope, effort, pages, beyond_bytes: None }
    }

    /// The same with the sizes of another run, so that the two can be compared: where the caches
    /// of a machine end is found a little differently each time.
    #[must_use]
    pub fn like(self, other: Option<&Document>) -> Self {
        let size = |cell: &Cell| match &cell.experiment {
            Experiment::Bandwidth(cell) => Some(cell.size_bytes),
            _ => None,
        };
        let beyond_bytes = other.and_then(|other| other.run.plan.iter().find_map(size));
        Self { beyond_bytes, ..self }
    }

    /// The latency curve over sizes on the first cpu, and the core: memory first, so that its
    /// figure is seen at once and is there whatever the budget reaches.
    #[must_use]
    pub fn first_phase(&self) -> Vec<Cell> {
        let worker = self.first_worker();
        let mut sizes = self.curve_sizes();
        let memory = sizes.iter().position(|&size| size >= BEYOND_CACHES_BYTES);
        let memory = memory.unwrap_or(sizes.len().saturating_sub(1));
        sizes[..=memory].rotate_right(1);
        let mut cells = latency_cells(&[worker], &sizes, self.plain_latency());
        cells.push(Cell::of(Experiment::Core(CoreCell { cpu: worker.cpu })));
        cells
    }

    /// Everything else, at a size beyond the caches that the first phase found.
    #[must_use]
    pub fn second_phase(&self, first: &Document) -> Vec<Cell> {
        let found = || beyond_caches(first).min(self.most_bytes_per_worker());
        self.phase_beyond(self.beyond_bytes.unwrap_or_else(found))
    }

    /// Both phases, with a guess instead of what the first one finds.
    #[must_use]
    pub fn foreseen(&self) -> Vec<Cell> {
        let mut cells = self.first_phase();
        let guess = BEYOND_CACHES_BYTES.min(self.most_bytes_per_worker());
        cells.extend(self.phase_beyond(self.beyond_bytes.unwrap_or(guess)));
        cells
    }

    fn phase_beyond(&self, beyond_bytes: u64) -> Vec<Cell> {
        let mut cells = self.matrix(beyond_bytes);
        cells.extend(self.translation(beyond_bytes));
        cells.extend(self.interference(beyond_bytes));
        cells.extend(self.bandwidths(beyond_bytes));
        cells.extend(self.loaded(beyond_bytes));
        let pairs = match self.effort {
            Effort::Quick => 8,
            Effort::Normal => 64,
            Effort::Thorough => 2_016,
        };
        let pairs = c2c_pairs(self.machine, &self.scope, pairs);
        cells.extend(c2c_cells(self.machine, &self.scope, &pairs));
        cells
    }

    fn plain_latency(&self) -> LatencySpec {
        self.latency(plain_pattern(self.pages), self.pages)
    }

    fn latency(&self, pattern: AccessPattern, pages: Pages) -> LatencySpec {
        LatencySpec { pattern, pages, team: Team::Serial }
    }

    fn first_worker(&self) -> WorkerPlan {
        let cpu = self.scope.cpus.first().copied().unwrap_or_default();
        WorkerPlan { cpu, node: self.scope.nearest_node(self.machine, cpu) }
    }

    fn curve_sizes(&self) -> Vec<u64> {
        let largest = match self.effort {
            Effort::Quick => 256 << 20,
            Effort::Normal => 1 << 30,
            Effort::Thorough => 8 << 30,
        };
        let sizes = curve_sizes(4 << 10, largest.min(self.most_bytes_per_worker()));
        let step = if self.effort == Effort::Quick { 2 } else { 1 };
        sizes.into_iter().step_by(step).collect()
    }

    /// A share of the memory that leaves room for the system and the other workers.
    fn most_bytes_per_worker(&self) -> u64 {
        let workers = self.scope.cpus.len() as u64 + 1;
        let of_node = self.scope.nodes.iter().filter_map(|&node| self.machine.node(node));
        let smallest = of_node.map(|node| node.memory_bytes / 4).min().unwrap_or(1 << 30);
        let free = (self.machine.memory_bytes() / 2 / workers).min(smallest);
        (free & !((2 << 20) - 1)).max(4 << 20)
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

    /// Random and page-local chases on the large pages and on base pages, and one line of each
    /// page: what a page walk costs, and what the TLB holds.
    fn translation(&self, size_bytes: u64) -> Vec<Cell> {
        let worker = self.first_worker();
        let mut cells = Vec::new();
        for pages in [self.pages, Pages::Base] {
            let mut chase = |pattern, sizes: &[u64]| {
                cells.extend(latency_cells(&[worker], sizes, self.latency(pattern, pages)));
            };
            chase(AccessPattern::PageLocal, &[size_bytes]);
            chase(AccessPattern::Random, &[size_bytes]);
            for (apart_bytes, counts) in self.tlb_probes(pages, size_bytes) {
                let sizes: Vec<u64> = counts.iter().map(|count| count * apart_bytes).collect();
                chase(AccessPattern::OneLinePer(apart_bytes), &sizes);
            }
            if pages == self.pages && pages == Pages::Base {
                break;
            }
        }
        cells.retain(|cell| !self.is_in_matrix(cell));
        cells
    }

    /// How far apart lines lie, and how many there are: one in each page, large ones as far as the
    /// memory of other cells goes. One in each base page's size of a large one shows whether the
    /// TLB takes the large one for one page.
    fn tlb_probes(&self, pages: Pages, size_bytes: u64) -> Vec<(u64, Vec<u64>)> {
        let base_bytes = page_size_bytes(Pages::Base);
        if pages == Pages::Base {
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
        let powers = (FEWEST_TLB_PAGES.ilog2()..=most.max(1).ilog2()).map(|bit| 1_u64 << bit);
        let counts = powers.flat_map(|power| [power, power + power / 2]);
        let step = if self.effort == Effort::Quick { 2 } else { 1 };
        counts.step_by(step).filter(|count| *count <= most).collect()
    }

    fn is_in_matrix(&self, cell: &Cell) -> bool {
        let Experiment::Latency(LatencyCell { pattern, pages, .. }) = cell.experiment else {
            return false;
        };
        pattern == plain_pattern(self.pages) && pages == self.pages
    }

    /// All cpus chasing at once, each in its nearest memory.
    fn interference(&self, size_bytes: u64) -> Vec<Cell> {
        let workers = all_workers(self.machine, &self.scope);
        if workers.len() < 2 || self.effort == Effort::Quick {
            return Vec::new();
        }
        let spec = LatencySpec { team: Team::Concurrent, ..self.plain_latency() };
        latency_cells(&workers, &[size_bytes], spec)
    }

    fn bandwidths(&self, beyond_bytes: u64) -> Vec<Cell> {
        let spec = |pattern| BandwidthSpec {
            pattern,
            pages: self.pages,
            isa: isa_name(numalab_membench::Isa::detect()),
            size_bytes: beyond_bytes,
        };
        let sequential = spec(AccessPattern::Sequential);
        let (first, all) = ([self.first_worker()], all_workers(self.machine, &self.scope));
        let quick = [StreamKernel::Read, StreamKernel::WriteNt, StreamKernel::Triad];
        let kernels = if self.effort == Effort::Quick { &quick[..] } else { &StreamKernel::ALL };
        let mut cells = bandwidth_cells(&first, kernels, &sequential);
        if all.len() > 1 {
            cells.extend(bandwidth_cells(&all, kernels, &sequential));
        }
        if self.effort != Effort::Quick {
            for pattern in [AccessPattern::Stride(256), AccessPattern::Random] {
                cells.extend(bandwidth_cells(&all, &[StreamKernel::Read], &spec(pattern)));
            }
        }
        if self.scope.nodes.len() > 1 {
            let read = StreamKernel::Read;
            cells.extend(bandwidth_matrix(self.machine, &self.scope, read, &sequential));
        }
        let mut seen = std::collections::BTreeSet::new();
        cells.retain(|cell| seen.insert(cell.id.clone()));
        cells
    }

    /// The first cpu against all other cores of its node.
    fn loaded(&self, size_bytes: u64) -> Vec<Cell> {
        let chaser = self.first_worker();
        let core_of = |cpu| self.machine.cpu(cpu).and_then(|cpu| cpu.core);
        let load: Vec<WorkerPlan> = all_workers(self.machine, &self.scope)
            .into_iter()
            .filter(|worker| worker.node == chaser.node)
            .filter(|worker| {
                core_of(worker.cpu).is_none() || core_of(worker.cpu) != core_of(chaser.cpu)
            })
            .filter(|worker| worker.cpu != chaser.cpu)
            .collect();
        if load.is_empty() || self.effort == Effort::Quick {
            return Vec::new();
        }
        let (kernel, pages) = (StreamKernel::Read, self.pages);
        loaded_cells(&LoadedSpec { chaser, load, kernel, size_bytes, pages })
    }
}

/// Four times where the last cache ends, as the curve shows it: by then at most a
/// quarter of the visits can hit it. Without a curve, a size that is surely enough.
#[must_use]
pub fn beyond_caches(document: &Document) -> u64 {
    let point = |result: &numalab_record::CellResult| {
        let Experiment::Latency(latency) = &result.cell.experiment else {
            return None;
        };
        let latency_ns = Sample::new(result.values(Metric::Latency)).ok()?.median();
        Some(SizePoint { size_bytes: latency.size_bytes, latency_ns })
    };
    let points: Vec<SizePoint> = document.cells.iter().filter_map(point).collect();
    let levels = plateaus(&points).unwrap_or_default();
    let last_capacity = levels.iter().filter_map(|level| level.capacity_bytes).next_back();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in bytes")]
    let last_capacity = last_capacity.map(|bytes| bytes as u64);
    last_capacity.map_or(BEYOND_CACHES_BYTES, |bytes| {
        (bytes.saturating_mul(4)).next_power_of_two().max(BEYOND_CACHES_BYTES / 4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measuring_run_begins_with_memory_and_leaves_out_no_size() {
        let root = numalab_host::Root::live();
        let machine = numalab_host::read_machine(&root).expect("a machine").machine;
        let scope = Scope::new(&machine, None, None).expect("something is usable");
        let plan = MeasurePlan::new(&machine, scope, Effort::Quick, Pages::Base);
        let size = |cell: &Cell| match &cell.experiment {
            Experiment::Latency(latency) => Some(latency.size_bytes),
            _ => None,
        };
        let mut sizes: Vec<u64> = plan.first_phase().iter().filter_map(size).collect();
        assert!(matches!(plan.first_phase()[0].experiment, Experiment::Latency(_)));
        assert_eq!(Some(&sizes[0]), plan.curve_sizes().last(), "no larger one is quick");
        sizes.sort_unstable();
        assert_eq!(sizes, plan.curve_sizes());
    }
}
