//! Which node's memory each rank takes: the wrapper of the benchmark suite.

use numalab_host::MemoryPolicy;
use numalab_topology::{Chosen, Machine, NodeId, NodeSet};

use crate::identity::{LOCAL_RANK, LOCAL_SIZE, Launcher, Task};

/// What `--numa` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// Nothing was asked for: node 0, as the suite documents.
    Unsaid,
    /// The chosen ones of the nodes with memory, in turn.
    InTurn(Chosen<NodeId>),
    /// One node for all ranks, one for each rank of a host, or one for each of all ranks.
    List(Vec<NodeId>),
}

impl std::str::FromStr for NodeChoice {
    type Err = BindError;

    /// `auto` or `all`, `!0`, `3` or `0,1,2,3`; ranges count too: `0-3`.
    fn from_str(text: &str) -> Result<Self, BindError> {
        let malformed = || BindError::List { text: text.to_owned() };
        match text {
            "auto" => return Ok(Self::InTurn(Chosen::All)),
            _ if text == "all" || text.starts_with('!') => {
                return text.parse().map(Self::InTurn).map_err(|_| malformed());
            }
            _ => {}
        }
        let mut nodes = Vec::new();
        for item in text.split(',') {
            // A set would lose the order and what is named twice.
            let set: NodeSet = item.parse().map_err(|_| malformed())?;
            if set.is_empty() {
                return Err(malformed());
            }
            nodes.extend(set.iter());
        }
        Ok(Self::List(nodes))
    }
}

/// How the nodes are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// The rank's node and no other.
    #[default]
    Bind,
    /// The rank's node while it has any; without a launcher, all named nodes.
    Preferred,
    /// All named nodes while any has memory.
    PreferredMany,
    /// All named nodes, a page from each in turn.
    Interleave,
    /// All named nodes by the kernel's weights.
    Weighted,
}

/// Why ranks cannot be bound so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Not a list of nodes.
    #[error(
        "--numa={text}: expected a node such as 3, a node for each rank such as 0,1,2,3, or nodes in turn: auto, or !0 for all but node 0"
    )]
    List {
        /// The text.
        text: String,
    },
    /// A list does not suit the ranks.
    #[error(transparent)]
    Seat(#[from] SeatError),
    /// All nodes are left out.
    #[error("--numa leaves out every node with memory; there are {present}")]
    NoneLeft {
        /// Nodes with memory.
        present: NodeSet,
    },
    /// The node is there, and this process may not take its memory.
    #[error(
        "--numa: this process may not take memory of node {node}: its cpuset.mems allows {allowed}"
    )]
    NotAllowed {
        /// The node.
        node: NodeId,
        /// Nodes with memory that it may take.
        allowed: NodeSet,
    },
    /// The node is not there or has no memory.
    #[error("--numa: node {node} does not exist here or has no memory; there are {present}")]
    NoNode {
        /// The node.
        node: NodeId,
        /// Nodes with memory.
        present: NodeSet,
    },
}

/// Why it is unknown which entry of a list is a rank's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// The list does not suit the ranks.
    #[error(
        "{option} names {entries} {what} for {}: expected one for all, or one for each",
        ranks_of(*local, *ranks)
    )]
    Length {
        /// The option.
        option: &'static str,
        /// Entries named.
        entries: usize,
        /// What these are, `nodes` or `cpus`.
        what: &'static str,
        /// Ranks on this host, where known.
        local: Option<usize>,
        /// All ranks, where known.
        ranks: Option<usize>,
    },
    /// A list, but no launcher.
    #[error(
        "{option} names {entries} {what}, but no launcher says which rank this is: start it by srun or mpirun, or name one"
    )]
    NoRank {
        /// The option.
        option: &'static str,
        /// Entries named.
        entries: usize,
        /// What these are.
        what: &'static str,
    },
    /// The launcher does not say which of its host's ranks this is.
    #[error(
        "rank {rank} was started by {launcher}, which does not say which of this host's ranks it is: set {LOCAL_RANK} (from 0), or name one node"
    )]
    NoLocalRank {
        /// The rank.
        rank: usize,
        /// Who started it.
        launcher: Launcher,
    },
    /// The launcher does not say how many ranks are on this host.
    #[error(
        "{option} names {entries} {what}, but {launcher} does not say how many ranks this host has: set {LOCAL_SIZE}, or name one for each of all ranks"
    )]
    NoLocalSize {
        /// The option.
        option: &'static str,
        /// Entries named.
        entries: usize,
        /// What these are.
        what: &'static str,
        /// Who started the rank.
        launcher: Launcher,
    },
}

