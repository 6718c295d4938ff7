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

/// The meaning of a sample's value.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The time of one dependent load, in nanoseconds.
    Latency,
    /// Bytes moved per second by all workers together, in GB/s.
    Bandwidth,
    /// One rank's share of the total bandwidth, in GB/s: one value per rank in each window, in the
    /// order of the cell's workers.
    RankBandwidth,
    /// The time for a cache line to go to the other cpu and back, in nanoseconds.
    RoundTrip,
    /// The difference in round trip between the slowest and the fastest of several lines, in
    /// nanoseconds: lines differ by the location of their home in the processor.
    LineSpread,
    /// L1 load-to-use latency, as a multiple of one dependent add.
    LoadToUse,
    /// Dependent adds per nanosecond: the core clock.
    CoreClock,
    /// The time of an atomic addition to a line in the nearest cache, in nanoseconds.
    AtomicAdd,
    /// The time of a load from a different page each time, in nanoseconds: each load needs a page
    /// walk, and none waits for another.
    PageRead,
    /// The time of the first load of a page of private memory, in nanoseconds: a page fault.
    FirstLoad,
    /// The time of the first store to a page of private memory, in nanoseconds.
    FirstStore,
    /// The time of the first store to a page of a file in a private mapping, in nanoseconds.
    PageCopy,
    /// The time of the first loads of 16 pages of a file, in nanoseconds.
    FileLoad,
    /// The time to free a page that was stored to, in nanoseconds.
    PageFree,
    /// The time of the first stores to all pages of 2 MiB for which huge pages are requested, in
    /// nanoseconds.
    HugeStore,
    /// The time of a system call that does next to nothing, in nanoseconds.
    SystemCall,
    /// The time of sched_yield(2) with no other thread to run, in nanoseconds.
    Yield,
    /// The time to map memory, or to unmap memory that was not used, in nanoseconds.
    PageMap,
    /// The time to read 4 KiB of a file in the page cache, 64 KiB per call, without the cost of the
    /// calls, in nanoseconds.
    FileRead,
    /// The time from the call that wakes a thread until it runs on another cpu, which was idle, in
    /// nanoseconds.
    Wake,
    /// The time from the start of the first worker to the end of the last one, in seconds.
    Elapsed,
    /// The share of frames on the node of the requesting cpu, from 0 to 1.
    LocalShare,
    /// The time to allocate a frame, write to it and free one, in nanoseconds.
    Frame,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 23] = [
        Self::Latency,
        Self::Bandwidth,
        Self::RankBandwidth,
        Self::RoundTrip,
        Self::LineSpread,
        Self::LoadToUse,
        Self::CoreClock,
        Self::AtomicAdd,
        Self::PageRead,
        Self::FirstLoad,
        Self::FirstStore,
        Self::PageCopy,
        Self::FileLoad,
        Self::PageFree,
        Self::HugeStore,
        Self::SystemCall,
        Self::Yield,
        Self::PageMap,
        Self::FileRead,
        Self::Wake,
        Self::Elapsed,
        Self::LocalShare,
        Self::Frame,
    ];

    /// Returns the unit of the metric's values.
    pub fn unit(self) -> Unit {
        match self {
            Self::Latency
            | Self::RoundTrip
            | Self::LineSpread
            | Self::AtomicAdd
            | Self::PageRead
            | Self::FirstLoad
            | Self::FirstStore
            | Self::PageCopy
            | Self::FileLoad
            | Self::PageFree
            | Self::HugeStore
            | Self::SystemCall
            | Self::Yield
            | Self::PageMap
            | Self::FileRead
            | Self::Wake
            | Self::Frame => Unit::Nanoseconds,
            Self::Bandwidth | Self::RankBandwidth => Unit::GigabytesPerSecond,
            Self::LoadToUse | Self::LocalShare => Unit::Ratio,
            Self::CoreClock => Unit::Gigahertz,
            Self::Elapsed => Unit::Seconds,
        }
    }

    /// Returns the direction in which values improve.
    pub fn better(self) -> Direction {
        match self {
            Self::Latency
            | Self::RoundTrip
            | Self::LineSpread
            | Self::LoadToUse
            | Self::AtomicAdd
            | Self::PageRead
            | Self::FirstLoad
            | Self::FirstStore
            | Self::PageCopy
            | Self::FileLoad
            | Self::PageFree
            | Self::HugeStore
            | Self::SystemCall
            | Self::Yield
            | Self::PageMap
            | Self::FileRead
            | Self::Wake
            | Self::Elapsed
            | Self::Frame => Direction::LowerIsBetter,
            Self::Bandwidth | Self::RankBandwidth | Self::CoreClock | Self::LocalShare => {
                Direction::HigherIsBetter
            }
        }
    }

    /// Returns true for the kernel's time, which a cell measures in few windows.
    fn is_of_kernel(self) -> bool {
        matches!(
            self,
            Self::FirstLoad
                | Self::FirstStore
                | Self::PageCopy
                | Self::FileLoad
                | Self::PageFree
                | Self::HugeStore
                | Self::SystemCall
                | Self::Yield
                | Self::PageMap
                | Self::FileRead
                | Self::Wake
        )
    }

    /// Returns true if runs are compared by this metric. A spread only qualifies another value, a
    /// rank's share is included in the sum, and there are too few times of the kernel.
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::LineSpread | Self::RankBandwidth) && !self.is_of_kernel()
    }

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

    /// Returns the metric's name in files: `latency`, `round-trip`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::RankBandwidth => "rank-bandwidth",
            Self::RoundTrip => "round-trip",
            Self::LineSpread => "line-spread",
            Self::LoadToUse => "load-to-use",
            Self::CoreClock => "core-clock",
            Self::AtomicAdd => "atomic-add",
            Self::PageRead => "page-read",
            Self::FirstLoad => "first-load",
            Self::FirstStore => "first-store",
            Self::PageCopy => "page-copy",
            Self::FileLoad => "file-load",
            Self::PageFree => "page-free",
            Self::HugeStore => "huge-store",
            Self::SystemCall => "system-call",
            Self::Yield => "yield",
            Self::PageMap => "page-map",
            Self::FileRead => "file-read",
            Self::Wake => "wake",
            Self::Elapsed => "elapsed",
            Self::LocalShare => "local-share",
            Self::Frame => "frame",
        }
    }

    /// Returns the metric with this name in files.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}
