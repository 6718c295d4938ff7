//! Memory policies and how they are written.

use alloc::format;
use core::fmt;

use super::{POLICY, PlacementError, among};
use crate::id::NodeId;
use crate::id_set::NodeSet;

/// The source of a process's new memory (`set_mempolicy(2)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The node of the cpu that touches it first.
    Local,
    /// These nodes and no others.
    Bind(NodeSet),
    /// These nodes while any has free memory, then the nearest.
    Preferred(NodeSet),
    /// One page from each of these nodes in turn.
    Interleave(NodeSet),
    /// Pages from each node in turn, by the weights of
    /// `/sys/kernel/mm/mempolicy/weighted_interleave`.
    WeightedInterleave(NodeSet),
}

impl MemoryPolicy {
    /// The names of all policies as they are written.
    pub const NAMES: [&str; 5] = ["local", "bind", "preferred", "interleave", "weighted"];

    /// Returns the policy that takes memory of this node only.
    pub fn bound_to(node: NodeId) -> Self {
        Self::Bind(NodeSet::from_iter([node]))
    }

    /// Parses `local`, `bind:0`, `preferred:!0`, `interleave:all`; interleaving without nodes is
    /// over `all`, the nodes with memory.
    ///
    /// # Errors
    /// [`PlacementError`] for an unknown policy, or nodes that are not among `all`.
    pub fn of(text: &str, all: &NodeSet) -> Result<Self, PlacementError> {
        let (name, nodes) = match text.split_once(':') {
            Some((name, nodes)) => (name, among(POLICY, nodes, all)?),
            None if ["interleave", "weighted"].contains(&text) => (text, all.clone()),
            None => (text, NodeSet::new()),
        };
        match (name, nodes.is_empty()) {
            ("local", true) => Ok(Self::Local),
            ("bind", false) => Ok(Self::Bind(nodes)),
            ("preferred", false) => Ok(Self::Preferred(nodes)),
            ("interleave", false) => Ok(Self::Interleave(nodes)),
            ("weighted", false) => Ok(Self::WeightedInterleave(nodes)),
            _ => {
                let names = Self::NAMES.join(", ");
                let expected = format!("one of {names}, with nodes of {all} as in bind:0");
                Err(PlacementError::new(POLICY, text, expected))
            }
        }
    }

    /// Returns the policy's nodes; none for [`MemoryPolicy::Local`].
    pub fn nodes(&self) -> NodeSet {
        match self {
            Self::Local => NodeSet::new(),
            Self::Bind(nodes)
            | Self::Preferred(nodes)
            | Self::Interleave(nodes)
            | Self::WeightedInterleave(nodes) => nodes.clone(),
        }
    }
}

/// Formats `bind:0`, `interleave:0,1`, `local`.
impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Bind(nodes) => write!(f, "bind:{nodes}"),
            Self::Preferred(nodes) => write!(f, "preferred:{nodes}"),
            Self::Interleave(nodes) => write!(f, "interleave:{nodes}"),
            Self::WeightedInterleave(nodes) => write!(f, "weighted:{nodes}"),
        }
    }
}
