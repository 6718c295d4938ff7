//! Which hosts are held against each other: those of one processor and one shape.

use std::collections::BTreeMap;

use super::HostRun;

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

/// Why the hosts of a small group have no peers: how they differ from the largest group.
pub(super) fn reason(hosts: &[HostRun], group: &Group) -> String {
    let groups = groups(hosts);
    let Some(most) = groups.first().filter(|most| most.members.len() > group.members.len()) else {
        return format!("{} host(s) like it, too few to tell an outlier", group.members.len());
    };
    let differing = ALIKE.iter().zip(group.alike.iter().zip(&most.alike));
    let differing = differing.filter(|(_, (here, there))| here != there);
    let text: Vec<String> = differing
        .map(|(name, (here, there))| format!("{name} {here} instead of {there}"))
        .collect();
    format!("no peers: {}", text.join(", "))
}
