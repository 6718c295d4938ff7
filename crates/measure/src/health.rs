//! Chooses the cells of a health check: those of a baseline that show the most within seconds.

use std::collections::BTreeMap;

use numalab_record::{
    AccessPattern, Cell, CoreCell, Document, Experiment, StreamKernel, Team, WorkerPlan,
};
use numalab_topology::{Machine, NodeId};

use crate::scope::Scope;

/// Returns the cell of the core clock and, for each node of the scope, those of the latency of its
/// memory and of the bandwidth at which most of its cpus read it. They are cells of the baseline
/// with their names and sizes. Cells that need a cpu or node outside the scope are left out.
pub fn health_cells(baseline: &Document, machine: &Machine, scope: &Scope) -> Vec<Cell> {
    let mut clock = None;
    let mut by_node: BTreeMap<(NodeId, FigureKind), &Cell> = BTreeMap::new();
    for cell in baseline.cells.iter().map(|result| &result.cell) {
        if let Experiment::Core(CoreCell { cpu }) = cell.experiment {
            clock = clock.or(scope.cpus.contains(&cpu).then_some(cell));
        }
        let Some((node, kind)) = node_and_kind(cell, machine, scope) else { continue };
        let known = by_node.entry((node, kind)).or_insert(cell);
        if weight(cell) > weight(known) {
            *known = cell;
        }
    }
    clock.into_iter().chain(by_node.into_values()).cloned().collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FigureKind {
    Latency,
    Bandwidth,
}

/// Returns the node that a cell describes, if its workers are local to it and in scope.
fn node_and_kind(cell: &Cell, machine: &Machine, scope: &Scope) -> Option<(NodeId, FigureKind)> {
    let kind = match &cell.experiment {
        Experiment::Latency(latency) if is_plain(latency.pattern, latency.team) => {
            FigureKind::Latency
        }
        Experiment::Bandwidth(streams)
            if streams.kernel == StreamKernel::Read
                && streams.pattern == AccessPattern::Sequential =>
        {
            FigureKind::Bandwidth
        }
        _ => return None,
    };
    let workers = cell.experiment.workers();
    let node = workers.first()?.node;
    // Memory without cpus is equally local to all of them.
    let has_cpus = machine.node(node).is_some_and(|node| !node.cpus.is_empty());
    let can_work = |worker: &WorkerPlan| {
        worker.node == node
            && scope.nodes.contains(&node)
            && scope.cpus.contains(&worker.cpu)
            && (!has_cpus || scope.nearest_node(machine, worker.cpu) == node)
    };
    workers.iter().all(can_work).then_some((node, kind))
}

/// Reports whether a cell shows memory alone, without page walks.
fn is_plain(pattern: AccessPattern, team: Team) -> bool {
    team == Team::Serial && matches!(pattern, AccessPattern::PageLocal | AccessPattern::Random)
}

/// Orders cells by significance: more cpus, then an order without TLB misses, then a larger buffer.
fn weight(cell: &Cell) -> (usize, bool, u64) {
    match &cell.experiment {
        // A latency cell has one worker.
        Experiment::Latency(cell) => (1, cell.pattern == AccessPattern::PageLocal, cell.size_bytes),
        Experiment::Bandwidth(cell) => (cell.workers.len(), false, cell.size_bytes),
        _ => (0, false, 0),
    }
}

#[cfg(test)]
mod tests;
