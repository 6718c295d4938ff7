//! What formats do not carry of a machine, said once for all of them.
//!
//! Every format has its [`Carried`]; [`Carried::loss`] is the note on everything else that the
//! machine has. [`Feature::clear`] says what a loss means, to the value: a reader gives the
//! machine that is left, and a writer writes the same text of it.

mod clear;

use numalab_topology::{Finding, Machine, Severity};

/// Something that a machine can tell and a format may have no words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Packages.
    Packages,
    /// Packages that are parts of nodes.
    PackagesInNodes,
    /// Cores, and which thread of its core a cpu is.
    Cores,
    /// L3 groups.
    L3Groups,
    /// Caches.
    Caches,
    /// Caches that are no unified ones of level 3.
    InnerCaches,
    /// Lines and associativity of caches.
    CacheLines,
    /// Memory.
    Memory,
    /// Distances.
    Distances,
    /// Distances of which some are not known.
    PartialDistances,
    /// The distance of a node to itself where there is no other.
    LoneDistance,
    /// Distances but those to the nearest nodes.
    FarDistances,
    /// Cpus that are offline.
    OfflineCpus,
    /// Node, package, core and caches of cpus that are offline.
    OfflinePlaces,
    /// Which cpus are offline.
    CpuState,
    /// Cpus of no node.
    UnplacedCpus,
    /// Nodes that are offline.
    OfflineNodes,
    /// Which nodes are offline.
    NodeState,
    /// Which node cpus and memory are on.
    Nodes,
    /// Memory below a MiB.
    Bytes,
    /// Memory beyond the digits that people read.
    Digits,
    /// Sizes of memory that differ from those of its ranges.
    SizesBesideRanges,
    /// Free memory.
    FreeMemory,
    /// Pools of huge pages.
    HugePages,
    /// Free huge pages.
    FreeHugePages,
    /// Memory-side caches.
    MemorySideCaches,
    /// How many ways memory-side caches have, beyond one.
    MemorySideWays,
    /// Which memory is that of CXL devices.
    Cxl,
    /// Proximity domains.
    ProximityDomains,
    /// APIC ids.
    ApicIds,
    /// Ranges of physical memory.
    Ranges,
    /// Latencies and bandwidths.
    Access,
    /// Those of which the initiator is a node without online cpus.
    CpulessInitiators,
    /// Whether latencies and bandwidths are those of cpus or of any initiator.
    AccessClasses,
    /// Latencies below a nanosecond.
    Picoseconds,
    /// Memory tiers.
    Tiers,
    /// Devices on PCI.
    Devices,
    /// Which makes of device, and which drivers.
    DeviceIds,
    /// What devices are called.
    DeviceNames,
    /// Devices that are near no node, or of which that is not known.
    UnplacedDevices,
    /// What the process may use.
    Allowed,
}

/// Every feature, as messages name it; what contains others comes before them.
const ALL: [(Feature, &str); 41] = [
    (Feature::Packages, "packages"),
    (Feature::PackagesInNodes, "packages inside nodes"),
    (Feature::Cores, "cores"),
    (Feature::L3Groups, "L3 groups"),
    (Feature::Caches, "caches"),
    (Feature::InnerCaches, "caches other than the L3"),
    (Feature::CacheLines, "cache lines and associativity"),
    (Feature::Nodes, "nodes"),
    (Feature::Memory, "memory"),
    (Feature::Distances, "distances"),
    (Feature::PartialDistances, "distances, of which some are unknown"),
    (Feature::LoneDistance, "a single node's distance to itself"),
    (Feature::FarDistances, "distances beyond the nearest nodes"),
    (Feature::OfflineCpus, "offline cpus"),
    (Feature::OfflinePlaces, "the place of offline cpus"),
    (Feature::CpuState, "which cpus are offline"),
    (Feature::UnplacedCpus, "cpus of no node"),
    (Feature::OfflineNodes, "offline nodes"),
    (Feature::NodeState, "which nodes are offline"),
    (Feature::Bytes, "memory below a MiB"),
    (Feature::Digits, "memory to the byte"),
    (Feature::SizesBesideRanges, "sizes of memory that differ from its ranges"),
    (Feature::FreeMemory, "free memory"),
    (Feature::HugePages, "huge pages"),
    (Feature::FreeHugePages, "free huge pages"),
    (Feature::MemorySideCaches, "memory-side caches"),
    (Feature::MemorySideWays, "the ways of memory-side caches"),
    (Feature::Cxl, "which memory is that of CXL devices"),
    (Feature::ProximityDomains, "proximity domains"),
    (Feature::ApicIds, "APIC ids"),
    (Feature::Ranges, "ranges of memory"),
    (Feature::Access, "latencies and bandwidths"),
    (Feature::CpulessInitiators, "latencies and bandwidths seen from nodes without cpus"),
    (Feature::AccessClasses, "whether latencies and bandwidths are those of cpus"),
    (Feature::Picoseconds, "latencies below a nanosecond"),
    (Feature::Tiers, "memory tiers"),
    (Feature::Devices, "devices"),
    (Feature::DeviceIds, "ids and drivers of devices"),
    (Feature::DeviceNames, "addresses and names of devices"),
    (Feature::UnplacedDevices, "devices of no node"),
    (Feature::Allowed, "what the process may use"),
];

