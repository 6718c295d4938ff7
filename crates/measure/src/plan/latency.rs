//! Plans of latency cells.

use numalab_record::{AccessPattern, Cell, Experiment, LatencyCell, Pages, Team, WorkerPlan};
use numalab_topology::Machine;

use super::scope::{MatrixShape, Scope};

/// What latency cells have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySpec {
    /// The order of visits.
    pub pattern: AccessPattern,
    /// The pages.
    pub pages: Pages,
    /// Who chases at the same time.
    pub team: Team,
}

/// The order of visits that shows memory and caches alone: random where every load
/// still hits the TLB, which takes large pages; else random over everything.
#[must_use]
pub fn plain_pattern(pages: Pages) -> AccessPattern {
    if pages == Pages::Base { AccessPattern::Random } else { AccessPattern::PageLocal }
}

/// Sizes from `from` to `to` bytes, two per octave (every power of two and its
/// one and a half), both ends included; `from` and `to` are at least 4 KiB.
#[must_use]
pub fn curve_sizes(from_bytes: u64, to_bytes: u64) -> Vec<u64> {
    let from = from_bytes.max(4096);
    let to = to_bytes.max(from);
    let powers = (12..63).map(|bit| 1_u64 << bit);
    let steps = powers.flat_map(|power| [power, power + power / 2]);
    let mut sizes: Vec<u64> = steps.filter(|&size| size > from && size < to).collect();
    sizes.insert(0, from);
    if to > from {
        sizes.push(to);
    }
    sizes
}

/// A cell for each worker and size, ordered so that cells which share a buffer (the
/// same node) or run at once (the same size) follow each other.
#[must_use]
pub fn latency_cells(workers: &[WorkerPlan], sizes: &[u64], spec: LatencySpec) -> Vec<Cell> {
    let LatencySpec { pattern, pages, team } = spec;
    let sized = sizes.iter().flat_map(|&size| workers.iter().map(move |&worker| (size, worker)));
    let mut cells: Vec<(u64, WorkerPlan)> = sized.collect();
    if team == Team::Serial {
        cells.sort_by_key(|&(_, worker)| worker.node);
    }
    let one = |(size_bytes, worker)| {
        Cell::of(Experiment::Latency(LatencyCell { worker, size_bytes, pattern, pages, team }))
    };
    cells.into_iter().map(one).collect()
}

/// The workers of a matrix over the scope.
#[must_use]
pub fn matrix_workers(machine: &Machine, scope: &Scope, shape: MatrixShape) -> Vec<WorkerPlan> {
    let cpus = match shape {
        MatrixShape::PerCpu => scope.cpus.clone(),
        MatrixShape::PerNode => scope.one_cpu_per_node(machine),
    };
    let pairs = scope.nodes.iter().flat_map(|&node| cpus.iter().map(move |&cpu| (cpu, node)));
    pairs.map(|(cpu, node)| WorkerPlan { cpu, node }).collect()
}
