//! The features of a machine that formats cannot represent, defined once for all of them.
//!
//! Every format has its [`Carried`]; [`Carried::loss`] is the note on all other features that the
//! machine has. [`Feature::clear`] defines the effect of a loss on the value: a reader returns the
//! machine that is left, and a writer writes the same text for it.

mod clear;

use numalab_topology::{Finding, Machine, Severity};

/// Defines the features, each with its name in messages.
macro_rules! features {
    ($($feature:ident = $name:literal,)*) => {
        /// A feature of a machine that a format may not be able to represent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature {
            $(#[doc = $name] $feature,)*
        }

        /// Every feature with its name.
        const ALL: [(Feature, &str); [$($name),*].len()] = [$((Feature::$feature, $name)),*];
    };
}

// In the order in which they are removed from a machine: a feature comes before its parts.
features! {
    Packages = "packages",
    PackagesInNodes = "packages inside nodes",
    Cores = "cores",
    L3Groups = "L3 groups",
    Caches = "caches",
    InnerCaches = "caches other than the L3",
    CacheLines = "cache lines and associativity",
    Nodes = "nodes",
    SharedCpus = "cpus that nodes share",
    Memory = "memory",
    Distances = "distances",
    PartialDistances = "distances, of which some are unknown",
    LoneDistance = "a single node's distance to itself",
    FarDistances = "distances beyond the nearest nodes",
    OfflineCpus = "offline cpus",
    OfflinePlaces = "the place of offline cpus",
    CpuState = "which cpus are offline",
    UnplacedCpus = "cpus without a node",
    OfflineNodes = "offline nodes",
    NodeState = "which nodes are offline",
    Bytes = "memory sizes finer than a MiB",
    Digits = "memory to the byte",
    SizesBesideRanges = "sizes of memory that differ from its ranges",
    FreeMemory = "free memory",
    HugePages = "huge pages",
    FreeHugePages = "free huge pages",
    MemorySideCaches = "memory-side caches",
    MemorySideWays = "the ways of memory-side caches",
    Cxl = "which memory belongs to CXL devices",
    ProximityDomains = "proximity domains",
    ApicIds = "APIC ids",
    Ranges = "ranges of memory",
    Access = "latencies and bandwidths",
    CpulessInitiators = "latencies and bandwidths seen from nodes without cpus",
    AccessClasses = "whether latencies and bandwidths were seen by cpus",
    Picoseconds = "latencies below a nanosecond",
    Tiers = "memory tiers",
    Devices = "devices",
    DeviceIds = "ids and drivers of devices",
    DeviceNames = "addresses and names of devices",
    UnplacedDevices = "devices without a node",
    Allowed = "what the process may use",
    Isolated = "isolated cpus that the process may use",
}

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