fn ranks_of(local: Option<usize>, ranks: Option<usize>) -> String {
    match (local, ranks) {
        (Some(local), Some(ranks)) if local != ranks => {
            format!("{local} ranks on this host and {ranks} ranks in all")
        }
        (_, Some(ranks)) => format!("{ranks} ranks"),
        (Some(local), None) => format!("{local} ranks on this host"),
        (None, None) => "an unknown number of ranks".to_owned(),
    }
}

/// A list of which each rank has one entry.
#[derive(Clone, Copy, Debug)]
pub struct Seats {
    /// The option that gave it, such as `--numa`.
    pub option: &'static str,
    /// What it names, such as `nodes`.
    pub what: &'static str,
    /// The number of entries.
    pub entries: usize,
}

impl Seats {
    /// Returns the entry of a rank (none: the process is not a rank).
    ///
    /// A list as long as there are ranks goes by rank. One as long as there are ranks on this
    /// host goes by local rank, on each host anew. Both are the same on one host.
    ///
    /// # Errors
    /// [`SeatError`] if the list has another length, or a number that decides is unknown.
    pub fn of(self, task: Option<&Task>) -> Result<usize, SeatError> {
        let Self { option, what, entries } = self;
        let Some(task) = task else {
            let no_rank = SeatError::NoRank { option, entries, what };
            return if entries == 1 { Ok(0) } else { Err(no_rank) };
        };
        if entries == 1 && what == "nodes" {
            return Ok(0);
        }
        let (local, ranks, launcher) = (task.local_size(), task.size(), task.launcher());
        if ranks == Some(entries) {
            return Ok(task.rank());
        }
        match local {
            Some(local) if local == entries => local_rank(task),
            None if ranks.is_none_or(|ranks| entries < ranks) => {
                local_rank(task)?;
                Err(SeatError::NoLocalSize { option, entries, what, launcher })
            }
            _ => Err(SeatError::Length { option, entries, what, local, ranks }),
        }
    }
}

/// The rank's number on its host.
fn local_rank(task: &Task) -> Result<usize, SeatError> {
    let (rank, launcher) = (task.rank(), task.launcher());
    task.local_rank().ok_or(SeatError::NoLocalRank { rank, launcher })
}

impl BindError {
    /// The same; of a node that the machine has with memory, and that this process may not use, it
    /// says so.
    #[must_use]
    pub fn with_memory_of(self, machine: &Machine) -> Self {
        match self {
            Self::NoNode { node, present } if machine.memory_nodes().contains(node) => {
                Self::NotAllowed { node, allowed: present }
            }
            other => other,
        }
    }
}

/// The binding of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The rank, 0 without a launcher.
    pub rank: usize,
    /// The memory policy.
    pub policy: MemoryPolicy,
    /// The node on whose cpus it runs, where that was asked for too.
    pub cpus_of: Option<NodeId>,
}

