//! Plans of bandwidth cells.

use numalab_record::{
    AccessPattern, BandwidthCell, Cell, Experiment, IsaName, Pages, StreamKernel, WorkerPlan,
};
use numalab_topology::Machine;

use super::latency::matrix_workers;
use super::scope::{MatrixShape, Scope};

/// What bandwidth cells have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandwidthSpec {
    /// The order of visits.
    pub pattern: AccessPattern,
    /// The pages.
    pub pages: Pages,
    /// The instruction set.
    pub isa: IsaName,
    /// Bytes of all buffers of one worker together.
    pub size_bytes: u64,
}

/// A cell for each kernel with one team.
#[must_use]
pub fn bandwidth_cells(
    workers: &[WorkerPlan],
    kernels: &[StreamKernel],
    spec: &BandwidthSpec,
) -> Vec<Cell> {
    let one = |&kernel: &StreamKernel| {
        Cell::of(Experiment::Bandwidth(BandwidthCell {
            workers: workers.to_vec(),
            kernel,
            pattern: spec.pattern,
            size_bytes: spec.size_bytes,
            pages: spec.pages,
            isa: spec.isa.clone(),
        }))
    };
    kernels.iter().map(one).collect()
}

/// One worker per core in scope, each with the memory nearest to it.
#[must_use]
pub fn all_workers(machine: &Machine, scope: &Scope) -> Vec<WorkerPlan> {
    let nearest = |cpu| WorkerPlan { cpu, node: scope.nearest_node(machine, cpu) };
    scope.one_cpu_per_core(machine).into_iter().map(nearest).collect()
}

/// A cell for each pair of a node with cpus and a node with memory: all cores of
/// the first stream from the second.
#[must_use]
pub fn bandwidth_matrix(
    machine: &Machine,
    scope: &Scope,
    kernel: StreamKernel,
    spec: &BandwidthSpec,
) -> Vec<Cell> {
    let cores = scope.one_cpu_per_core(machine);
    let node_of = |cpu| machine.cpu(cpu).and_then(|cpu| cpu.node);
    matrix_workers(machine, scope, MatrixShape::PerNode)
        .into_iter()
        .flat_map(|pair| {
            let home = node_of(pair.cpu);
            let team: Vec<WorkerPlan> = cores
                .iter()
                .filter(|&&cpu| node_of(cpu) == home)
                .map(|&cpu| WorkerPlan { cpu, node: pair.node })
                .collect();
            bandwidth_cells(&team, &[kernel], spec)
        })
        .collect()
}
