//! What a health check measures: of a baseline's cells those that tell most in seconds.

use std::collections::BTreeMap;

use numalab_record::{
    AccessPattern, Cell, CoreCell, Document, Experiment, StreamKernel, Team, WorkerPlan,
};
use numalab_topology::{Machine, NodeId};

use crate::scope::Scope;

/// The core clock, and for each node of the scope the latency of its memory and the bandwidth at
/// which the most of its own cpus read it: cells of the baseline, whose names and sizes they
/// keep. What needs a cpu or a node that the scope has not is left out.
#[must_use]
pub fn health_cells(baseline: &Document, machine: &Machine, scope: &Scope) -> Vec<Cell> {
    let mut clock = None;
    let mut by_node: BTreeMap<(NodeId, Kind), &Cell> = BTreeMap::new();
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
enum Kind {
    Latency,
    Bandwidth,
}

/// The node whose memory a cell tells about, if its workers are local to it and can work.
fn node_and_kind(cell: &Cell, machine: &Machine, scope: &Scope) -> Option<(NodeId, Kind)> {
    let kind = match &cell.experiment {
        Experiment::Latency(latency) if is_plain(latency.pattern, latency.team) => Kind::Latency,
        Experiment::Bandwidth(streams)
            if streams.kernel == StreamKernel::Read
                && streams.pattern == AccessPattern::Sequential =>
        {
            Kind::Bandwidth
        }
        _ => return None,
    };
    let workers = cell.experiment.workers();
    let node = workers.first()?.node;
    // Memory without cpus is as near as it can be to any.
    let has_cpus = machine.node(node).is_some_and(|node| !node.cpus.is_empty());
    let can_work = |worker: &WorkerPlan| {
        worker.node == node
            && scope.nodes.contains(&node)
            && scope.cpus.contains(&worker.cpu)
            && (!has_cpus || scope.nearest_node(machine, worker.cpu) == node)
    };
    workers.iter().all(can_work).then_some((node, kind))
}

/// Memory as such, without page walks.
fn is_plain(pattern: AccessPattern, team: Team) -> bool {
    team == Team::Serial && matches!(pattern, AccessPattern::PageLocal | AccessPattern::Random)
}

/// What tells more: more cpus, then the order that misses no TLB, then the larger buffer.
fn weight(cell: &Cell) -> (usize, bool, u64) {
    match &cell.experiment {
        Experiment::Latency(cell) => (1, cell.pattern == AccessPattern::PageLocal, cell.size_bytes),
        Experiment::Bandwidth(cell) => (cell.workers.len(), false, cell.size_bytes),
        _ => (0, false, 0),
    }
}

#[cfg(test)]
mod tests;
