//! Peer groups: hosts of one processor and shape, which are compared with each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::HostRun;

/// Minimum number of peers for a test.
pub(super) const LEAST_PEERS: usize = 10;

/// Facts that peers share. With a different number of nodes (NPS, SNC) or cpus (SMT) a host's cells
/// differ.
const ALIKE: [&str; 4] = ["cpu_model", "topology.packages", "topology.nodes", "topology.cpus"];

/// Hosts of one processor and shape.
pub(super) struct Group {
    alike: Vec<String>,
    /// The indices of the hosts.
    pub(super) members: Vec<usize>,
}

fn alike(host: &HostRun) -> Vec<String> {
    ALIKE.iter().map(|name| host.facts.get(*name).cloned().unwrap_or_default()).collect()
}

/// Returns the groups, largest first.
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

/// A host with too few peers for a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Untested {
    /// The host's name.
    pub host: String,
    /// Number of hosts of its processor and shape, including itself.
    pub alike: usize,
    /// Number of hosts that a test needs.
    pub needed: usize,
    /// Differences from the largest group, if that is not its own.
    pub differing: Vec<Differing>,
}

/// A fact in which a host differs from most others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Differing {
    /// The fact's name.
    pub name: String,
    /// The setting's value on this host.
    pub value: String,
    /// The setting's value in the largest group of hosts.
    pub usual: String,
}

/// Returns the hosts of a kind with too few members.
pub(super) fn left_out<'a>(
    hosts: &'a [HostRun],
    kind: &'a [usize],
) -> impl Iterator<Item = Untested> + 'a {
    kind.iter().map(|&member| Untested {
        host: hosts[member].host.clone(),
        alike: kind.len(),
        needed: LEAST_PEERS,
        differing: Vec::new(),
    })
}

/// Returns the hosts of a group with too few members, with their differences from the largest of
/// `groups`.
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