impl Binding {
    /// Returns the binding of a rank (none: the only process) among the nodes `present`, which
    /// have memory and may have gaps in their numbers. Nodes in turn go by the rank's number on
    /// its host, so that each host uses all its nodes however ranks are distributed.
    ///
    /// # Errors
    /// [`BindError`] if the list does not suit the ranks or names a node that is not there.
    pub fn of(
        choice: &NodeChoice,
        kind: PolicyKind,
        task: Option<&Task>,
        present: &NodeSet,
    ) -> Result<Self, BindError> {
        let rank = task.map_or(0, Task::rank);
        let named = match choice {
            NodeChoice::Unsaid => vec![NodeId(0)],
            NodeChoice::InTurn(chosen) => chosen.of(present).iter().collect(),
            NodeChoice::List(nodes) => nodes.clone(),
        };
        if named.is_empty() {
            return Err(BindError::NoneLeft { present: present.clone() });
        }
        if let Some(&node) = named.iter().find(|node| !present.contains(**node)) {
            return Err(BindError::NoNode { node, present: present.clone() });
        }
        let takes_all = match kind {
            PolicyKind::Interleave | PolicyKind::Weighted | PolicyKind::PreferredMany => true,
            PolicyKind::Preferred => task.is_none() && matches!(choice, NodeChoice::List(_)),
            PolicyKind::Bind => false,
        };
        let policy = if takes_all {
            let nodes = NodeSet::from_iter(named);
            match (kind, nodes.first()) {
                (PolicyKind::Preferred | PolicyKind::PreferredMany, Some(node))
                    if nodes.len() == 1 =>
                {
                    MemoryPolicy::Preferred(node)
                }
                (PolicyKind::Preferred | PolicyKind::PreferredMany, _) => {
                    MemoryPolicy::PreferredMany(nodes)
                }
                (PolicyKind::Weighted, _) => MemoryPolicy::WeightedInterleave(nodes),
                _ => MemoryPolicy::Interleave(nodes),
            }
        } else {
            let entries = named.len();
            let seat = match (choice, task) {
                (NodeChoice::InTurn(_), task) => task.map_or(Ok(0), local_rank)? % entries,
                _ => Seats { option: "--numa", what: "nodes", entries }.of(task)?,
            };
            let node = named.get(seat).copied().unwrap_or_default();
            match kind {
                PolicyKind::Preferred => MemoryPolicy::Preferred(node),
                _ => MemoryPolicy::Bind(NodeSet::from_iter([node])),
            }
        };
        Ok(Self { rank, policy, cpus_of: None })
    }

