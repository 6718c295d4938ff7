//! Chooses the node from which each rank allocates, as the wrapper of the benchmark suite does.

mod request;
mod seats;
mod weights;

use numalab_host::{AffinityError, Classed, ErrorClass, set_thread_affinity};
use numalab_record::shell::command_line;
use numalab_topology::{
    Chosen, CpuId, CpuSet, Machine, MemoryPolicy, Node, NodeId, NodeSet, Placement,
};

use crate::identity::Task;
use crate::near::nearest;
pub use request::{BindRequest, BoundRank, RankCpus};
use seats::local_rank;
pub use seats::{SeatError, Seats};
pub use weights::{Weights, WeightsError, without_weights};

/// The argument of `--numa`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// Not given: node 0, as the suite documents.
    Unsaid,
    /// The nodes with memory and cpus, in turn: memory without cpus belongs to a device or is a slower
    /// tier, which is for programs that name it. Weights take the memory of tiers into account, and
    /// where there is no other it is used. A rank on one node counts only those with cpus on which
    /// it may run, or the nearest to them: its launcher may have bound it already.
    Auto,
    /// The chosen nodes with memory, in turn.
    InTurn(Chosen<NodeId>),
    /// One node for all ranks, one for each rank of a host, or one for every rank of the job.
    List(Vec<NodeId>),
}

impl std::str::FromStr for NodeChoice {
    type Err = BindError;

    /// Parses `auto` or `all`, `!0`, `3` or `0,1,2,3`, and ranges such as `0-3`.
    fn from_str(text: &str) -> Result<Self, BindError> {
        let malformed = || BindError::List { text: text.to_owned() };
        match text {
            "auto" => return Ok(Self::Auto),
            _ if text == "all" || text.starts_with('!') => {
                return text.parse().map(Self::InTurn).map_err(|_| malformed());
            }
            _ => {}
        }
        let mut nodes = Vec::new();
        for item in text.split(',') {
            // A set would lose the order and repetitions.
            let set: NodeSet = item.parse().map_err(|_| malformed())?;
            if set.is_empty() {
                return Err(malformed());
            }
            nodes.extend(set.iter());
        }
        Ok(Self::List(nodes))
    }
}

/// The use of the chosen nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// The rank's node and no other.
    #[default]
    Bind,
    /// The rank's node while it has free memory; without a launcher, all named nodes.
    Preferred,
    /// All named nodes while any has free memory.
    PreferredMany,
    /// All named nodes, one page from each in turn.
    Interleave,
    /// All named nodes by the kernel's weights.
    Weighted,
}

impl PolicyKind {
    /// Every kind with its name and its meaning in a few words.
    pub const ALL: [(Self, &str, &str); 5] = [
        (Self::Bind, "bind", "Only the rank's node"),
        (
            Self::Preferred,
            "preferred",
            "The rank's node while it has memory; without a launcher, all listed nodes",
        ),
        (
            Self::PreferredMany,
            "preferred-many",
            "All listed nodes while any has memory (Linux 5.15 or later)",
        ),
        (Self::Interleave, "interleave", "All listed nodes, page by page in turn"),
        (Self::Weighted, "weighted", "All listed nodes, by their weights (Linux 6.9 or later)"),
    ];
}

/// Reason why ranks cannot be bound as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error(
        "--numa={text}: expected a node such as 3, a node for each rank such as 0,1,2,3, or nodes in turn: auto, or !0 for all but node 0"
    )]
    List { text: String },
    /// The list does not match the ranks.
    #[error(transparent)]
    Seat(#[from] SeatError),
    #[error("--numa leaves out every node with memory: {present}")]
    NoneLeft { present: NodeSet },
    #[error(
        "--numa: this process may not use memory of node {node}: its cpuset.mems allows {allowed}"
    )]
    NotAllowed { node: NodeId, allowed: NodeSet },
    #[error("--numa: node {node} has no memory: expected one of {present}")]
    NoMemory { node: NodeId, present: NodeSet },
    #[error("--numa: node {node} does not exist here: expected one of {present}")]
    NoNode { node: NodeId, present: NodeSet },
    #[error("--cpus node: expected --policy bind or preferred, with one node")]
    NotOneNode,
    #[error("--cpus node: node {node} has no cpus that this process may use")]
    NoCpus { node: NodeId },
    /// The node has only isolated cpus, over which the scheduler spreads no threads.
    #[error(
        "--cpus node: cpus {cpus} of node {node} are isolated, so a rank would stay on one of them: name \
         one for each rank, as in --cpus {}",
        .cpus.first().unwrap_or_default()
    )]
    Isolated { node: NodeId, cpus: CpuSet },
    /// The rank's cpu in the list does not exist, or the process may not run on it.
    #[error("--cpus: {0}")]
    Cpu(#[from] AffinityError),
    #[error("cannot bind to cpus {cpus} of node {node}: {reason}")]
    Refused { node: NodeId, cpus: CpuSet, reason: String },
}

