//! Where the figures of a profile come from.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The name of a source, the best one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SourceName {
    /// Memory samples of the performance monitoring unit.
    Samples,
    /// Every access, by running the program in QEMU's user mode.
    Emulation,
    /// Page faults, those of NUMA balancing included.
    Faults,
    /// DAMON, the kernel's data access monitor.
    Damon,
    /// The referenced bits of page tables.
    Referenced,
}

impl SourceName {
    /// All of them, the best one first.
    pub const ALL: [Self; 5] =
        [Self::Samples, Self::Emulation, Self::Faults, Self::Damon, Self::Referenced];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Emulation => "emulation",
            Self::Faults => "faults",
            Self::Damon => "damon",
            Self::Referenced => "referenced",
        }
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the figures come from, and what one of them counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum ProfileSource {
    /// Memory samples with data addresses. A count is a sample: one of so many events.
    Samples {
        /// What takes them.
        unit: SamplingUnit,
        /// The events.
        events: Vec<SampledEvent>,
        /// Samples that were taken.
        taken: u64,
        /// Records that the kernel dropped, because more came than could be read.
        lost: u64,
        /// How often the kernel paused sampling, because it took too much time.
        throttled: u64,
    },
    /// The program in QEMU's user mode. A count is an access.
    Emulation {
        /// One access in so many was looked at; counts are scaled.
        one_in: u64,
    },
    /// Page faults. A count is a fault on a page that was there before.
    Faults {
        /// Whether NUMA balancing unmaps pages again and again, so that faults tell who uses them.
        balancing: bool,
    },
    /// DAMON. A count is a page that was found accessed.
    Damon {
        /// It looks at each region so often, in microseconds.
        sample_us: u64,
        /// It was asked so often.
        rounds: u64,
    },
    /// The referenced bits. A count is a page that was used since the last look.
    Referenced {
        /// Looks.
        rounds: u64,
        /// Time between them, in ns, on average.
        interval_ns: u64,
        /// Whether soft-dirty bits tell which pages were written.
        soft_dirty: bool,
    },
}

impl ProfileSource {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> SourceName {
        match self {
            Self::Samples { .. } => SourceName::Samples,
            Self::Emulation { .. } => SourceName::Emulation,
            Self::Faults { .. } => SourceName::Faults,
            Self::Damon { .. } => SourceName::Damon,
            Self::Referenced { .. } => SourceName::Referenced,
        }
    }
}

/// What takes memory samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SamplingUnit {
    /// Intel's precise event-based sampling.
    Pebs,
    /// AMD's instruction-based sampling.
    Ibs,
}

/// An event that is sampled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledEvent {
    /// As `perf` names it: `cpu/mem-loads/`.
    pub event: String,
    /// A sample is one of so many.
    pub period: u64,
    /// Loads that take fewer cycles are not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_latency_cycles: Option<u64>,
}

/// Something that a source cannot see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CannotSee {
    /// Any access to a page but the first.
    LaterAccesses,
    /// How often a page is used: only whether it is, each time that somebody looks.
    HowOften,
    /// Which accesses load and which store.
    LoadsFromStores,
    /// Which thread uses what, and from which node.
    Threads,
    /// Loads that caches serve fast.
    FastLoads {
        /// They take fewer cycles than this.
        cycles: u64,
    },
    /// How long memory is waited for.
    Waiting,
    /// Which calls of `malloc` and its like made parts of the heap.
    HeapSites,
    /// Calls of functions that were compiled without frame pointers.
    CallsWithoutFramePointers,
    /// Who touches memory first.
    FirstTouches,
    /// First touches by the kernel on behalf of the program, as in read(2).
    FaultsInKernel,
    /// What was touched before the process was looked at.
    Before,
    /// Where single pages lie.
    PageNodes {
        /// What the system said.
        reason: String,
    },
    /// Single pages beyond so many.
    PagesBeyond {
        /// So many are followed.
        most: u64,
    },
    /// The cpus and memory of this machine: others were emulated.
    ThisMachine,
}

/// A better source that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PassedOver {
    /// The source.
    pub source: SourceName,
    /// Why not.
    pub why: Hindrance,
}

/// Why a source cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Hindrance {
    /// The kernel shows no performance monitoring unit of the cpus, as in many virtual machines.
    NoPmu,
    /// There is one, and it has no events with data addresses.
    NoMemoryEvents {
        /// The units that there are.
        units: Vec<String>,
    },
    /// Its samples come in a form that is not read here (Arm SPE).
    UnreadForm {
        /// The unit.
        unit: String,
    },
    /// `kernel.perf_event_paranoid` forbids it to this user.
    PerfParanoid {
        /// Its value.
        level: i64,
    },
    /// The kernel, or a filter of system calls, refuses perf_event_open(2).
    PerfRefused {
        /// What the system said.
        reason: String,
    },
    /// Each thread takes a descriptor on each cpu, and there may not be as many.
    TooFewFiles {
        /// `ulimit -n`.
        limit: u64,
    },
    /// The machine has one node, on which NUMA balancing does nothing.
    OneNode,
    /// `kernel.numa_balancing` is off.
    BalancingOff,
    /// The kernel is built without NUMA balancing.
    NoBalancing,
    /// A process that runs already cannot be emulated.
    RunsAlready,
    /// The memory emulator reports when the program ends by itself, not after a time.
    HasToEnd,
    /// QEMU's user mode or the emulator's plugin is not there, or the program is not for it.
    NoEmulation {
        /// Which, and what mends it.
        reason: String,
    },
    /// The kernel is built without DAMON, or without its files in sysfs.
    NoDamon,
    /// DAMON does not watch the memory of processes here (`CONFIG_DAMON_VADDR`).
    DamonWithoutProcesses {
        /// What it watches.
        operations: Vec<String>,
    },
    /// DAMON is used by somebody else, or does not tell regions (before Linux 6.2).
    DamonUnavailable {
        /// What was found.
        reason: String,
    },
    /// The kernel does not let this user see or clear referenced bits of the process.
    NoReferencedBits {
        /// What the system said.
        reason: String,
    },
}
