//! Plans which host cpus each vCPU runs on.

use numalab_topology::{CpuId, CpuSet, Machine};

use super::threads::Vcpu;

/// The assignment of vCPUs to host cpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinPlan {
    /// Each named vCPU on its set of host cpus; others stay free.
    Map(Vec<(u32, CpuSet)>),
    /// The first `vcpus` vCPUs (all if `None`), divided into equal consecutive parts, one
    /// for each list. Within a list each gets one host cpu in order, starting over if there are
    /// more vCPUs than host cpus.
    NodeLists {
        vcpus: Option<u32>,
        /// The host cpus of each node.
        lists: Vec<CpuSet>,
    },
    /// The vCPUs of each guest node on the cpus of one host node; guest nodes are assigned
    /// to host nodes in turn.
    Automatic,
}

/// Reason why a plan cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("vCPU {vcpu}: the guest has {count} vCPUs (0-{})", count.saturating_sub(1))]
    NoVcpu { vcpu: u32, count: usize },
    #[error("host cpus for {what}: an empty list, expected cpus such as 0-3,8")]
    NoCpus {
        /// The purpose of the set.
        what: String,
    },
    #[error("host cpus {cpus} are not online here: expected one of {online}")]
    Offline { cpus: CpuSet, online: CpuSet },
    #[error("automatic pinning: no node of this host has online cpus")]
    NoHostNodes,
}

impl PinPlan {
    /// Returns the host cpus of each vCPU in the plan; all must be online in `host`, if its
    /// cpus are known.
    pub fn placement(
        &self,
        vcpus: &[Vcpu],
        host: &Machine,
    ) -> Result<Vec<(Vcpu, CpuSet)>, PlanError> {
        let placement: Vec<(Vcpu, CpuSet)> = match self {
            Self::Map(map) => {
                map.iter().map(|(vcpu, cpus)| mapped(*vcpu, cpus, vcpus)).collect::<Result<_, _>>()
            }
            Self::NodeLists { vcpus: count, lists } => dealt(*count, lists, vcpus),
            Self::Automatic => automatic(vcpus, host),
        }?;
        let online = host.online_cpus();
        let wanted: CpuSet = placement.iter().flat_map(|(_, cpus)| cpus.iter()).collect();
        let cpus: CpuSet = wanted.iter().filter(|cpu| !online.contains(*cpu)).collect();
        // A host without known cpus, such as one read from a file, refuses nothing.
        match cpus.is_empty() || online.is_empty() {
            true => Ok(placement),
            false => Err(PlanError::Offline { cpus, online }),
        }
    }
}

fn mapped(vcpu: u32, cpus: &CpuSet, vcpus: &[Vcpu]) -> Result<(Vcpu, CpuSet), PlanError> {
    let found = vcpus.iter().find(|candidate| candidate.index == vcpu);
    let found = found.ok_or(PlanError::NoVcpu { vcpu, count: vcpus.len() })?;
    if cpus.is_empty() {
        let what = format!("vCPU {vcpu}");
        return Err(PlanError::NoCpus { what });
    }
    Ok((*found, cpus.clone()))
}

