//! Metrics and their units.

use core::fmt;

use numalab_stats::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::study::Quantity;

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(into = "&'static str")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Gigabytes (10^9 bytes) per second.
    GigabytesPerSecond,
    /// A ratio without unit.
    Ratio,
    /// Gigahertz.
    Gigahertz,
    /// Percent.
    Percent,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Returns the unit's symbol: `ns`, `GB/s`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::GigabytesPerSecond => "GB/s",
            Self::Ratio => "x",
            Self::Gigahertz => "GHz",
            Self::Percent => "%",
            Self::Seconds => "s",
        }
    }
}

impl From<Unit> for &'static str {
    fn from(unit: Unit) -> Self {
        unit.symbol()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.symbol())
    }
}

/// Defines the metrics: name in files, unit, direction in which values improve, and whether runs are
/// compared by it. A spread only qualifies another value, a rank's share is included in the sum, and
/// a cell measures times of the kernel in few windows.
macro_rules! metrics {
    ($($(#[$doc:meta])* $metric:ident($name:literal, $unit:ident, $better:ident, $compared:literal),)*) => {
        /// The meaning of a sample's value.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Metric {
            $($(#[$doc])* $metric,)*
        }

        impl Metric {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$metric),*];

            /// Returns the unit of the metric's values.
            pub fn unit(self) -> Unit {
                match self { $(Self::$metric => Unit::$unit,)* }
            }

            /// Returns the direction in which values improve.
            pub fn better(self) -> Direction {
                match self { $(Self::$metric => Direction::$better,)* }
            }

            /// Returns true if runs are compared by it.
            pub fn is_compared(self) -> bool {
                match self { $(Self::$metric => $compared,)* }
            }

            /// Returns the metric's name in files: `latency`, `round-trip`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$metric => $name,)* }
            }
        }
    };
}

