//! What a value measures.

use core::fmt;

use numalab_stats::Direction;
use serde::{Deserialize, Serialize};

use crate::study::Quantity;

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Gigabytes (10^9 bytes) per second.
    GigabytesPerSecond,
    /// A ratio without unit.
    Ratio,
    /// Gigahertz.
    Gigahertz,
    /// Hundredths of a whole.
    Percent,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Its symbol: `ns`, `GB/s`.
    #[must_use]
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

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.symbol())
    }
}

/// What a sample's value measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Time of one dependent load in nanoseconds.
    Latency,
    /// Bytes moved per second by all workers together, in GB/s.
    Bandwidth,
    /// The part of one rank in that, in GB/s: of each window one value for each rank, in the order
    /// of the cell's workers.
    RankBandwidth,
    /// Time for a cache line to go to the other cpu and come back, in nanoseconds.
    RoundTrip,
    /// What the slowest of several lines takes for that more than the fastest, in nanoseconds: lines
    /// differ by where their home is within the processor.
    LineSpread,
    /// L1 load-to-use as a multiple of one dependent add.
    LoadToUse,
    /// Dependent adds per nanosecond: the core clock.
    CoreClock,
    /// Time of an atomic addition to a line in the nearest cache, in nanoseconds.
    AtomicAdd,
    /// Time of a run from its first worker's start to its last one's end, in seconds.
    Elapsed,
    /// The part of frames that lay on the node of the cpu that asked for them, 0 to 1.
    LocalShare,
    /// Time to allocate a frame, write to it and free one, in nanoseconds.
    Frame,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 11] = [
        Self::Latency,
        Self::Bandwidth,
        Self::RankBandwidth,
        Self::RoundTrip,
        Self::LineSpread,
        Self::LoadToUse,
        Self::CoreClock,
        Self::AtomicAdd,
        Self::Elapsed,
        Self::LocalShare,
        Self::Frame,
    ];

    /// The unit of its values.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Latency | Self::RoundTrip | Self::LineSpread | Self::AtomicAdd | Self::Frame => {
                Unit::Nanoseconds
            }
            Self::Bandwidth | Self::RankBandwidth => Unit::GigabytesPerSecond,
            Self::LoadToUse | Self::LocalShare => Unit::Ratio,
            Self::CoreClock => Unit::Gigahertz,
            Self::Elapsed => Unit::Seconds,
        }
    }

    /// Which way is better.
    #[must_use]
    pub fn better(self) -> Direction {
        match self {
            Self::Latency
            | Self::RoundTrip
            | Self::LineSpread
            | Self::LoadToUse
            | Self::AtomicAdd
            | Self::Elapsed
            | Self::Frame => Direction::LowerIsBetter,
            Self::Bandwidth | Self::RankBandwidth | Self::CoreClock | Self::LocalShare => {
                Direction::HigherIsBetter
            }
        }
    }

    /// Whether runs are compared by it: a spread says how sure another value is, and a rank's part
    /// is in the sum.
    #[must_use]
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::LineSpread | Self::RankBandwidth)
    }

    /// Whether a smaller value is better.
    #[must_use]
    pub fn lower_is_better(self) -> bool {
        self.better() == Direction::LowerIsBetter
    }

    /// The same in a study, by this name.
    #[must_use]
    pub fn quantity(self, name: impl Into<String>) -> Quantity {
        Quantity { metric: name.into(), unit: self.unit().to_string(), better: self.better() }
    }

    /// Its name in files: `latency`, `round-trip`.
    #[must_use]
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
            Self::Elapsed => "elapsed",
            Self::LocalShare => "local-share",
            Self::Frame => "frame",
        }
    }

    /// The metric with this name in files.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}
