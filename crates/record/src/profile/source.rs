//! The sources of a profile's figures.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a source, the best one first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SourceName {
    /// Memory samples of the performance monitoring unit.
    Samples,
    /// Every access, by running the program under QEMU's user mode.
    Emulation,
    /// Page faults, those of NUMA balancing included.
    Faults,
    /// DAMON, the kernel's data access monitor.
    Damon,
    /// The referenced bits of page tables.
    Referenced,
}

impl SourceName {
    /// Every source, the best one first.
    pub const ALL: [Self; 5] =
        [Self::Samples, Self::Emulation, Self::Faults, Self::Damon, Self::Referenced];

    /// Returns the source's name in documents.
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

/// The source of the figures, and the meaning of a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum ProfileSource {
    /// Memory samples with data addresses. A count is a sample.
    Samples {
        /// The sampling unit.
        unit: SamplingUnit,
        events: Vec<SampledEvent>,
        /// The number of samples taken.
        taken: u64,
        /// The records that the kernel dropped because they came faster than they could be read.
        lost: u64,
        /// The number of times that the kernel paused sampling because it took too much time.
        throttled: u64,
    },
    /// The program under QEMU's user mode. A count is an access.
    Emulation {
        /// The inverse of the share of accesses that was observed; counts are scaled.
        one_in: u64,
    },
    /// Page faults. A count is a fault on a page that was already present.
    Faults {
        /// True if NUMA balancing unmaps pages repeatedly, so that faults show which threads use
        /// them.
        balancing: bool,
    },
    /// DAMON. A count is a page found accessed.
    Damon {
        /// The interval at which it checks each region, in microseconds.
        sample_us: u64,
        /// The number of times that it was queried.
        rounds: u64,
    },
    /// The referenced bits. A count is a page used since the last scan.
    Referenced {
        /// The number of scans.
        rounds: u64,
        /// The mean interval between scans, in ns.
        interval_ns: u64,
        /// True if soft-dirty bits show which pages were written.
        soft_dirty: bool,
    },
}

impl ProfileSource {
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

/// The sampling unit of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingUnit {
    /// Intel's precise event-based sampling.
    Pebs,
    /// AMD's instruction-based sampling.
    Ibs,
}

/// An event of the processor by which memory accesses were sampled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledEvent {
    /// The event's name in `perf`: `cpu/mem-loads/`.
    pub event: String,
    /// The number of events per sample.
    pub period: u64,
    /// The latency in cycles below which loads are not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_latency_cycles: Option<u64>,
}

/// Something that a source cannot see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CannotSee {
    /// Accesses to a page after the first.
    LaterAccesses,
    /// The number of uses of a page: a scan only shows whether there was any.
    HowOften,
    /// The difference between loads and stores.
    LoadsFromStores,
    /// Threads and nodes of accesses.
    Threads,
    /// Loads that caches serve quickly.
    FastLoads {
        /// The latency in cycles below which loads are not seen.
        cycles: u64,
    },
    /// The time spent waiting for memory.
    Waiting,
    /// The calls of `malloc` and similar functions that allocated parts of the heap.
    HeapSites,
    /// Calls of functions compiled without frame pointers.
    CallsWithoutFramePointers,
    /// The thread that touches a page first.
    FirstTouches,
    /// First touches by the kernel on behalf of the program, as in read(2).
    FaultsInKernel,
    /// First touches before profiling began.
    Before,
    /// The nodes of single pages.
    PageNodes {
        /// The system's error.
        reason: String,
    },
    /// The use of each of several regions in one kernel mapping: the mapping's figures are divided
    /// by resident memory.
    SharesOfMappings,
    /// Single pages beyond the limit.
    PagesBeyond {
        /// The largest number of pages followed.
        most: u64,
    },
    /// The cpus and memory of this machine: others were emulated.
    ThisMachine,
}

/// A preferred source that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassedOver {
    pub source: SourceName,
    /// The reason it could not be used.
    pub why: Hindrance,
}

/// The reason why a source cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Hindrance {
    /// The kernel exposes no performance monitoring unit for the cpus, as in many virtual machines.
    NoPmu,
    /// The performance monitoring unit has no events with data addresses.
    NoMemoryEvents {
        /// The units found.
        units: Vec<String>,
    },
    /// The unit's samples have a format that numalab does not read (Arm SPE).
    UnreadForm { unit: String },
    /// `kernel.perf_event_paranoid` forbids the source for this user.
    PerfParanoid {
        /// The value of `kernel.perf_event_paranoid`.
        level: i64,
    },
    /// The kernel, or a system call filter, refuses perf_event_open(2).
    PerfRefused {
        /// The system's error.
        reason: String,
    },
    /// The limit on open files is too low: each thread needs one file descriptor per cpu.
    TooFewFiles {
        /// The limit, as `ulimit -n` shows it.
        limit: u64,
    },
    /// The machine has one node, so NUMA balancing does nothing.
    OneNode,
    /// `kernel.numa_balancing` is off.
    BalancingOff,
    /// The kernel is built without NUMA balancing.
    NoBalancing,
    /// A process that is already running cannot be emulated.
    RunsAlready,
    /// The memory emulator reports when the program ends by itself, not after a time.
    HasToEnd,
    /// QEMU's user mode or the emulator's plugin is missing, or cannot run the program.
    NoEmulation {
        /// The missing part, and how to get it.
        reason: String,
    },
    /// The kernel is built without DAMON, or without its sysfs interface.
    NoDamon,
    /// This DAMON cannot monitor the memory of processes (`CONFIG_DAMON_VADDR`).
    DamonWithoutProcesses {
        /// The kinds of targets that it can monitor.
        operations: Vec<String>,
    },
    /// DAMON is in use by another program, or does not report regions (before Linux 6.2).
    DamonUnavailable {
        /// The error, or the missing file.
        reason: String,
    },
    /// The kernel does not let this user read or clear the referenced bits of the process.
    NoReferencedBits {
        /// The system's error.
        reason: String,
    },
}