impl Feature {
    /// All features, in the order in which they are taken out of a machine.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(|&(feature, _)| feature)
    }

    /// The larger feature that this is a part of: a format that loses that has said so.
    fn part_of(self) -> Option<Self> {
        Some(match self {
            Self::PackagesInNodes => Self::Packages,
            Self::InnerCaches | Self::CacheLines => Self::Caches,
            Self::PartialDistances | Self::LoneDistance | Self::FarDistances => Self::Distances,
            Self::OfflinePlaces | Self::CpuState => Self::OfflineCpus,
            Self::NodeState => Self::OfflineNodes,
            Self::Bytes | Self::Digits | Self::SizesBesideRanges => Self::Memory,
            Self::FreeHugePages => Self::HugePages,
            Self::MemorySideWays => Self::MemorySideCaches,
            Self::CpulessInitiators | Self::AccessClasses | Self::Picoseconds => Self::Access,
            Self::DeviceIds | Self::DeviceNames | Self::UnplacedDevices => Self::Devices,
            _ => return None,
        })
    }
}

/// What a format carries of a machine beside online cpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The format, as messages name it.
    pub format: &'static str,
    /// What it has words for.
    pub features: &'static [Feature],
    /// The parts of these that it has none for.
    pub but: &'static [Feature],
}

/// What ACPI tables carry, as `Machine::to_tables` writes them.
pub const TABLES: Carried = Carried {
    format: "ACPI tables",
    features: &[
        Feature::Nodes,
        Feature::Memory,
        Feature::Distances,
        Feature::OfflineCpus,
        Feature::UnplacedCpus,
        Feature::OfflineNodes,
        Feature::ProximityDomains,
        Feature::ApicIds,
        Feature::Ranges,
        Feature::Access,
        Feature::MemorySideCaches,
    ],
    but: &[
        Feature::NodeState,
        Feature::SizesBesideRanges,
        Feature::AccessClasses,
        Feature::MemorySideWays,
    ],
};

impl Carried {
    /// The features that the machine has and the format loses.
    #[must_use]
    pub fn lost(&self, machine: &Machine) -> Vec<Feature> {
        let has = |feature: &Feature| {
            let mut without = machine.clone();
            feature.clear(&mut without);
            without != *machine
        };
        let carries = |feature: &Feature| match feature.part_of() {
            None => self.features.contains(feature),
            Some(whole) => !self.features.contains(&whole) || !self.but.contains(feature),
        };
        Feature::all().filter(|feature| !carries(feature) && has(feature)).collect()
    }

    /// What is left of the machine after the format.
    #[must_use]
    pub fn left(&self, machine: &Machine) -> Machine {
        let mut left = machine.clone();
        self.lost(machine).into_iter().for_each(|feature| feature.clear(&mut left));
        left
    }

    /// What the format loses of the machine, in one finding.
    #[must_use]
    pub fn loss(&self, machine: &Machine) -> Option<Finding> {
        let lost = self.lost(machine);
        let names = ALL.iter().filter(|(feature, _)| lost.contains(feature));
        let names: Vec<&str> = names.map(|&(_, name)| name).collect();
        (!names.is_empty()).then(|| Finding {
            severity: Severity::Note,
            code: "not-carried".to_owned(),
            place: self.format.to_owned(),
            message: format!("does not carry {}", names.join(", ")),
        })
    }
}
