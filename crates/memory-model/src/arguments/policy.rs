//! The placement of a program's pages as given by the arguments: `bind.0.1`, with nodes by
//! position.

use alloc::vec::Vec;
use core::fmt;

use super::MOST_ALTERNATIVES;
use crate::short;
use crate::space::Placement;

/// An alternative to the placement with which a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// Pages without a policy set by the program are interleaved, or bound to one node together
    /// with all threads.
    Placed(Placement),
    /// Huge pages wherever possible.
    Huge,
    /// Threads take cpus node by node, and pages are placed by first touch.
    Packed,
    /// Pages as by [`Policy::Users`].
    Users,
}

/// The placement of a program's pages without a policy of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// By this placement, from their first touch on.
    Stay(Placement),
    /// Pages move at no cost when a second thread uses them, which approximates first touch by
    /// their users.
    Users,
}

impl Policy {
    /// Parses `bind.0.1`: a mode and positions of nodes, on a machine of `nodes` nodes.
    pub(super) fn parse(word: &str, nodes: usize) -> Option<Self> {
        let (mode, numbers) = word.split_once('.').unwrap_or((word, ""));
        let positions = if numbers.is_empty() { Vec::new() } else { short::numbers(numbers)? };
        let known = positions.iter().all(|node| *node < nodes);
        let placement = match (mode, positions.first()) {
            ("users", None) => return Some(Self::Users),
            ("local", None) => Placement::Local,
            ("preferred", Some(node)) if positions.len() == 1 => Placement::Preferred(*node),
            ("bind", Some(_)) => Placement::Bind(positions),
            ("interleave", Some(_)) => Placement::Interleave(positions),
            _ => return None,
        };
        known.then_some(Self::Stay(placement))
    }
}

impl Alternative {
    fn parse(word: &str, nodes: usize) -> Option<Self> {
        match Policy::parse(word, nodes) {
            None if word == "thp" => Some(Self::Huge),
            None if word == "pack" => Some(Self::Packed),
            Some(Policy::Users) => Some(Self::Users),
            Some(Policy::Stay(Placement::Bind(of))) if of.len() != 1 => None,
            Some(Policy::Stay(known @ (Placement::Bind(_) | Placement::Interleave(_)))) => {
                Some(Self::Placed(known))
            }
            _ => None,
        }
    }
}

/// Parses `bind.0+interleave.0.1+users+thp+pack`: policies that place pages, huge pages, and packed
/// threads.
pub(super) fn alternatives(word: &str, nodes: usize) -> Option<Vec<Alternative>> {
    let all = word.split('+').map(|word| Alternative::parse(word, nodes));
    let all: Vec<Alternative> = all.collect::<Option<_>>()?;
    (all.len() <= MOST_ALTERNATIVES).then_some(all)
}

/// Formats the placement like `bind.0.1`.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, nodes) = match self {
            Self::Local => ("local", &[][..]),
            Self::Preferred(node) => ("preferred", core::slice::from_ref(node)),
            Self::Bind(nodes) => ("bind", nodes.as_slice()),
            Self::Interleave(nodes) => ("interleave", nodes.as_slice()),
        };
        f.write_str(mode)?;
        nodes.iter().try_for_each(|node| write!(f, ".{node}"))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stay(placement) => placement.fmt(f),
            Self::Users => f.write_str("users"),
        }
    }
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placed(placement) => placement.fmt(f),
            Self::Huge => f.write_str("thp"),
            Self::Packed => f.write_str("pack"),
            Self::Users => f.write_str("users"),
        }
    }
}
