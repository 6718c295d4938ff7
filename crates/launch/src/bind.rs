//! Which node's memory each rank takes: the wrapper of the benchmark suite.

use numalab_host::MemoryPolicy;
use numalab_topology::{Chosen, NodeId, NodeSet};

use crate::identity::Identity;

/// What `--numa` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// Nothing was asked for: node 0, as the suite documents.
    Unsaid,
    /// The chosen ones of the nodes with memory, in turn.
    InTurn(Chosen<NodeId>),
    /// One node for all ranks, or one for each.
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
    /// The rank's node while it has any.
    Preferred,
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
    /// The list does not suit the ranks.
    #[error("--numa names {nodes} nodes for {ranks} ranks: expected one for all, or one for each")]
    Length {
        /// Nodes named.
        nodes: usize,
        /// Ranks there are.
        ranks: usize,
    },
    /// A list, but no launcher.
    #[error(
        "--numa names {nodes} nodes, but no launcher says which rank this is: start it by srun or mpirun, or name one node"
    )]
    NoRank {
        /// Nodes named.
        nodes: usize,
    },
    /// All nodes are left out.
    #[error("--numa leaves out every node with memory; there are {present}")]
    NoneLeft {
        /// Nodes with memory.
        present: NodeSet,
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
    /// The binding of the rank `identity` (none: the only one) among the nodes `present`,
    /// which have memory and may have gaps in their numbers.
    ///
    /// # Errors
    /// [`BindError`] if the list does not suit the ranks or names a node that is not there.
    pub fn of(
        choice: &NodeChoice,
        kind: PolicyKind,
        identity: Option<&Identity>,
        present: &NodeSet,
    ) -> Result<Self, BindError> {
        let rank = identity.map_or(0, |identity| identity.rank);
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
        let spread = matches!(kind, PolicyKind::Interleave | PolicyKind::Weighted);
        let policy = if spread {
            let nodes = NodeSet::from_iter(named);
            match kind {
                PolicyKind::Weighted => MemoryPolicy::WeightedInterleave(nodes),
                _ => MemoryPolicy::Interleave(nodes),
            }
        } else {
            if !matches!(choice, NodeChoice::InTurn(_)) {
                check_length(named.len(), identity)?;
            }
            let node = named.get(rank % named.len().max(1)).copied().unwrap_or_default();
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

fn check_length(nodes: usize, identity: Option<&Identity>) -> Result<(), BindError> {
    match identity {
        _ if nodes == 1 => Ok(()),
        None => Err(BindError::NoRank { nodes }),
        Some(identity) if identity.size == nodes => Ok(()),
        Some(identity) => Err(BindError::Length { nodes, ranks: identity.size }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::identity::{Launcher, Local};

    fn rank(rank: usize, size: usize) -> Identity {
        let local = Some(Local { rank, size });
        Identity { launcher: Launcher::Local, rank, size, local }
    }

    fn nodes_of(choice: &str, present: &str, ranks: usize) -> Result<Vec<String>, BindError> {
        let (choice, present) = (choice.parse()?, present.parse().unwrap());
        (0..ranks)
            .map(|number| {
                let identity = rank(number, ranks);
                Binding::of(&choice, PolicyKind::Bind, Some(&identity), &present)
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
        assert_eq!(error, BindError::Length { nodes: 3, ranks: 4 });
        let choice = "0,1".parse().unwrap();
        let present = "0-3".parse().unwrap();
        let error = Binding::of(&choice, PolicyKind::Bind, None, &present).unwrap_err();
        assert_eq!(error, BindError::NoRank { nodes: 2 });
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
