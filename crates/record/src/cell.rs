//! What is measured: one cell of a plan.

use core::fmt;

use numalab_topology::{CpuId, NodeId};
use serde::{Deserialize, Serialize};

use crate::pattern::AccessPattern;
use crate::placement::Placement;

/// The name of a cell, unique and stable within its plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CellId(pub String);

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One thing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Its name.
    pub id: CellId,
    /// What is done.
    #[serde(flatten)]
    pub experiment: Experiment,
}

/// What is done in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Experiment {
    /// A chase of dependent loads.
    Latency(LatencyCell),
    /// Streams of all workers at once.
    Bandwidth(BandwidthCell),
    /// A chase while other workers load the memory.
    Loaded(LoadedCell),
    /// A cache line going back and forth between two cpus.
    C2c(C2cCell),
    /// L1 load-to-use over a dependent add, and the core clock, on one cpu.
    Core {
        /// The cpu.
        cpu: CpuId,
    },
    /// Frames handed out and used by a kernel of our own.
    Frames(FramesCell),
}

impl Experiment {
    /// Who works, and on which memory: the chaser before its load, both sides of a line that
    /// goes back and forth; nobody where no node matters.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerPlan> {
        match self {
            Self::Latency(cell) => vec![cell.worker],
            Self::Bandwidth(cell) => cell.workers.clone(),
            Self::Loaded(cell) => [&[cell.chaser], cell.load.as_slice()].concat(),
            Self::C2c(cell) => {
                [cell.from, cell.to].map(|cpu| WorkerPlan { cpu, node: cell.home }).to_vec()
            }
            Self::Core { .. } | Self::Frames(_) => Vec::new(),
        }
    }
}

/// One worker: a cpu and the node whose memory it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerPlan {
    /// The cpu.
    pub cpu: CpuId,
    /// The node of its memory.
    pub node: NodeId,
}

/// The pages that back a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Pages {
    /// Base pages, transparent huge pages off.
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages.
    #[serde(rename = "thp")]
    Transparent,
    /// Reserved huge pages of 2 MiB.
    #[serde(rename = "2m")]
    Huge2M,
    /// Reserved huge pages of 1 GiB.
    #[serde(rename = "1g")]
    Huge1G,
}

impl Pages {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "4k",
            Self::Transparent => "thp",
            Self::Huge2M => "2m",
            Self::Huge1G => "1g",
        }
    }
}

/// Who chases at the same time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Team {
    /// Nobody else.
    #[default]
    Serial,
    /// Every worker of the same plan and size.
    Concurrent,
}

/// A latency cell: one worker's chase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyCell {
    /// The worker.
    pub worker: WorkerPlan,
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    /// The order of visits.
    pub pattern: AccessPattern,
    /// The pages.
    pub pages: Pages,
    /// Whether others chase at the same time.
    pub team: Team,
}

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StreamKernel {
    /// Loads only.
    Read,
    /// Stores that allocate in the cache.
    Write,
    /// Stores that bypass the cache.
    WriteNt,
    /// `a = b` with ordinary stores.
    Copy,
    /// `a = b` with stores that bypass the cache.
    CopyNt,
    /// `a = b + s * c` with ordinary stores.
    Triad,
}

impl StreamKernel {
    /// Every kernel.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::WriteNt, Self::Copy, Self::CopyNt, Self::Triad];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteNt => "write-nt",
            Self::Copy => "copy",
            Self::CopyNt => "copy-nt",
            Self::Triad => "triad",
        }
    }

    /// Lines that go through memory for each line of an array: counted by the program, read,
    /// written. A store through the caches first reads its line. Cpus that recognise whole
    /// lines of stores may do without.
    const fn lines(self) -> (u32, u32, u32) {
        match self {
            Self::Read => (1, 1, 0),
            Self::Write => (1, 1, 1),
            Self::WriteNt => (1, 0, 1),
            Self::Copy => (2, 2, 1),
            Self::CopyNt => (2, 1, 1),
            Self::Triad => (3, 3, 1),
        }
    }

    /// Of the bytes that move in memory, those that are read, in percent: 100 to 50, and less
    /// only where stores bypass the caches.
    #[must_use]
    pub fn read_percent(self) -> f64 {
        let (_, read, written) = self.lines();
        100.0 * f64::from(read) / f64::from(read + written)
    }

    /// Bytes that move in memory for each that the program asks for.
    #[must_use]
    pub fn traffic_factor(self) -> f64 {
        let (counted, read, written) = self.lines();
        f64::from(read + written) / f64::from(counted)
    }
}

/// The name of an instruction set: `avx512`, `neon`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct IsaName(pub String);

/// A bandwidth cell: all workers stream at once. Values count the bytes that the
/// program asked to move, as STREAM does: a store that allocates in the cache
/// moves one more line than is counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BandwidthCell {
    /// The workers.
    pub workers: Vec<WorkerPlan>,
    /// What each does.
    pub kernel: StreamKernel,
    /// The order of visits.
    pub pattern: AccessPattern,
    /// Bytes of all buffers of one worker together.
    pub size_bytes: u64,
    /// The pages.
    pub pages: Pages,
    /// The instruction set.
    pub isa: IsaName,
}

/// A loaded-latency cell: one chaser against load workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedCell {
    /// The chaser.
    pub chaser: WorkerPlan,
    /// The load workers.
    pub load: Vec<WorkerPlan>,
    /// What each load worker does.
    pub kernel: StreamKernel,
    /// Pauses of a load worker between chunks: 0 is full speed, `None` no load at all.
    pub delay: Option<u32>,
    /// The buffer's length in bytes, chaser and load worker alike.
    pub size_bytes: u64,
    /// The pages.
    pub pages: Pages,
}

/// A core-to-core cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct C2cCell {
    /// The cpu that sends first.
    pub from: CpuId,
    /// The cpu that answers.
    pub to: CpuId,
    /// The node that the line's page lies on.
    pub home: NodeId,
}

/// A cell of the frame allocator: workers that allocate frames and use them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FramesCell {
    /// The workload: `test_numa`, `storm`, `guests`.
    pub work: String,
    /// The cpus at work.
    pub cpus: Vec<CpuId>,
    /// Bytes that each has; 0 where it is a matter of counts.
    pub size_bytes: u64,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The interval became narrow enough.
    Precise,
    /// The budget was spent first; the samples stand.
    BudgetSpent,
    /// It could not be measured.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A cell that ended, with the proof of where its workers were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finished {
    /// The cell's name.
    pub cell: CellId,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Where each worker was, in the plan's order.
    pub placements: Vec<Placement>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_read_from_all_to_none_of_the_bytes_that_move() {
        let shares = StreamKernel::ALL.map(|kernel| kernel.read_percent().round());
        assert_eq!(shares, [100.0, 50.0, 0.0, 67.0, 50.0, 75.0]);
        let factors = StreamKernel::ALL.map(StreamKernel::traffic_factor);
        assert_eq!(factors, [1.0, 2.0, 1.0, 1.5, 1.0, 4.0 / 3.0]);
    }

    #[test]
    fn a_pattern_is_read_by_the_name_it_is_written_with() {
        for name in ["random", "page-local", "sequential", "one-line-per:4096", "stride:256"] {
            assert_eq!(name.parse::<AccessPattern>().unwrap().to_string(), name);
        }
        for other in ["stride:0", "stride:65", "one-line-per:192", "stride256", "Random"] {
            let error = other.parse::<AccessPattern>().unwrap_err().to_string();
            assert!(error.contains(other) && error.contains("expected random"), "{error}");
        }
    }
}
