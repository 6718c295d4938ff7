//! Plans of loaded-latency cells.

use numalab_record::{Cell, Experiment, LoadedCell, Pages, StreamKernel, WorkerPlan};
use numalab_topology::{CpuId, Machine, NodeId};

use super::Scope;
use super::bandwidth::all_workers;

/// Pauses between chunks of a load worker, from nearly idle to full speed.
const DELAYS: [u32; 9] = [4_096, 2_048, 1_024, 512, 256, 128, 64, 32, 0];

/// The load workers of a chaser on `cpu`: one cpu of every other core, each on memory of `node`.
#[must_use]
pub fn load_workers(machine: &Machine, scope: &Scope, cpu: CpuId, node: NodeId) -> Vec<WorkerPlan> {
    let others = all_workers(machine, scope).into_iter().filter(|worker| worker.cpu != cpu);
    others.map(|worker| WorkerPlan { node, ..worker }).collect()
}

/// The curves of a surface: `chaser` on the memory of every node in scope, loaded by cores of
/// its own node and, apart from them, by those of the other nodes, with every kernel.
#[must_use]
pub fn loaded_surface(
    machine: &Machine,
    scope: &Scope,
    cpu: CpuId,
    kernels: &[StreamKernel],
    (size_bytes, pages): (u64, Pages),
) -> Vec<Cell> {
    let home = machine.cpu(cpu).and_then(|cpu| cpu.node);
    let is_near = |worker: &WorkerPlan| machine.cpu(worker.cpu).and_then(|cpu| cpu.node) == home;
    let mut cells = Vec::new();
    for &node in &scope.nodes {
        let all = load_workers(machine, scope, cpu, node);
        let (near, far): (Vec<_>, Vec<_>) = all.into_iter().partition(is_near);
        for load in [near, far].into_iter().filter(|load| !load.is_empty()) {
            for &kernel in kernels {
                let (chaser, load) = (WorkerPlan { cpu, node }, load.clone());
                let spec = LoadedSpec { chaser, load, kernel, size_bytes, pages };
                cells.extend(loaded_cells(&spec));
            }
        }
    }
    cells
}

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
            Cell::of(Experiment::Loaded(LoadedCell {
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

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_record::Experiment;
    use numalab_topology::{Cpu, Node};
    use std::collections::BTreeSet;

    /// Two nodes with two cpus each, and one of memory alone.
    fn machine() -> Machine {
        let node = |id: u32, cpus: &str| Node {
            id: NodeId(id),
            online: true,
            memory_bytes: 1 << 30,
            cpus: cpus.parse().unwrap(),
            ..Node::default()
        };
        let cpu = |id: u32| Cpu {
            id: CpuId(id),
            online: true,
            node: Some(NodeId(id / 2)),
            core: Some(id),
            ..Cpu::default()
        };
        let nodes = vec![node(0, "0-1"), node(1, "2-3"), node(2, "")];
        Machine { nodes, cpus: (0..4).map(cpu).collect(), ..Machine::default() }
    }

    #[test]
    fn a_surface_has_every_node_s_memory_loaded_from_either_side_by_every_kernel() {
        let machine = machine();
        let scope = Scope::new(&machine, None, None).unwrap();
        let kernels = [StreamKernel::Read, StreamKernel::Write];
        let cells = loaded_surface(&machine, &scope, CpuId(0), &kernels, (64, Pages::Base));
        let curves: BTreeSet<_> = cells
            .iter()
            .map(|cell| match &cell.experiment {
                Experiment::Loaded(loaded) => {
                    assert!(loaded.load.iter().all(|worker| worker.node == loaded.chaser.node));
                    let cpus = loaded.load.iter().map(|worker| worker.cpu.0).collect::<Vec<_>>();
                    (loaded.chaser.node.0, cpus, loaded.kernel.name())
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = (0..3).flat_map(|node| {
            [vec![1], vec![2, 3]]
                .into_iter()
                .flat_map(move |cpus| ["read", "write"].map(|kernel| (node, cpus.clone(), kernel)))
        });
        assert_eq!(curves, expected.collect());
        let names: BTreeSet<_> = cells.iter().map(|cell| &cell.id).collect();
        assert_eq!((cells.len(), names.len()), (120, 120), "no name twice");
    }
}