metrics! {
    /// The time of one dependent load, in nanoseconds.
    Latency("latency", Nanoseconds, LowerIsBetter, true),
    /// Bytes moved per second by all workers together, in GB/s.
    Bandwidth("bandwidth", GigabytesPerSecond, HigherIsBetter, true),
    /// One rank's share of the total bandwidth, in GB/s: one value per rank in each window, in the
    /// order of the cell's workers.
    RankBandwidth("rank-bandwidth", GigabytesPerSecond, HigherIsBetter, false),
    /// The time for a cache line to go to the other cpu and back, in nanoseconds.
    RoundTrip("round-trip", Nanoseconds, LowerIsBetter, true),
    /// The difference in round trip between the slowest and the fastest of several lines, in
    /// nanoseconds: lines differ by the location of their home in the processor.
    LineSpread("line-spread", Nanoseconds, LowerIsBetter, false),
    /// L1 load-to-use latency, as a multiple of one dependent add.
    LoadToUse("load-to-use", Ratio, LowerIsBetter, true),
    /// Dependent adds per nanosecond: the core clock.
    CoreClock("core-clock", Gigahertz, HigherIsBetter, true),
    /// The time of an atomic addition to a line in the nearest cache, in nanoseconds.
    AtomicAdd("atomic-add", Nanoseconds, LowerIsBetter, true),
    /// The time of a load from a different page each time, in nanoseconds: each load needs a page
    /// walk, and none waits for another.
    PageRead("page-read", Nanoseconds, LowerIsBetter, true),
    /// The time of the first load of a page of private memory, in nanoseconds: a page fault.
    FirstLoad("first-load", Nanoseconds, LowerIsBetter, false),
    /// The time of the first store to a page of private memory, in nanoseconds.
    FirstStore("first-store", Nanoseconds, LowerIsBetter, false),
    /// The time of the first store to a page of a file in a private mapping, in nanoseconds.
    PageCopy("page-copy", Nanoseconds, LowerIsBetter, false),
    /// The time of the first loads of 16 pages of a file, in nanoseconds.
    FileLoad("file-load", Nanoseconds, LowerIsBetter, false),
    /// The time to free a page that was stored to, in nanoseconds.
    PageFree("page-free", Nanoseconds, LowerIsBetter, false),
    /// The time to unmap a page of a file, in nanoseconds.
    PageUnmap("page-unmap", Nanoseconds, LowerIsBetter, false),
    /// The time of the first stores to all pages of 2 MiB for which huge pages are requested, in
    /// nanoseconds.
    HugeStore("huge-store", Nanoseconds, LowerIsBetter, false),
    /// The time of a system call that does next to nothing, in nanoseconds.
    SystemCall("system-call", Nanoseconds, LowerIsBetter, false),
    /// The time of sched_yield(2) with no other thread to run, in nanoseconds.
    Yield("yield", Nanoseconds, LowerIsBetter, false),
    /// The time to map memory, or to unmap memory that was not used, in nanoseconds.
    PageMap("page-map", Nanoseconds, LowerIsBetter, false),
    /// The time to read 4 KiB of a file that the processor's caches have, 64 KiB per call, without the cost
    /// of the calls, in nanoseconds.
    FileRead("file-read", Nanoseconds, LowerIsBetter, false),
    /// The time to read a byte of a file, in nanoseconds.
    Read("read", Nanoseconds, LowerIsBetter, false),
    /// The time to write a byte of a file within its length, in nanoseconds.
    Write("write", Nanoseconds, LowerIsBetter, false),
    /// The time that a write takes longer if it adds pages to a file, without that of each, in nanoseconds.
    FileGrowth("file-growth", Nanoseconds, LowerIsBetter, false),
    /// The time to add a page of 4 KiB to a file, in nanoseconds.
    FilePage("file-page", Nanoseconds, LowerIsBetter, false),
    /// The time to move 4 KiB into a pipe or out of it, 64 KiB per call, without the cost of the calls, in
    /// nanoseconds.
    PipePage("pipe-page", Nanoseconds, LowerIsBetter, false),
    /// The time from the call that wakes a thread until it runs on another cpu, which was idle, in
    /// nanoseconds.
    Wake("wake", Nanoseconds, LowerIsBetter, false),
    /// The time to open a file by its path, in nanoseconds.
    FileOpen("file-open", Nanoseconds, LowerIsBetter, false),
    /// The time to create a process with next to no memory and to remove it at its end, in nanoseconds.
    Fork("fork", Nanoseconds, LowerIsBetter, false),
    /// The time that a small page of private memory adds to that, in nanoseconds.
    ForkPage("fork-page", Nanoseconds, LowerIsBetter, false),
    /// The time that a mapping with such a page adds to that, without the page's, in nanoseconds.
    ForkMapping("fork-mapping", Nanoseconds, LowerIsBetter, false),
    /// The time to start a program that ends at once, in nanoseconds.
    Execute("execute", Nanoseconds, LowerIsBetter, false),
    /// The time of the instruction CPUID, which a hypervisor executes, in nanoseconds.
    Cpuid("cpuid", Nanoseconds, LowerIsBetter, false),
    /// The time from the start of the first worker to the end of the last one, in seconds.
    Elapsed("elapsed", Seconds, LowerIsBetter, true),
    /// The share of frames on the node of the requesting cpu, from 0 to 1.
    LocalShare("local-share", Ratio, HigherIsBetter, true),
    /// The time to allocate a frame, write to it and free one, in nanoseconds.
    Frame("frame", Nanoseconds, LowerIsBetter, true),
}

impl Metric {
    /// Returns true if a sample can be zero: a spread, a share, or a bandwidth without load. All
    /// others are times or rates of something that happened.
    pub fn may_be_zero(self) -> bool {
        matches!(self, Self::LineSpread | Self::LocalShare | Self::Bandwidth | Self::RankBandwidth)
    }

    /// Returns true if a smaller value is better.
    pub fn lower_is_better(self) -> bool {
        self.better() == Direction::LowerIsBetter
    }

    /// Returns the metric as a study's quantity with this name.
    pub fn quantity(self, name: impl Into<String>) -> Quantity {
        Quantity { metric: name.into(), unit: self.unit().to_string(), better: self.better() }
    }

    /// Returns the metric with this name in files.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}
