//! Plans of core-to-core cells.

use numalab_record::{C2cCell, Cell, Experiment};
use numalab_topology::{CpuId, Machine, NodeId};

use super::scope::Scope;

/// The pairs of cpus to measure, at most about `at_most`: all pairs where they
/// fit, else pairs of the first cpus of every core, L3 group and node in turn.
#[must_use]
pub fn c2c_pairs(machine: &Machine, scope: &Scope, at_most: usize) -> Vec<(CpuId, CpuId)> {
    let fits = |cpus: &[CpuId]| cpus.len() * cpus.len().saturating_sub(1) / 2 <= at_most;
    let mut cpus = scope.cpus.clone();
    if !fits(&cpus) {
        cpus = scope.one_cpu_per_core(machine);
    }
    if !fits(&cpus) {
        cpus = scope.two_cpus_per_l3_group(machine);
    }
    if !fits(&cpus) {
        cpus = scope.one_cpu_per_node(machine);
    }
    let upper = |(index, &from): (usize, &CpuId)| {
        cpus[index + 1..].iter().map(move |&to| (from, to)).collect::<Vec<_>>()
    };
    cpus.iter().enumerate().flat_map(upper).take(at_most.max(1)).collect()
}

/// A cell for each pair and each side's node as the line's home.
#[must_use]
pub fn c2c_cells(machine: &Machine, scope: &Scope, pairs: &[(CpuId, CpuId)]) -> Vec<Cell> {
    let homes = |from: CpuId, to: CpuId| -> Vec<NodeId> {
        let mut homes = vec![scope.nearest_node(machine, from), scope.nearest_node(machine, to)];
        homes.dedup();
        homes
    };
    pairs
        .iter()
        .flat_map(|&(from, to)| {
            homes(from, to)
                .into_iter()
                .map(move |home| Cell::of(Experiment::C2c(C2cCell { from, to, home })))
        })
        .collect()
}