    /// The two lines of the suite: what the rank is bound to, and what it becomes, with the
    /// `numactl` command that would do the same.
    #[must_use]
    pub fn lines(&self, command: &[String]) -> String {
        let (rank, nodes) = (self.rank, self.policy.nodes());
        let option = match &self.policy {
            MemoryPolicy::Local => "localalloc".to_owned(),
            MemoryPolicy::Bind(_) => format!("membind={nodes}"),
            MemoryPolicy::Preferred(_) => format!("preferred={nodes}"),
            MemoryPolicy::PreferredMany(_) => format!("preferred-many={nodes}"),
            MemoryPolicy::Interleave(_) => format!("interleave={nodes}"),
            MemoryPolicy::WeightedInterleave(_) => format!("weighted-interleave={nodes}"),
        };
        let cpus = self.cpus_of.map_or_else(String::new, |node| format!("cpunodebind={node} --"));
        let command = command.join(" ");
        format!(
            "[Rank {rank}] Binding to NUMA domain {nodes}\n\
             [Rank {rank}] Executing {command}, equivalent to: numactl --{cpus}{option} {command}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::identity::detect;

    fn rank(rank: usize, size: usize) -> Task {
        Task::of_own(rank, size)
    }

    /// The rank that an environment of these variables, `A=1 B=2`, makes.
    fn task(variables: &str) -> Task {
        let look = |name: &str| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        detect(&look).unwrap().unwrap()
    }

    /// A rank of two hosts with four each, dealt out in turn.
    fn cyclic(host: usize, local: usize) -> Task {
        task(&format!(
            "SLURM_STEP_ID=0 SLURM_PROCID={} SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID={local} \
             SLURM_NODEID={host} SLURM_STEP_TASKS_PER_NODE=4(x2)",
            2 * local + host
        ))
    }

    fn node_of(choice: &str, task: &Task) -> Result<String, BindError> {
        let (choice, present) = (choice.parse()?, "0-7".parse().unwrap());
        let binding = Binding::of(&choice, PolicyKind::Bind, Some(task), &present)?;
        Ok(binding.policy.nodes().to_string())
    }

    fn nodes_of(choice: &str, present: &str, ranks: usize) -> Result<Vec<String>, BindError> {
        let (choice, present) = (choice.parse()?, present.parse().unwrap());
        (0..ranks)
            .map(|number| {
                let task = rank(number, ranks);
                Binding::of(&choice, PolicyKind::Bind, Some(&task), &present)
                    .map(|binding| binding.policy.nodes().to_string())
            })
            .collect()
    }

    #[test]
    fn one_node_is_for_all_ranks_a_list_for_each_in_order() {
        assert_eq!(nodes_of("3", "0-3", 2).unwrap(), ["3", "3"]);
        assert_eq!(nodes_of("2,0,2,1", "0-3", 4).unwrap(), ["2", "0", "2", "1"]);
        assert_eq!(nodes_of("0-3", "0-3", 4).unwrap(), ["0", "1", "2", "3"]);
    }

    #[test]
    fn auto_goes_round_the_nodes_that_there_are_also_with_gaps() {
        for all in ["auto", "all"] {
            assert_eq!(nodes_of(all, "0,8,252", 5).unwrap(), ["0", "8", "252", "0", "8"]);
        }
        assert_eq!(nodes_of("!8", "0,8,252", 3).unwrap(), ["0", "252", "0"]);
        let none = nodes_of("!0-252", "0,8,252", 3).unwrap_err();
        assert_eq!(none, BindError::NoneLeft { present: "0,8,252".parse().unwrap() });
    }

    #[test]
    fn a_list_of_another_length_than_the_ranks_is_refused() {
        let error = nodes_of("0,1,2", "0-3", 4).unwrap_err();
        assert!(error.to_string().contains("3 nodes for 4 ranks"), "{error}");
        let choice = "0,1".parse().unwrap();
        let present = "0-3".parse().unwrap();
        let error = Binding::of(&choice, PolicyKind::Bind, None, &present).unwrap_err();
        assert!(error.to_string().contains("no launcher says which rank"), "{error}");
    }

    #[test]
    fn nodes_in_turn_go_by_the_local_rank_however_ranks_are_distributed() {
        for host in 0..2 {
            for local in 0..4 {
                let task = cyclic(host, local);
                assert_eq!(node_of("0-3", &task).unwrap(), local.to_string());
                assert_eq!(node_of("auto", &task).unwrap(), local.to_string());
            }
        }
    }

    #[test]
    fn a_list_for_all_ranks_goes_by_rank_and_one_for_a_host_by_local_rank() {
        let task = cyclic(1, 2);
        assert_eq!(node_of("0,1,2,3,4,5,6,7", &task).unwrap(), "5");
        assert_eq!(node_of("4,5,6,7", &task).unwrap(), "6");
        let error = node_of("0,1", &task).unwrap_err().to_string();
        assert!(error.contains("4 ranks on this host and 8 ranks in all"), "{error}");
    }

    #[test]
    fn a_rank_that_cannot_tell_its_place_on_the_host_is_refused_and_may_be_given_it() {
        let unknown = "PMIX_RANK=3 PMIX_NAMESPACE=prterun-a@1";
        for choice in ["auto", "0,1"] {
            let error = node_of(choice, &task(unknown)).unwrap_err().to_string();
            assert!(error.contains("rank 3") && error.contains(LOCAL_RANK), "{error}");
        }
        assert_eq!(node_of("2", &task(unknown)).unwrap(), "2");
        let given = task(&format!("{unknown} NUMALAB_LOCAL_RANK=1"));
        assert_eq!(node_of("auto", &given).unwrap(), "1");
        let error = node_of("0,1", &given).unwrap_err().to_string();
        assert!(error.contains(LOCAL_SIZE), "{error}");
        let given = task(&format!("{unknown} NUMALAB_LOCAL_RANK=1 NUMALAB_LOCAL_RANKS=2"));
        assert_eq!(node_of("4,5", &given).unwrap(), "5");
    }

    #[test]
    fn a_node_whose_memory_is_forbidden_is_told_from_one_that_is_not_there() {
        let node = |id| numalab_topology::Node {
            id: NodeId(id),
            online: true,
            memory_bytes: 1 << 30,
            ..Default::default()
        };
        let machine = Machine { nodes: vec![node(0), node(1)], ..Machine::default() };
        let refused = |choice: &str| {
            let (choice, present) = (choice.parse().unwrap(), "1".parse().unwrap());
            let error = Binding::of(&choice, PolicyKind::Bind, None, &present).unwrap_err();
            error.with_memory_of(&machine).to_string()
        };
        assert!(refused("0").contains("memory of node 0: its cpuset.mems allows 1"));
        assert!(refused("7").contains("node 7 does not exist here"));
    }

    #[test]
    fn a_node_that_is_not_there_is_named_with_those_that_are() {
        let error = nodes_of("1", "0,8", 1).unwrap_err().to_string();
        assert!(error.contains("node 1") && error.contains("0,8"), "{error}");
    }

    #[test]
    fn without_a_choice_it_is_node_0_and_its_lines_are_the_suites() {
        let present = "0-1".parse().unwrap();
        let binding = Binding::of(&NodeChoice::Unsaid, PolicyKind::Bind, None, &present).unwrap();
        let command = ["./numa_bench".to_owned(), "--size=512".to_owned()];
        assert_eq!(
            binding.lines(&command),
            "[Rank 0] Binding to NUMA domain 0\n\
             [Rank 0] Executing ./numa_bench --size=512, equivalent to: numactl --membind=0 ./numa_bench --size=512\n"
        );
    }

    #[test]
    fn spreading_policies_take_all_named_nodes_whatever_the_rank() {
        let (choice, present) = ("0,2".parse().unwrap(), "0-3".parse().unwrap());
        let of = |kind| Binding::of(&choice, kind, Some(&rank(5, 8)), &present).unwrap().policy;
        let nodes: NodeSet = "0,2".parse().unwrap();
        assert_eq!(of(PolicyKind::Interleave), MemoryPolicy::Interleave(nodes.clone()));
        assert_eq!(of(PolicyKind::Weighted), MemoryPolicy::WeightedInterleave(nodes));
    }

    #[test]
    fn several_nodes_are_preferred_together_without_a_launcher_or_where_asked_for() {
        let (choice, present) = ("0,2".parse().unwrap(), "0-3".parse().unwrap());
        let of =
            |kind, task: Option<Task>| Binding::of(&choice, kind, task.as_ref(), &present).unwrap();
        let many = MemoryPolicy::PreferredMany("0,2".parse().unwrap());
        let alone = of(PolicyKind::Preferred, None);
        assert_eq!(alone.policy, many);
        assert!(alone.lines(&[]).contains("numactl --preferred-many=0,2"), "{}", alone.lines(&[]));
        assert_eq!(of(PolicyKind::PreferredMany, Some(rank(5, 8))).policy, many);
        let of_rank = of(PolicyKind::Preferred, Some(rank(1, 2))).policy;
        assert_eq!(of_rank, MemoryPolicy::Preferred(NodeId(2)));
    }

    proptest! {
        #[test]
        fn any_text_is_a_choice_or_an_error_that_quotes_it(text in "[0-9a-z,:!-]{0,12}") {
            match text.parse::<NodeChoice>() {
                Ok(NodeChoice::List(nodes)) => prop_assert!(!nodes.is_empty()),
                Ok(_) => prop_assert!(text == "auto" || text == "all" || text.starts_with('!')),
                Err(error) => prop_assert!(error.to_string().contains(&text)),
            }
        }
    }
}
