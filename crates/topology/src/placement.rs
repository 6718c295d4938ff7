//! Placements: the cpus of a program and the nodes of its memory, in one grammar.

mod policy;
mod tools;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::chosen::Chosen;
use crate::id::{CpuId, Id};
use crate::id_set::{CpuSet, IdSet, NodeSet};
use crate::machine::Machine;

pub use policy::MemoryPolicy;

/// The setting with the cpus of a placement.
pub const CPUS: &str = "cpus";
/// The setting with the nodes of its cpus.
pub const NODES: &str = "nodes";
/// The setting with its memory policy.
pub const POLICY: &str = "policy";

/// The cpus on which a program runs and the nodes whose memory it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The nodes on whose cpus it runs, if it was placed by nodes.
    pub nodes: Option<NodeSet>,
    /// The cpus on which it runs, unless it may run anywhere.
    pub cpus: Option<CpuSet>,
    /// Memory policy; `None` keeps the current one.
    pub policy: Option<MemoryPolicy>,
}

impl From<MemoryPolicy> for Placement {
    fn from(policy: MemoryPolicy) -> Self {
        Self { policy: Some(policy), ..Self::default() }
    }
}

/// Reason why a setting of a placement is not valid on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {found}: expected {expected}")]
pub struct PlacementError {
    /// Name of the setting.
    pub setting: &'static str,
    /// The rejected text.
    pub found: String,
    /// The valid form.
    pub expected: String,
}

impl PlacementError {
    fn new(setting: &'static str, found: &str, expected: impl Into<String>) -> Self {
        Self { setting, found: found.to_owned(), expected: expected.into() }
    }
}

impl Placement {
    /// Returns the placement that these settings mean on a machine; `setting` returns the value of
    /// one, if it is set.
    ///
    /// # Errors
    /// [`PlacementError`] if the machine does not have these cpus or nodes.
    pub fn of(
        setting: impl Fn(&str) -> Option<String>,
        machine: &Machine,
    ) -> Result<Self, PlacementError> {
        let usable = machine.usable_cpus();
        let (nodes, cpus) = match (setting(CPUS), setting(NODES)) {
            (Some(cpus), Some(_)) => {
                return Err(PlacementError::new(CPUS, &cpus, "either cpus or nodes, not both"));
            }
            (Some(cpus), None) => (None, Some(among(CPUS, &cpus, &usable)?)),
            (None, Some(nodes)) => {
                let (nodes, cpus) = cpus_of(&nodes, machine, &usable)?;
                (Some(nodes), Some(cpus))
            }
            (None, None) => (None, None),
        };
        let all = machine.usable_memory_nodes();
        let policy = setting(POLICY).map(|text| MemoryPolicy::of(&text, &all)).transpose()?;
        Ok(Self { nodes, cpus, policy })
    }

    /// Returns the settings that mean this placement, as [`Self::of`] reads them.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let place = match (&self.nodes, &self.cpus) {
            (Some(nodes), _) => Some((NODES, nodes.to_string())),
            (None, cpus) => cpus.as_ref().map(|cpus| (CPUS, cpus.to_string())),
        };
        let policy = self.policy.as_ref().map(|policy| (POLICY, policy.to_string()));
        place.into_iter().chain(policy)
    }

    /// Returns its cpus in the order of their nodes, so that a share of them is on one node where
    /// it fits.
    pub fn cpus_by_node(&self, machine: &Machine) -> Vec<CpuId> {
        let cpus = self.cpus.clone().unwrap_or_else(|| machine.usable_cpus());
        let mut cpus: Vec<CpuId> = cpus.iter().collect();
        let node = |id: CpuId| machine.cpus.iter().find(|cpu| cpu.id == id)?.node;
        cpus.sort_by_key(|cpu| node(*cpu));
        cpus
    }
}

/// Parses a list in the syntax of numactl(8); ids that do not exist are rejected.
fn among<I: Id>(
    setting: &'static str,
    text: &str,
    all: &IdSet<I>,
) -> Result<IdSet<I>, PlacementError> {
    let refused = || PlacementError::new(setting, text, format!("some of {all}"));
    let chosen = text.parse::<Chosen<I>>().map_err(|_| refused())?.select_from(all);
    let is_there = !chosen.is_empty() && chosen.is_subset(all);
    if is_there { Ok(chosen) } else { Err(refused()) }
}

fn cpus_of(
    nodes: &str,
    machine: &Machine,
    usable: &CpuSet,
) -> Result<(NodeSet, CpuSet), PlacementError> {
    let able = machine.nodes.iter().filter(|node| !node.cpus.intersection(usable).is_empty());
    let able: Vec<_> = able.collect();
    let chosen = among(NODES, nodes, &able.iter().map(|node| node.id).collect())?;
    let of = able.iter().filter(|node| chosen.contains(node.id));
    let cpus = of.flat_map(|node| node.cpus.iter()).filter(|cpu| usable.contains(*cpu)).collect();
    Ok((chosen, cpus))
}

#[cfg(test)]
mod tests;
