//! The machine under the running Xen, as shown by its toolstack.

use std::path::Path;

use numalab_topology::{Cpu, CpuId, Distances, Machine, Node, NodeId};

use numalab_guest_agent::xen::NodeRange;
use numalab_guest_agent::xen::XenPlan;
use numalab_guest_agent::xen::agent::{self, AgentError};
use numalab_guest_agent::xen::text::{XenInfo, srat_ranges, xen_info};

/// Returns the machine that this first domain's Xen exports, and the ranges of each node's memory,
/// if the hypervisor gives them.
///
/// # Errors
/// [`AgentError`], for example if the machine is not dom0.
pub fn this_machine() -> Result<(Machine, Vec<NodeRange>), AgentError> {
    agent::check_dom0()?;
    let plan = XenPlan::default();
    let info = xen_info(&agent::xl(&plan, &["info", "-n"])?);
    let log = agent::xl(&plan, &["dmesg"])?;
    let log: Vec<String> = log.lines().map(ToOwned::to_owned).collect();
    Ok((machine(&info), srat_ranges(&log)))
}

/// Returns the plan adapted to this first domain: its own toolstack, and these files.
pub fn fitted(plan: &XenPlan, kernel: &Path, image: &Path, memory: Vec<NodeRange>) -> XenPlan {
    XenPlan {
        memory,
        start_toolstack: false,
        kernel: kernel.to_string_lossy().into_owned(),
        image: image.to_string_lossy().into_owned(),
        ..plan.clone()
    }
}

fn machine(info: &XenInfo) -> Machine {
    let node = |(id, (size_mib, _)): (&u32, &(u64, Vec<u8>))| Node {
        id: NodeId(*id),
        online: true,
        cpus: info
            .cpu_nodes
            .iter()
            .filter(|(_, node)| *node == id)
            .map(|(cpu, _)| CpuId(*cpu))
            .collect(),
        memory_bytes: size_mib << 20,
        ..Node::default()
    };
    let cpu = |(id, node): (&u32, &u32)| Cpu {
        id: CpuId(*id),
        online: true,
        node: Some(NodeId(*node)),
        package: info.cpu_sockets.get(id).copied(),
        ..Cpu::default()
    };
    let rows: Vec<Vec<u8>> = info.nodes.values().map(|(_, row)| row.clone()).collect();
    Machine {
        nodes: info.nodes.iter().map(node).collect(),
        cpus: info.cpu_nodes.iter().map(cpu).collect(),
        distances: Distances::from_rows(&rows)
            .unwrap_or_else(|_| Distances::unknown(info.nodes.len())),
        ..Machine::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_exported_machine_is_valid() {
        let info = XenInfo {
            cpu_nodes: BTreeMap::from([(0, 0), (1, 0), (2, 1)]),
            cpu_sockets: BTreeMap::from([(0, 0), (1, 0), (2, 1)]),
            nodes: BTreeMap::from([(0, (1024, vec![10, 21])), (1, (2048, vec![21, 10]))]),
            ..XenInfo::default()
        };
        let machine = machine(&info);
        assert_eq!(machine.nodes[0].cpus.to_string(), "0,1");
        assert_eq!(machine.memory_bytes(), 3 << 30);
        assert_eq!(machine.distances.get(0, 1), Some(21));
        assert_eq!(machine.cpus[2].package, Some(1));
    }

    #[test]
    fn this_machine_is_not_dom0_which_is_reported() {
        let error = this_machine().unwrap_err().to_string();
        assert!(error.contains("is not a dom0"), "{error}");
    }
}