fn dealt(
    count: Option<u32>,
    lists: &[CpuSet],
    vcpus: &[Vcpu],
) -> Result<Vec<(Vcpu, CpuSet)>, PlanError> {
    let all = vcpus.len();
    let count = count.map_or(all, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let chosen = vcpus
        .get(..count)
        .ok_or(PlanError::NoVcpu { vcpu: u32::try_from(all).unwrap_or(u32::MAX), count: all })?;
    if let Some(empty) = lists.iter().position(CpuSet::is_empty) {
        let what = format!("node list {empty}");
        return Err(PlanError::NoCpus { what });
    }
    if lists.is_empty() {
        let what = "the nodes".to_owned();
        return Err(PlanError::NoCpus { what });
    }
    // Rounded up, so that the last lists may get fewer.
    let share = count.div_ceil(lists.len()).max(1);
    let parts = chosen.chunks(share).zip(lists);
    let place = |(part, list): (&[Vcpu], &CpuSet)| {
        let cpus: Vec<CpuId> = list.iter().collect();
        let each = part.iter().zip(cpus.into_iter().cycle());
        let each = each.map(|(vcpu, cpu)| (*vcpu, CpuSet::from_iter([cpu])));
        each.collect::<Vec<_>>()
    };
    Ok(parts.flat_map(place).collect())
}

fn automatic(vcpus: &[Vcpu], host: &Machine) -> Result<Vec<(Vcpu, CpuSet)>, PlanError> {
    let online = host.online_cpus();
    let usable = |cpus: &CpuSet| cpus.intersection(&online);
    let nodes: Vec<CpuSet> =
        host.nodes.iter().map(|node| usable(&node.cpus)).filter(|cpus| !cpus.is_empty()).collect();
    if nodes.is_empty() {
        return Err(PlanError::NoHostNodes);
    }
    let mut guest_nodes: Vec<u32> =
        vcpus.iter().map(|vcpu| vcpu.node.unwrap_or_default()).collect();
    guest_nodes.sort_unstable();
    guest_nodes.dedup();
    let place = |vcpu: &Vcpu| {
        // A guest without NUMA reports no nodes; all its cpus count as node 0.
        let node = vcpu.node.unwrap_or_default();
        let position = guest_nodes.iter().position(|other| *other == node).unwrap_or_default();
        (*vcpu, nodes[position % nodes.len()].clone())
    };
    Ok(vcpus.iter().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{Cpu, Node, NodeId};

    fn guest() -> Vec<Vcpu> {
        (0..4).map(|index| Vcpu { index, thread: 100 + index, node: Some(index / 2) }).collect()
    }

    fn shown(placement: &[(Vcpu, CpuSet)]) -> Vec<String> {
        placement.iter().map(|(vcpu, cpus)| format!("{}:{cpus}", vcpu.index)).collect()
    }

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn node_lists_take_equal_parts_one_cpu_each() {
        let lists = vec![set("0-7"), set("64-65")];
        let plan = PinPlan::NodeLists { vcpus: None, lists };
        let placement = plan.placement(&guest(), &Machine::default()).unwrap();
        assert_eq!(shown(&placement), ["0:0", "1:1", "2:64", "3:65"]);
    }

    #[test]
    fn more_vcpus_than_cpus_share_and_only_the_first_n_are_pinned() {
        let lists = vec![set("5")];
        let plan = PinPlan::NodeLists { vcpus: Some(2), lists };
        let placement = plan.placement(&guest(), &Machine::default()).unwrap();
        assert_eq!(shown(&placement), ["0:5", "1:5"]);
    }

    #[test]
    fn vcpus_that_do_not_exist_and_empty_lists_are_refused() {
        let host = Machine::default();
        let plan = PinPlan::Map(vec![(7, set("0"))]);
        let error = plan.placement(&guest(), &host).unwrap_err();
        assert_eq!(error.to_string(), "vCPU 7: the guest has 4 vCPUs (0-3)");
        let plan = PinPlan::Map(vec![(1, CpuSet::new())]);
        assert!(plan.placement(&guest(), &host).is_err());
        let lists = vec![set("0")];
        let plan = PinPlan::NodeLists { vcpus: Some(5), lists };
        assert!(matches!(plan.placement(&guest(), &host), Err(PlanError::NoVcpu { .. })));
        let plan = PinPlan::NodeLists { vcpus: None, lists: Vec::new() };
        assert!(matches!(plan.placement(&guest(), &host), Err(PlanError::NoCpus { .. })));
    }

    #[test]
    fn automatic_assigns_guest_nodes_to_host_nodes_with_cpus() {
        let cpu = |id: u32, node: u32| Cpu {
            id: CpuId(id),
            online: true,
            node: Some(NodeId(node)),
            ..Cpu::default()
        };
        let node =
            |id: u32, cpus: &str| Node { id: NodeId(id), cpus: set(cpus), ..Node::default() };
        let host = Machine {
            nodes: vec![node(0, "0-1"), node(1, ""), node(2, "2-3")],
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 2), cpu(3, 2)],
            ..Machine::default()
        };
        let placement = PinPlan::Automatic.placement(&guest(), &host).unwrap();
        assert_eq!(shown(&placement), ["0:0,1", "1:0,1", "2:2,3", "3:2,3"]);
        let plan = PinPlan::NodeLists { vcpus: None, lists: vec![set("3,16-19")] };
        let error = plan.placement(&guest(), &host).unwrap_err().to_string();
        assert_eq!(error, "host cpus 16-18 are not online here: expected one of 0-3");
        let error = PinPlan::Automatic.placement(&guest(), &Machine::default());
        assert_eq!(error, Err(PlanError::NoHostNodes));
    }
}
