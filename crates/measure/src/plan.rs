//! What to measure: cells in the order in which they are measured.

mod bandwidth;
mod c2c;
mod estimate;
mod latency;
mod loaded;
mod scope;
mod shared;

use numalab_record::{Cell, CellId, Experiment, IsaName, Team, WorkerPlan};

pub use bandwidth::{BandwidthSpec, all_workers, bandwidth_cells, bandwidth_matrix};
pub use c2c::{c2c_cells, c2c_pairs};
pub(crate) use estimate::estimate_unsampled;
pub use estimate::{estimate_cell, estimate_plan};
pub use latency::{LatencySpec, curve_sizes, latency_cells, matrix_workers, plain_pattern};
pub use loaded::{LoadedSpec, load_workers, loaded_cells, loaded_surface};
pub use scope::{MatrixShape, Scope, ScopeError};
pub(crate) use shared::shared_run;

/// A cell named after what is done in it: the same experiment always has the
/// same name, different ones never do.
#[must_use]
pub fn cell(experiment: Experiment) -> Cell {
    Cell { id: CellId(name(&experiment)), experiment }
}

fn name(experiment: &Experiment) -> String {
    match experiment {
        Experiment::Core { cpu } => format!("core/cpu{cpu}"),
        Experiment::Latency(cell) => format!(
            "latency/{}/{}/{}/{}{}",
            cell.pattern,
            cell.pages.name(),
            worker_name(cell.worker),
            size_name(cell.size_bytes),
            if cell.team == Team::Concurrent { "/concurrent" } else { "" },
        ),
        Experiment::Bandwidth(cell) => format!(
            "bandwidth/{}/{}/{}/{}/{}/{}",
            cell.kernel.name(),
            cell.pattern,
            cell.pages.name(),
            cell.isa.0,
            team_name(&cell.workers),
            size_name(cell.size_bytes),
        ),
        Experiment::Loaded(cell) => format!(
            "loaded/{}/{}/{}/against-{}/{}/{}",
            cell.kernel.name(),
            cell.pages.name(),
            worker_name(cell.chaser),
            team_name(&cell.load),
            size_name(cell.size_bytes),
            cell.delay.map_or("idle".to_owned(), |delay| format!("delay{delay}")),
        ),
        Experiment::Frames(cell) => {
            format!("frames/{}/{}-cpus/{}", cell.work, cell.cpus.len(), size_name(cell.size_bytes))
        }
        Experiment::C2c(cell) => {
            format!("c2c/cpu{}/cpu{}/home{}", cell.from, cell.to, cell.home)
        }
    }
}

/// The name of an instruction set in cells: `avx512`.
#[must_use]
pub fn isa_name(isa: numalab_membench::Isa) -> IsaName {
    IsaName(isa.to_string().to_lowercase().replace('-', ""))
}

fn worker_name(worker: WorkerPlan) -> String {
    format!("cpu{}/node{}", worker.cpu, worker.node)
}

/// `cpu0-node1` for one worker; for more, the list of cpus by node: `node0:0-3+node1:4-7`.
fn team_name(workers: &[WorkerPlan]) -> String {
    if let [worker] = workers {
        return format!("cpu{}-node{}", worker.cpu, worker.node);
    }
    let mut nodes: Vec<_> = workers.iter().map(|worker| worker.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let cpus_of = |node| {
        let on_node = workers.iter().filter(|worker| worker.node == node);
        on_node.map(|worker| worker.cpu).collect::<numalab_topology::CpuSet>()
    };
    // A comma would end the field in samples.csv.
    let part = |node| format!("node{node}:{}", cpus_of(node)).replace(',', ".");
    nodes.into_iter().map(part).collect::<Vec<_>>().join("+")
}

/// `64M` where it is exact, else `1.5M` or plain bytes.
pub(crate) fn size_name(bytes: u64) -> String {
    for (unit, letter) in [(1_u64 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{letter}", bytes / unit);
        }
        if bytes >= unit && bytes.is_multiple_of(unit / 2) {
            return format!("{}.5{letter}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{CpuId, NodeId};

    #[test]
    fn sizes_are_named_exactly() {
        let names = [4096, 98_304, 1 << 20, 3 << 19, 100_000, 5 << 30].map(size_name);
        assert_eq!(names, ["4K", "96K", "1M", "1.5M", "100000", "5G"]);
    }

    #[test]
    fn a_team_is_named_by_node_without_commas() {
        let worker = |cpu, node| WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) };
        let team = [worker(0, 0), worker(2, 0), worker(3, 1)];
        assert_eq!(team_name(&team), "node0:0.2+node1:3");
        assert_eq!(team_name(&team[..1]), "cpu0-node0");
    }
}
