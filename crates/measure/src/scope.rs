//! The cpus and nodes that a plan may use.

use numalab_record::WorkerPlan;
use numalab_topology::{CpuId, CpuSet, Machine, NodeId, NodeSet};

/// The choice of workers of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatrixShape {
    /// Every chosen cpu with every chosen node.
    #[default]
    PerCpu,
    /// One cpu of each node with every chosen node.
    PerNode,
}

/// Reason why cpus or nodes cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    #[error("cpu {cpu} does not exist here: expected one of {online}")]
    UnknownCpu { cpu: CpuId, online: CpuSet },
    #[error("cpu {cpu} is offline: expected one of {online}")]
    OfflineCpu { cpu: CpuId, online: CpuSet },
    #[error(
        "cpu {cpu} is not allowed for this process (affinity or cpuset): expected one of {allowed}"
    )]
    ForbiddenCpu { cpu: CpuId, allowed: CpuSet },
    #[error("node {node} does not exist here: expected one of {present}")]
    UnknownNode { node: NodeId, present: NodeSet },
    #[error("node {node} has no memory: expected one of {with_memory}")]
    MemorylessNode { node: NodeId, with_memory: NodeSet },
    #[error("node {node} is not allowed for this process (cpuset.mems): expected one of {allowed}")]
    ForbiddenNode { node: NodeId, allowed: NodeSet },
    #[error("no {what} is left to measure with")]
    Nothing {
        /// "cpu" or "node with memory".
        what: &'static str,
    },
}

/// The cpus and nodes that a plan may use; at least one of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The cpus in ascending order.
    pub cpus: Vec<CpuId>,
    /// The nodes with memory in ascending order.
    pub nodes: Vec<NodeId>,
}

impl Scope {
    /// Creates a scope of the chosen cpus and nodes, or of all that the process may use. Isolated
    /// cpus are in scope only if chosen.
    ///
    /// # Errors
    /// [`ScopeError`] names the first that is unknown, offline, without memory or forbidden.
    pub fn new(
        machine: &Machine,
        cpus: Option<&CpuSet>,
        nodes: Option<&NodeSet>,
    ) -> Result<Self, ScopeError> {
        let cpus: Vec<CpuId> = match cpus {
            Some(chosen) => {
                chosen.iter().map(|cpu| usable_cpu(machine, cpu)).collect::<Result<_, _>>()?
            }
            None => machine.usable_cpus().iter().collect(),
        };
        let nodes: Vec<NodeId> = match nodes {
            Some(chosen) => {
                chosen.iter().map(|node| usable_node(machine, node)).collect::<Result<_, _>>()?
            }
            None => machine
                .memory_nodes()
                .iter()
                .filter(|&node| usable_node(machine, node).is_ok())
                .collect(),
        };
        if cpus.is_empty() {
            return Err(ScopeError::Nothing { what: "cpu" });
        }
        if nodes.is_empty() {
            return Err(ScopeError::Nothing { what: "node with memory" });
        }
        Ok(Self { cpus, nodes })
    }

    /// Returns the node with memory nearest to `cpu`: its own, else the node in scope at the
    /// smallest distance, else the first. Memory without cpus, such as a GPU's, is the last resort.
    pub fn nearest_node(&self, machine: &Machine, cpu: CpuId) -> NodeId {
        let home = machine.cpu(cpu).and_then(|cpu| cpu.node);
        let distance = |&node: &NodeId| match home {
            Some(home) if home == node => 0,
            Some(home) => machine.distance(home, node).unwrap_or(u8::MAX),
            None => u8::MAX,
        };
        let with_cpus = machine.cpu_nodes();
        let key = |node: &NodeId| (!with_cpus.contains(*node), distance(node));
        self.nodes.iter().copied().min_by_key(key).unwrap_or_default()
    }

    /// Returns one cpu of each core: the first sibling in scope.
    pub fn one_cpu_per_core(&self, machine: &Machine) -> Vec<CpuId> {
        self.first_of_each(machine, |cpu| cpu.core)
    }

