//! The features of a machine that formats cannot represent, defined once for all of them.
//!
//! Every format has its [`Carried`]; [`Carried::loss`] is the note on all other features that the
//! machine has. [`Feature::clear`] defines the effect of a loss on the value: a reader returns the
//! machine that is left, and a writer writes the same text for it.

mod clear;

use numalab_topology::{Finding, Machine, Severity};

/// A feature of a machine that a format may not be able to represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Packages.
    Packages,
    /// Packages that are parts of nodes.
    PackagesInNodes,
    /// Cores, and the thread number of each cpu in its core.
    Cores,
    /// L3 groups.
    L3Groups,
    /// Caches.
    Caches,
    /// Caches other than unified ones of level 3.
    InnerCaches,
    /// Lines and associativity of caches.
    CacheLines,
    /// Memory.
    Memory,
    /// Distances.
    Distances,
    /// Distances, some of which are unknown.
    PartialDistances,
    /// The distance of a node to itself if it is the only node.
    LoneDistance,
    /// Distances other than those to the nearest nodes.
    FarDistances,
    /// Cpus that are offline.
    OfflineCpus,
    /// Node, package, core and caches of cpus that are offline.
    OfflinePlaces,
    /// The online state of cpus.
    CpuState,
    /// Cpus without a node.
    UnplacedCpus,
    /// Nodes that are offline.
    OfflineNodes,
    /// The online state of nodes.
    NodeState,
    /// The nodes of cpus and memory.
    Nodes,
    /// Memory below a MiB.
    Bytes,
    /// Memory to the byte: text for people rounds it.
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
    /// The number of ways of memory-side caches, if above one.
    MemorySideWays,
    /// The fact that memory belongs to CXL devices.
    Cxl,
    /// Proximity domains.
    ProximityDomains,
    /// APIC ids.
    ApicIds,
    /// Ranges of physical memory.
    Ranges,
    /// Latencies and bandwidths.
    Access,
    /// Latencies and bandwidths for an initiator without online cpus.
    CpulessInitiators,
    /// The distinction between latencies and bandwidths for cpus and for any initiator.
    AccessClasses,
    /// Latencies below a nanosecond.
    Picoseconds,
    /// Memory tiers.
    Tiers,
    /// Devices on PCI.
    Devices,
    /// Ids and drivers of devices.
    DeviceIds,
    /// Names of devices.
    DeviceNames,
    /// Devices that are near no node, or near an unknown node.
    UnplacedDevices,
    /// The restrictions of the process.
    Allowed,
    /// Isolated cpus on which the process may run as well.
    Isolated,
    /// Cpus that several nodes list, as parts of one node do.
    SharedCpus,
}

/// Every feature with its name in messages; a feature comes before its parts.
const ALL: [(Feature, &str); 43] = [
    (Feature::Packages, "packages"),
    (Feature::PackagesInNodes, "packages inside nodes"),
    (Feature::Cores, "cores"),
    (Feature::L3Groups, "L3 groups"),
    (Feature::Caches, "caches"),
    (Feature::InnerCaches, "caches other than the L3"),
    (Feature::CacheLines, "cache lines and associativity"),
    (Feature::Nodes, "nodes"),
    (Feature::SharedCpus, "cpus that nodes share"),
    (Feature::Memory, "memory"),
    (Feature::Distances, "distances"),
    (Feature::PartialDistances, "distances, of which some are unknown"),
    (Feature::LoneDistance, "a single node's distance to itself"),
    (Feature::FarDistances, "distances beyond the nearest nodes"),
    (Feature::OfflineCpus, "offline cpus"),
    (Feature::OfflinePlaces, "the place of offline cpus"),
    (Feature::CpuState, "which cpus are offline"),
    (Feature::UnplacedCpus, "cpus without a node"),
    (Feature::OfflineNodes, "offline nodes"),
    (Feature::NodeState, "which nodes are offline"),
    (Feature::Bytes, "memory sizes finer than a MiB"),
    (Feature::Digits, "memory to the byte"),
    (Feature::SizesBesideRanges, "sizes of memory that differ from its ranges"),
    (Feature::FreeMemory, "free memory"),
    (Feature::HugePages, "huge pages"),
    (Feature::FreeHugePages, "free huge pages"),
    (Feature::MemorySideCaches, "memory-side caches"),
    (Feature::MemorySideWays, "the ways of memory-side caches"),
    (Feature::Cxl, "which memory belongs to CXL devices"),
    (Feature::ProximityDomains, "proximity domains"),
    (Feature::ApicIds, "APIC ids"),
    (Feature::Ranges, "ranges of memory"),
    (Feature::Access, "latencies and bandwidths"),
    (Feature::CpulessInitiators, "latencies and bandwidths seen from nodes without cpus"),
    (Feature::AccessClasses, "whether latencies and bandwidths were seen by cpus"),
    (Feature::Picoseconds, "latencies below a nanosecond"),
    (Feature::Tiers, "memory tiers"),
    (Feature::Devices, "devices"),
    (Feature::DeviceIds, "ids and drivers of devices"),
    (Feature::DeviceNames, "addresses and names of devices"),
    (Feature::UnplacedDevices, "devices without a node"),
    (Feature::Allowed, "what the process may use"),
    (Feature::Isolated, "isolated cpus that the process may use"),
];

impl Feature {
    /// Returns all features, in the order in which they are removed from a machine.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(|&(feature, _)| feature)
    }

    /// Returns the larger feature that includes this one; a message about its loss covers this one.
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
            Self::Isolated => Self::Allowed,
            Self::SharedCpus => Self::Nodes,
            _ => return None,
        })
    }
}

/// The features of a machine that a format represents, in addition to online cpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Name of the format in messages.
    pub format: &'static str,
    /// The features that the format represents.
    pub features: &'static [Feature],
    /// The parts of these features that the format does not represent.
    pub but: &'static [Feature],
}

/// The features that ACPI tables represent, as written by `Machine::to_tables`.
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
    /// Returns the features that the machine has and the format loses.
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

    /// Returns the machine that is left after the format's losses.
    pub fn left(&self, machine: &Machine) -> Machine {
        let mut left = machine.clone();
        self.lost(machine).into_iter().for_each(|feature| feature.clear(&mut left));
        left
    }

    /// Returns one finding about everything that the format loses of the machine.
    pub fn loss(&self, machine: &Machine) -> Option<Finding> {
        let lost = self.lost(machine);
        let names = ALL.iter().filter(|(feature, _)| lost.contains(feature));
        let names: Vec<&str> = names.map(|&(_, name)| name).collect();
        let message = format!("cannot represent {}", names.join(", "));
        (!names.is_empty())
            .then(|| Finding::new(Severity::Note, "not-carried", self.format, message))
    }
}
