//! What formats do not carry of a machine, said once for all of them.

use numalab_topology::{Cpu, Distances, Finding, Machine, Severity};

/// Something that a machine can tell and a format may have no words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Packages.
    Packages,
    /// Cores, and which thread of its core a cpu is.
    Cores,
    /// L3 groups.
    L3Groups,
    /// Caches.
    Caches,
    /// Distances.
    Distances,
    /// Cpus that are offline.
    OfflineCpus,
    /// Node, package and core of cpus that are offline.
    OfflinePlaces,
    /// Cpus of no node.
    UnplacedCpus,
    /// Nodes that are offline.
    OfflineNodes,
    /// Memory below a MiB.
    Bytes,
    /// Free memory.
    FreeMemory,
    /// Pools of huge pages.
    HugePages,
    /// Free huge pages.
    FreeHugePages,
    /// Memory-side caches.
    MemorySideCaches,
    /// Proximity domains.
    ProximityDomains,
    /// APIC ids.
    ApicIds,
    /// Ranges of physical memory.
    Ranges,
    /// Latencies and bandwidths.
    Access,
    /// Memory tiers.
    Tiers,
    /// What the process may use.
    Allowed,
}

/// Every feature, as messages name it.
const ALL: [(Feature, &str); 20] = [
    (Feature::Packages, "packages"),
    (Feature::Cores, "cores"),
    (Feature::L3Groups, "L3 groups"),
    (Feature::Caches, "caches"),
    (Feature::Distances, "distances"),
    (Feature::OfflineCpus, "offline cpus"),
    (Feature::OfflinePlaces, "the place of offline cpus"),
    (Feature::UnplacedCpus, "cpus of no node"),
    (Feature::OfflineNodes, "offline nodes"),
    (Feature::Bytes, "memory below a MiB"),
    (Feature::FreeMemory, "free memory"),
    (Feature::HugePages, "huge pages"),
    (Feature::FreeHugePages, "free huge pages"),
    (Feature::MemorySideCaches, "memory-side caches"),
    (Feature::ProximityDomains, "proximity domains"),
    (Feature::ApicIds, "APIC ids"),
    (Feature::Ranges, "ranges of memory"),
    (Feature::Access, "latencies and bandwidths"),
    (Feature::Tiers, "memory tiers"),
    (Feature::Allowed, "what the process may use"),
];

impl Feature {
    /// Takes it out of a machine.
    pub fn clear(self, machine: &mut Machine) {
        let Machine { nodes, cpus, .. } = machine;
        match self {
            Self::Packages => cpus.iter_mut().for_each(|cpu| cpu.package = None),
            Self::Cores => cpus.iter_mut().for_each(|cpu| (cpu.core, cpu.thread) = (None, 0)),
            Self::L3Groups => cpus.iter_mut().for_each(|cpu| cpu.l3_group = None),
            Self::Caches => machine.caches.clear(),
            Self::Distances => machine.distances = Distances::default(),
            Self::OfflineCpus => {
                let online = machine.online_cpus();
                machine.cpus.retain(|cpu| cpu.online);
                for node in &mut machine.nodes {
                    node.cpus = node.cpus.intersection(&online);
                }
            }
            Self::OfflinePlaces => {
                for cpu in cpus.iter_mut().filter(|cpu| !cpu.online) {
                    nodes.iter_mut().for_each(|node| {
                        node.cpus.remove(cpu.id);
                    });
                    *cpu = Cpu { id: cpu.id, ..Cpu::default() };
                }
            }
            Self::UnplacedCpus => cpus.retain(|cpu| cpu.node.is_some()),
            Self::OfflineNodes => nodes.retain(|node| node.online),
            Self::Bytes => nodes.iter_mut().for_each(|node| {
                node.memory_bytes = node.memory_bytes >> 20 << 20;
                node.free_bytes = node.free_bytes.map(|bytes| bytes >> 20 << 20);
            }),
            Self::FreeMemory => nodes.iter_mut().for_each(|node| node.free_bytes = None),
            Self::HugePages => nodes.iter_mut().for_each(|node| node.huge_pages.clear()),
            Self::FreeHugePages => {
                let pools = nodes.iter_mut().flat_map(|node| &mut node.huge_pages);
                pools.for_each(|pool| pool.free = 0);
            }
            Self::MemorySideCaches => {
                nodes.iter_mut().for_each(|node| node.memory_side_caches.clear());
            }
            Self::ProximityDomains => {
                nodes.iter_mut().for_each(|node| node.proximity_domain = None);
            }
            Self::ApicIds => cpus.iter_mut().for_each(|cpu| cpu.apic_id = None),
            Self::Ranges => machine.ranges.clear(),
            Self::Access => machine.access.clear(),
            Self::Tiers => machine.tiers.clear(),
            Self::Allowed => machine.allowed = None,
        }
    }
}

/// The features that the machine has and a format that carries only `carried` loses.
#[must_use]
pub fn lost(machine: &Machine, carried: &[Feature]) -> Vec<Feature> {
    let has = |feature: Feature| {
        let mut without = machine.clone();
        feature.clear(&mut without);
        without != *machine
    };
    let all = ALL.iter().map(|&(feature, _)| feature);
    all.filter(|feature| !carried.contains(feature) && has(*feature)).collect()
}

/// What a format loses of the machine, in one finding.
#[must_use]
pub fn loss(machine: &Machine, format: &str, carried: &[Feature]) -> Option<Finding> {
    let lost = lost(machine, carried);
    let names = ALL.iter().filter(|(feature, _)| lost.contains(feature)).map(|&(_, name)| name);
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| Finding {
        severity: Severity::Note,
        code: "not-carried".to_owned(),
        place: format.to_owned(),
        message: format!("does not carry {}", names.join(", ")),
    })
}
