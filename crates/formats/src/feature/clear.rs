//! Removal of features from a machine.

use std::collections::{BTreeMap, BTreeSet};

use numalab_topology::{
    AccessAttributes, AccessClass, Cache, CacheKind, Cpu, CpuSet, Distances, Machine, Node, NodeId,
    NodeSet,
};

use super::Feature;
use crate::size::rounded;

const MIB: u64 = 1 << 20;

impl Feature {
    /// Removes the feature from a machine.
    pub fn clear(self, machine: &mut Machine) {
        match self {
            Self::PackagesInNodes => packages_in_nodes(machine),
            Self::Caches => machine.caches.clear(),
            Self::InnerCaches => {
                let is_l3 = |cache: &Cache| (cache.level, cache.kind) == (3, CacheKind::Unified);
                machine.caches.retain(is_l3);
            }
            Self::CacheLines => {
                let forget = |cache: &mut Cache| (cache.line_bytes, cache.ways) = (None, None);
                machine.caches.iter_mut().for_each(forget);
            }
            Self::Distances => machine.distances = Distances::default(),
            Self::PartialDistances => partial_distances(machine),
            Self::LoneDistance => lone_distance(machine),
            Self::FarDistances => far_distances(machine),
            Self::OfflineCpus => offline_cpus(machine),
            Self::OfflinePlaces => offline_places(machine),
            Self::UnplacedCpus => machine.cpus.retain(|cpu| cpu.node.is_some()),
            Self::OfflineNodes => offline_nodes(machine),
            Self::Nodes => one_node(machine),
            Self::SharedCpus => shared_cpus(machine),
            Self::SizesBesideRanges => sizes_of_ranges(machine),
            Self::Ranges => machine.ranges.clear(),
            Self::Access => machine.access.clear(),
            Self::CpulessInitiators => {
                let known = machine.cpu_nodes();
                machine.access.retain(|access| known.contains(access.initiator));
            }
            Self::AccessClasses => access_classes(machine),
            Self::Picoseconds => machine.access.iter_mut().for_each(|access| {
                let whole = |ps: Option<u64>| ps.map(|ps| ps.saturating_add(500) / 1000 * 1000);
                access.read_latency_ps = whole(access.read_latency_ps);
                access.write_latency_ps = whole(access.write_latency_ps);
            }),
            Self::Tiers => machine.tiers.clear(),
            Self::Devices => machine.devices.clear(),
            Self::DeviceIds => machine.devices.iter_mut().for_each(|device| {
                (device.id, device.driver) = (None, None);
            }),
            Self::DeviceNames => machine.devices.iter_mut().for_each(|device| {
                (device.address, device.names) = (String::new(), Vec::new());
            }),
            Self::UnplacedDevices => machine.devices.retain(|device| device.node.is_some()),
            Self::Allowed => machine.allowed = None,
            Self::Isolated => {
                machine.allowed.iter_mut().for_each(|allowed| allowed.isolated = CpuSet::new());
            }
            _ => {
                machine.nodes.iter_mut().for_each(|node| self.clear_node(node));
                machine.cpus.iter_mut().for_each(|cpu| self.clear_cpu(cpu));
            }
        }
    }

    /// Removes the feature from a node.
    fn clear_node(self, node: &mut Node) {
        match self {
            Self::NodeState => node.online = true,
            Self::Memory => (node.memory_bytes, node.memory_unknown) = (0, false),
            Self::Bytes => {
                node.memory_bytes = node.memory_bytes / MIB * MIB;
                node.free_bytes = node.free_bytes.map(|bytes| bytes / MIB * MIB);
            }
            Self::Digits => node.memory_bytes = rounded(node.memory_bytes),
            Self::FreeMemory => node.free_bytes = None,
            Self::HugePages => node.huge_pages.clear(),
            Self::FreeHugePages => node.huge_pages.iter_mut().for_each(|pool| pool.free = 0),
            Self::MemorySideCaches => node.memory_side_caches.clear(),
            Self::MemorySideWays => {
                let caches = node.memory_side_caches.iter_mut();
                caches.for_each(|cache| cache.ways = cache.ways.filter(|&ways| ways == 1));
            }
            Self::Cxl => node.cxl = false,
            Self::ProximityDomains => node.proximity_domain = None,
            _ => {}
        }
    }

    /// Removes the feature from a cpu.
    fn clear_cpu(self, cpu: &mut Cpu) {
        match self {
            Self::Packages => cpu.package = None,
            Self::Cores => (cpu.core, cpu.thread) = (None, 0),
            Self::L3Groups => cpu.l3_group = None,
            Self::CpuState => cpu.online = true,
            Self::ApicIds => cpu.apic_id = None,
            _ => {}
        }
    }
}

/// Leaves the cpus that several nodes list on the first of them.
fn shared_cpus(machine: &mut Machine) {
    let shares = |node: &&Node| machine.first_with_cpus_of(node).is_some();
    let parts: NodeSet = machine.nodes.iter().filter(shares).map(|node| node.id).collect();
    let parts = machine.nodes.iter_mut().filter(|node| parts.contains(node.id));
    parts.for_each(|node| node.cpus = CpuSet::new());
}

/// Removes the package of cpus on nodes that are in several packages.
fn packages_in_nodes(machine: &mut Machine) {
    let mut of_node: BTreeMap<NodeId, BTreeSet<Option<u32>>> = BTreeMap::new();
    for cpu in &machine.cpus {
        if let Some(node) = cpu.node {
            of_node.entry(node).or_default().insert(cpu.package);
        }
    }
    let several =
        |cpu: &Cpu| cpu.node.is_none_or(|node| of_node.get(&node).is_some_and(|set| set.len() > 1));
    machine.cpus.iter_mut().filter(|cpu| several(cpu)).for_each(|cpu| cpu.package = None);
}

