//! Which hosts are held against each other: those of one processor and one shape.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::HostRun;

/// Fewer peers than this and nothing is tested.
pub(super) const LEAST_PEERS: usize = 10;

/// What peers have in common. With another number of nodes (NPS, SNC) or cpus (SMT) the cells
/// of a host are others.
const ALIKE: [&str; 4] = ["cpu_model", "topology.packages", "topology.nodes", "topology.cpus"];

/// Hosts that are alike.
pub(super) struct Group {
    alike: Vec<String>,
    /// Their positions.
    pub(super) members: Vec<usize>,
}

fn alike(host: &HostRun) -> Vec<String> {
    ALIKE.iter().map(|name| host.facts.get(*name).cloned().unwrap_or_default()).collect()
}

/// The groups, largest first.
pub(super) fn groups(hosts: &[HostRun]) -> Vec<Group> {
    let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
    for (at, host) in hosts.iter().enumerate() {
        groups.entry(alike(host)).or_default().push(at);
    }
    let mut groups: Vec<Group> =
        groups.into_iter().map(|(alike, members)| Group { alike, members }).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.members.len()));
    groups
}

/// A host that has too few peers to be tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Untested {
    /// The host.
    pub host: String,
    /// Hosts of its processor and shape, itself included.
    pub alike: usize,
    /// How many a test takes.
    pub needed: usize,
    /// In what it differs from the largest group of hosts, if that is not its own.
    pub differing: Vec<Differing>,
}

/// A fact in which a host differs from most others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Differing {
    /// The fact's name.
    pub name: String,
    /// Its value here.
    pub value: String,
    /// Its value in the largest group.
    pub usual: String,
}

/// The hosts of a group with too few members, and how they differ from the largest of `groups`.
pub(super) fn untested<'a>(
    hosts: &'a [HostRun],
    groups: &[Group],
    group: &'a Group,
) -> impl Iterator<Item = Untested> + 'a {
    let most = groups.first().filter(|most| most.members.len() > group.members.len());
    let usual = most.map_or(&group.alike, |most| &most.alike);
    let differing = ALIKE.iter().zip(group.alike.iter().zip(usual));
    let differing = differing.filter(|(_, (here, there))| here != there);
    let differing: Vec<Differing> = differing
        .map(|(name, (value, usual))| Differing {
            name: (*name).to_owned(),
            value: value.clone(),
            usual: usual.clone(),
        })
        .collect();
    group.members.iter().map(move |&member| Untested {
        host: hosts[member].host.clone(),
        alike: group.members.len(),
        needed: LEAST_PEERS,
        differing: differing.clone(),
    })
}