    /// Returns one cpu of each node.
    pub fn one_cpu_per_node(&self, machine: &Machine) -> Vec<CpuId> {
        self.first_of_each(machine, |cpu| cpu.node.map(|node| node.0))
    }

    /// Returns two cpus of each L3 group on each of its nodes, of different cores if possible. In
    /// virtual machines an L3 group can span nodes.
    pub fn two_cpus_per_l3_group(&self, machine: &Machine) -> Vec<CpuId> {
        let group = |cpu: &numalab_topology::Cpu| Some((cpu.l3_group?, cpu.node));
        let cores = Self { cpus: self.one_cpu_per_core(machine), nodes: self.nodes.clone() };
        let firsts = cores.first_of_each(machine, group);
        let others = Self {
            cpus: cores.cpus.iter().copied().filter(|cpu| !firsts.contains(cpu)).collect(),
            nodes: Vec::new(),
        };
        let mut both = firsts;
        both.extend(others.first_of_each(machine, group));
        both.sort_unstable();
        both
    }

    fn first_of_each<G: PartialEq>(
        &self,
        machine: &Machine,
        group: impl Fn(&numalab_topology::Cpu) -> Option<G>,
    ) -> Vec<CpuId> {
        let mut seen = Vec::new();
        let is_first = |cpu: &CpuId| match machine.cpu(*cpu).and_then(&group) {
            Some(number) if seen.contains(&number) => false,
            Some(number) => {
                seen.push(number);
                true
            }
            // A cpu with an unknown group counts as a group by itself.
            None => true,
        };
        self.cpus.iter().copied().filter(is_first).collect()
    }
}

/// Returns one worker per core in scope, each with the memory nearest to it.
pub fn all_workers(machine: &Machine, scope: &Scope) -> Vec<WorkerPlan> {
    let nearest = |cpu| WorkerPlan { cpu, node: scope.nearest_node(machine, cpu) };
    scope.one_cpu_per_core(machine).into_iter().map(nearest).collect()
}

/// Returns the workers of a matrix over the scope.
pub fn matrix_workers(machine: &Machine, scope: &Scope, shape: MatrixShape) -> Vec<WorkerPlan> {
    let cpus = match shape {
        MatrixShape::PerCpu => scope.cpus.clone(),
        MatrixShape::PerNode => scope.one_cpu_per_node(machine),
    };
    let pairs = scope.nodes.iter().flat_map(|&node| cpus.iter().map(move |&cpu| (cpu, node)));
    pairs.map(|(cpu, node)| WorkerPlan { cpu, node }).collect()
}

fn usable_cpu(machine: &Machine, cpu: CpuId) -> Result<CpuId, ScopeError> {
    let online = || machine.online_cpus();
    match machine.cpu(cpu) {
        None => {
            return Err(ScopeError::UnknownCpu { cpu, online: online() });
        }
        Some(found) if !found.online => {
            return Err(ScopeError::OfflineCpu { cpu, online: online() });
        }
        Some(_) => {}
    }
    match &machine.allowed {
        // Isolated cpus may be chosen although they are outside the affinity.
        Some(allowed) if !allowed.cpus.contains(cpu) && !allowed.isolated.contains(cpu) => {
            Err(ScopeError::ForbiddenCpu { cpu, allowed: allowed.cpus.clone() })
        }
        _ => Ok(cpu),
    }
}

fn usable_node(machine: &Machine, node: NodeId) -> Result<NodeId, ScopeError> {
    let Some(found) = machine.node(node) else {
        let present = machine.nodes.iter().map(|node| node.id).collect();
        return Err(ScopeError::UnknownNode { node, present });
    };
    if !found.online || found.memory_bytes == 0 {
        return Err(ScopeError::MemorylessNode { node, with_memory: machine.memory_nodes() });
    }
    match &machine.allowed {
        // Without cpusets or /proc the allowed nodes are unknown, and the list is empty.
        Some(allowed)
            if !allowed.memory_nodes.is_empty() && !allowed.memory_nodes.contains(node) =>
        {
            Err(ScopeError::ForbiddenNode { node, allowed: allowed.memory_nodes.clone() })
        }
        _ => Ok(node),
    }
}

#[cfg(test)]
mod tests;
