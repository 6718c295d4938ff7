//! The binding of one rank, from what the user asked for.

use numalab_topology::{CpuId, CpuSet, Machine, NodeSet};

use super::{
    BindError, Binding, Home, NodeChoice, PolicyKind, Seats, cpus_without_memory, isolated_nodes,
};
use crate::identity::{Launcher, Task, VariableLookup, not_a_rank};
use crate::near::Near;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankCpus {
    /// Each rank on its own cpu, in the order given.
    Listed(Vec<CpuId>),
    /// Each rank on the cpus of the node with its memory.
    OfNode,
}

impl RankCpus {
    /// Returns the cpu of a rank (`None` for a single process), if each has its own.
    ///
    /// # Errors
    /// [`BindError::Seat`] if the list does not match the ranks.
    pub fn cpu_of(&self, task: Option<&Task>) -> Result<Option<CpuId>, BindError> {
        let Self::Listed(cpus) = self else { return Ok(None) };
        let seats = Seats { option: "--cpus", what: "cpu", entries: cpus.len() };
        Ok(cpus.get(seats.entry_of(task)?).copied())
    }
}

/// The request for a binding, the same for each rank.
#[derive(Clone, Copy, Debug)]
pub struct BindRequest<'a> {
    pub nodes: &'a NodeChoice,
    /// The cpus and memory near a device, instead of the nodes.
    pub near: Option<&'a Near>,
    pub policy: PolicyKind,
    pub cpus: Option<&'a RankCpus>,
}

/// The binding of a rank with the cpus that it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundRank {
    pub binding: Binding,
    /// The cpu to which the rank is pinned, if each has its own.
    pub cpu: Option<CpuId>,
    /// The node with the cpus that the rank stays on, if requested.
    pub home: Option<Home>,
    /// The cpus that nodes in turn give to no rank.
    pub idle: CpuSet,
    /// The nodes that `auto` leaves out because all their cpus are isolated.
    pub isolated: NodeSet,
}

impl BindRequest<'_> {
    /// Returns the binding of a rank (`None` for a single process), with the arguments of
    /// [`Binding::of`].
    ///
    /// # Errors
    /// [`BindError`] as of [`Binding::of`], or if the cpus cannot be had.
    pub fn resolve(
        &self,
        task: Option<&Task>,
        machine: &Machine,
        of_devices: &NodeSet,
    ) -> Result<BoundRank, BindError> {
        let nodes = self.nodes();
        let cpu = self.cpus.map_or(Ok(None), |cpus| cpus.cpu_of(task))?;
        let binding = Binding::of(&nodes, self.policy, task, machine, of_devices)?;
        let home = match (self.near, self.cpus) {
            _ if cpu.is_some() => None,
            (Some(near), _) => Some(Home { node: near.cpu_node, cpus: near.cpus.clone() }),
            (None, Some(RankCpus::OfNode)) => Some(binding.home(machine)?),
            (None, _) => None,
        };
        let idle = match (&home, &nodes) {
            (None, _) | (_, NodeChoice::List(_)) => CpuSet::new(),
            _ => cpus_without_memory(machine),
        };
        let isolated = match nodes {
            NodeChoice::Auto => isolated_nodes(self.policy, machine, of_devices),
            _ => NodeSet::new(),
        };
        let of_home = home.as_ref().map(|home| home.cpus.clone());
        let cpus = cpu.map(|cpu| CpuSet::from_iter([cpu])).or(of_home);
        let cpus_of = home.as_ref().and_then(|home| home.known_node(machine));
        Ok(BoundRank { binding: Binding { cpus_of, cpus, ..binding }, cpu, home, idle, isolated })
    }

    fn nodes(&self) -> NodeChoice {
        match self.near {
            Some(near) => NodeChoice::List(vec![near.memory_node]),
            None => self.nodes.clone(),
        }
    }

    /// Describes a bound rank before it becomes `command`; a dry run also names its launcher and, for
    /// a single process, other tools' commands.
    pub fn lines(
        &self,
        bound: &BoundRank,
        command: &[String],
        task: Option<&Task>,
        is_dry_run: bool,
        look: VariableLookup<'_>,
    ) -> String {
        let binding = &bound.binding;
        let rank = binding.rank;
        let mut text = String::new();
        if let Some(task) = task
            && is_dry_run
            && task.launcher() != Launcher::Local
        {
            text.push_str(&format!("[Rank {rank}] Known as {task}\n"));
        }
        text.push_str(&not_a_rank(task, look));
        match self.near {
            Some(near) => text.push_str(&format!("[Rank {rank}] {}\n", near.describe())),
            None if *self.nodes == NodeChoice::Unsaid => {
                text.push_str(&format!("[Rank {rank}] No --numa given: binding to node 0\n"));
            }
            None => {}
        }
        text.push_str(&binding.lines(command));
        if is_dry_run && task.is_none() {
            text.push_str(&binding.other_tools(command));
        }
        text
    }
}