/// Keeps distances only if those between all online nodes are known.
fn partial_distances(machine: &mut Machine) {
    let online = || machine.nodes.iter().filter(|node| node.online).map(|node| node.id);
    if online().any(|from| online().any(|to| machine.distance(from, to).is_none())) {
        machine.distances = Distances::default();
    }
}

fn lone_distance(machine: &mut Machine) {
    if machine.nodes.iter().filter(|node| node.online).count() < 2 {
        machine.distances = Distances::default();
    }
}

/// Keeps in every row only the smallest distance to another node, and the one in the opposite
/// direction.
fn far_distances(machine: &mut Machine) {
    let count = machine.distances.len();
    let nearest = |from: usize| {
        let others = (0..count).filter(|&to| to != from);
        others.filter_map(|to| machine.distances.get(from, to)).min()
    };
    let nearest: Vec<Option<u8>> = (0..count).map(nearest).collect();
    let mut near = Distances::unknown(count);
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
        let (there, back) = (machine.distances.get(from, to), machine.distances.get(to, from));
        let kept = from != to && (there == nearest[from] || back == nearest[to]);
        if let Some(distance) = there.filter(|_| kept) {
            near.set(from, to, distance);
        }
    }
    machine.distances = near;
}

fn offline_cpus(machine: &mut Machine) {
    offline_places(machine);
    let online = machine.online_cpus();
    machine.cpus.retain(|cpu| cpu.online);
    if let Some(allowed) = &mut machine.allowed {
        allowed.cpus = allowed.cpus.intersection(&online);
    }
}

fn offline_places(machine: &mut Machine) {
    let online = machine.online_cpus();
    machine.nodes.iter_mut().for_each(|node| node.cpus = node.cpus.intersection(&online));
    machine.caches.iter_mut().for_each(|cache| cache.cpus = cache.cpus.intersection(&online));
    machine.caches.retain(|cache| !cache.cpus.is_empty());
    for cpu in machine.cpus.iter_mut().filter(|cpu| !cpu.online) {
        *cpu = Cpu { id: cpu.id, ..Cpu::default() };
    }
    // Siblings are numbered from the first remaining one.
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    for cpu in &mut machine.cpus {
        if let Some(core) = cpu.core {
            let thread = next.entry(core).or_default();
            cpu.thread = *thread;
            *thread += 1;
        }
    }
}

/// Keeps only the online nodes and everything that refers to them.
fn offline_nodes(machine: &mut Machine) {
    let online: NodeSet =
        machine.nodes.iter().filter(|node| node.online).map(|node| node.id).collect();
    if online.len() == machine.nodes.len() {
        return;
    }
    if !machine.distances.is_empty() {
        let mut distances = Distances::unknown(online.len());
        for (row, from) in online.iter().enumerate() {
            for (column, to) in online.iter().enumerate() {
                if let Some(distance) = machine.distance(from, to) {
                    distances.set(row, column, distance);
                }
            }
        }
        machine.distances = distances;
    }
    machine.nodes.retain(|node| node.online);
    let gone = |node: Option<NodeId>| node.is_some_and(|node| !online.contains(node));
    machine.cpus.iter_mut().filter(|cpu| gone(cpu.node)).for_each(|cpu| cpu.node = None);
    machine.ranges.retain(|range| online.contains(range.node));
    machine
        .access
        .retain(|access| online.contains(access.initiator) && online.contains(access.target));
    machine.tiers.iter_mut().for_each(|tier| tier.nodes = tier.nodes.intersection(&online));
    machine.tiers.retain(|tier| !tier.nodes.is_empty());
}

/// Puts the whole machine on one node without further properties.
fn one_node(machine: &mut Machine) {
    if machine.nodes.len() < 2 {
        return;
    }
    let id = NodeId(0);
    let cpus = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let memory_bytes = machine.memory_bytes();
    machine.nodes = vec![Node { id, online: true, cpus, memory_bytes, ..Node::default() }];
    machine.cpus.iter_mut().for_each(|cpu| cpu.node = Some(id));
    machine.distances = Distances::default();
    machine.ranges.iter_mut().for_each(|range| range.node = id);
    machine.access.clear();
    machine.tiers.clear();
    if let Some(allowed) = &mut machine.allowed {
        allowed.memory_nodes = NodeSet::from_iter([id]);
    }
}

/// Sets the size of nodes with ranges to that of their ranges, without those that can be
/// hot-plugged.
fn sizes_of_ranges(machine: &mut Machine) {
    for node in &mut machine.nodes {
        let own = || machine.ranges.iter().filter(|range| range.node == node.id);
        let fixed = || own().filter(|range| !range.hot_pluggable && range.length_bytes > 0);
        if fixed().next().is_some() {
            node.memory_bytes =
                fixed().fold(0, |sum: u64, range| sum.saturating_add(range.length_bytes));
        }
    }
}

/// Keeps one set of values for each pair, in order: those for cpus if they differ.
fn access_classes(machine: &mut Machine) {
    let mut pairs: BTreeMap<(NodeId, NodeId), AccessAttributes> = BTreeMap::new();
    for access in &machine.access {
        let pair = (access.initiator, access.target);
        if access.class == AccessClass::Cpu || !pairs.contains_key(&pair) {
            pairs.insert(pair, AccessAttributes { class: AccessClass::Any, ..access.clone() });
        }
    }
    machine.access = pairs.into_values().collect();
}