impl Classed for BindError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoCpus { .. } | Self::Refused { .. } => ErrorClass::Lacking,
            Self::Cpu(error) => error.class(),
            _ => ErrorClass::BadInput,
        }
    }
}

/// The node with the cpus that a rank stays on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    pub node: NodeId,
    /// Empty if the node has none.
    pub cpus: CpuSet,
}

impl Home {
    /// Returns the node by which other tools know the cpus; `None` if it has no memory, since libnuma
    /// refuses such a node (`numactl --cpunodebind`).
    pub fn known_node(&self, machine: &Machine) -> Option<NodeId> {
        Some(self.node).filter(|node| machine.memory_nodes().contains(*node))
    }

    /// Keeps this thread, and so the command that it becomes, on the cpus; leaves it unchanged if
    /// there are none.
    pub fn stay(&self) -> Result<(), BindError> {
        let Self { node, cpus } = self.clone();
        if cpus.is_empty() {
            return Ok(());
        }
        set_thread_affinity(std::process::id(), &cpus).map_err(|errno| BindError::Refused {
            node,
            cpus,
            reason: errno.to_string(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The rank, 0 without a launcher.
    pub rank: usize,
    pub policy: MemoryPolicy,
    /// The node with the cpus on which the rank runs, if requested too.
    pub cpus_of: Option<NodeId>,
    /// The cpus on which the rank runs, if requested too.
    pub cpus: Option<CpuSet>,
}

/// Returns the cpus of nodes that have no memory for this process: no rank that stays on the cpus
/// of its node gets them.
fn cpus_without_memory(machine: &Machine) -> CpuSet {
    let memory = machine.usable_memory_nodes();
    let node_of = |id| machine.cpu(id).and_then(|cpu| cpu.node);
    let is_without = |id: &CpuId| node_of(*id).is_some_and(|node| !memory.contains(node));
    machine.usable_cpus().iter().filter(is_without).collect()
}

/// Returns the isolated cpus of a node on which this process may run.
fn isolated_cpus(machine: &Machine, node: NodeId) -> CpuSet {
    let of_node = machine.node(node).map(|of| &of.cpus);
    let isolated = machine.allowed.as_ref().map(|allowed| &allowed.isolated);
    of_node.zip(isolated).map_or_else(CpuSet::new, |(cpus, isolated)| cpus.intersection(isolated))
}

/// Returns the nodes that [`NodeChoice::Auto`] leaves out because all their cpus are isolated, so that this
/// process may ask for them but does not run there by itself.
fn isolated_nodes(kind: PolicyKind, machine: &Machine, of_devices: &NodeSet) -> NodeSet {
    let present = machine.usable_memory_nodes();
    let chosen = NodeSet::from_iter(automatic(kind, machine, &present, of_devices));
    let left_out = present.difference(&chosen);
    left_out.iter().filter(|node| !isolated_cpus(machine, *node).is_empty()).collect()
}

impl Binding {
    /// Returns the binding of a rank (`None` for a single process) among the nodes of a machine whose
    /// memory this process may use; `of_devices` is the memory of devices ([`device_memory`]).
    /// Nodes in turn follow the local rank, so that each host uses all its nodes whatever the
    /// distribution of ranks is.
    ///
    /// [`device_memory`]: crate::near::device_memory
    ///
    /// # Errors
    /// [`BindError`] if the list does not match the ranks, or names a node that does not exist or is
    /// not allowed.
    pub fn of(
        choice: &NodeChoice,
        kind: PolicyKind,
        task: Option<&Task>,
        machine: &Machine,
        of_devices: &NodeSet,
    ) -> Result<Self, BindError> {
        let rank = task.map_or(0, Task::rank);
        let present = machine.usable_memory_nodes();
        let named = match choice {
            NodeChoice::Unsaid => vec![NodeId(0)],
            NodeChoice::Auto => automatic(kind, machine, &present, of_devices),
            NodeChoice::InTurn(chosen) => chosen.select_from(&present).iter().collect(),
            NodeChoice::List(nodes) => nodes.clone(),
        };
        if named.is_empty() {
            return Err(BindError::NoneLeft { present });
        }
        if let Some(&node) = named.iter().find(|node| !present.contains(**node)) {
            return Err(match machine.node(node) {
                Some(_) if machine.memory_nodes().contains(node) => {
                    BindError::NotAllowed { node, allowed: present }
                }
                Some(_) => BindError::NoMemory { node, present },
                None => BindError::NoNode { node, present },
            });
        }
        let takes_all = match kind {
            PolicyKind::Interleave | PolicyKind::Weighted | PolicyKind::PreferredMany => true,
            PolicyKind::Preferred => task.is_none() && matches!(choice, NodeChoice::List(_)),
            PolicyKind::Bind => false,
        };
        let nodes = if takes_all {
            NodeSet::from_iter(named)
        } else {
            let entries = named.len();
            let seat = match (choice, task) {
                (NodeChoice::Auto | NodeChoice::InTurn(_), task) => {
                    task.map_or(Ok(0), local_rank)? % entries
                }
                _ => Seats { option: "--numa", what: "node", entries }.entry_of(task)?,
            };
            NodeSet::from_iter([named.get(seat).copied().unwrap_or_default()])
        };
        let policy = match kind {
            PolicyKind::Bind => MemoryPolicy::Bind(nodes),
            PolicyKind::Preferred | PolicyKind::PreferredMany => MemoryPolicy::Preferred(nodes),
            PolicyKind::Interleave => MemoryPolicy::Interleave(nodes),
            PolicyKind::Weighted => MemoryPolicy::WeightedInterleave(nodes),
        };
        Ok(Self { rank, policy, cpus_of: None, cpus: None })
    }

    /// Returns the node of the rank's memory with its cpus.
    ///
    /// # Errors
    /// [`BindError`] if the memory is not on one node, or that has no cpus for this process.
    pub fn home(&self, machine: &Machine) -> Result<Home, BindError> {
        let node = match &self.policy {
            MemoryPolicy::Bind(nodes) | MemoryPolicy::Preferred(nodes) if nodes.len() == 1 => {
                nodes.first()
            }
            _ => None,
        };
        let node = node.ok_or(BindError::NotOneNode)?;
        let of_node = machine.node(node).map(|of| of.cpus.intersection(&machine.usable_cpus()));
        match of_node.filter(|cpus| !cpus.is_empty()) {
            Some(cpus) => Ok(Home { node, cpus }),
            None => match isolated_cpus(machine, node) {
                cpus if cpus.is_empty() => Err(BindError::NoCpus { node }),
                cpus => Err(BindError::Isolated { node, cpus }),
            },
        }
    }

    /// Returns the two lines that the suite prints: the rank's binding, and its command with the
    /// equivalent `numactl` options.
    pub fn lines(&self, command: &[String]) -> String {
        let (rank, nodes) = (self.rank, self.policy.nodes());
        let options = self.placement().numactl();
        let command = command_line(command);
        format!(
            "[Rank {rank}] Binding to NUMA domain {nodes}\n\
             [Rank {rank}] Executing {command}, equivalent to: numactl {options} {command}\n"
        )
    }

    /// Returns a line for each other tool that can bind a command like this.
    pub fn other_tools(&self, command: &[String]) -> String {
        let commands = self.placement().commands(&command_line(command));
        let others = commands.iter().filter(|(tool, _)| !matches!(*tool, "numalab" | "numactl"));
        others.map(|(tool, line)| format!("{tool}: {line}\n")).collect()
    }

    fn placement(&self) -> Placement {
        Placement {
            nodes: self.cpus_of.map(|node| NodeSet::from_iter([node])),
            cpus: self.cpus.clone(),
            policy: Some(self.policy.clone()),
        }
    }
}

/// Returns the nodes of [`NodeChoice::Auto`]: the `present` ones with memory for this process.
fn automatic(
    kind: PolicyKind,
    machine: &Machine,
    present: &NodeSet,
    of_devices: &NodeSet,
) -> Vec<NodeId> {
    let general = present.difference(of_devices);
    let with_cpus = present.intersection(&machine.cpu_nodes());
    let chosen = match kind {
        _ if general.is_empty() => present,
        PolicyKind::Weighted => &general,
        _ if with_cpus.is_empty() => &general,
        _ => &with_cpus,
    };
    let chosen: Vec<NodeId> = chosen.iter().collect();
    let usable = machine.usable_cpus();
    let runs_on = |node: &&Node| !node.cpus.intersection(&usable).is_empty();
    let homes = machine.nodes.iter().filter(runs_on);
    let homes: NodeSet = homes.filter_map(|node| nearest(machine, node.id, &chosen)).collect();
    match kind {
        PolicyKind::Bind | PolicyKind::Preferred if !homes.is_empty() => homes.iter().collect(),
        _ => chosen,
    }
}

#[cfg(test)]
mod tests;
