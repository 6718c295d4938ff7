//! Results of `numalab scale`, and of the NUMA benchmarking suite before it: how each rank's figure
//! changes with the number of ranks and their binding.

mod csv;
mod error;
mod name;
mod placement;
mod read;

use numalab_topology::{CpuId, Machine, NodeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use error::ScalingError;
pub use read::{ScalingFile, read};

/// The results in a directory, or in several below one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// The system and partition, or else the directory.
    pub name: String,
    /// The machine, if an architecture file describes it.
    pub machine: Option<Machine>,
    /// The steps, by run, mode, domains and ranks.
    pub steps: Vec<ScalingStep>,
    /// The anomalies found in the files.
    pub findings: Vec<String>,
}

/// The order in which ranks are bound to cores.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One core after the other.
    Sequential,
    /// One core of each L3 group in turn.
    Interleaved,
    /// Unknown.
    Other,
}

impl Mode {
    /// Returns the order's name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Interleaved => "interleaved",
            Self::Other => "other",
        }
    }
}

/// The metric of a scaling run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingMetric {
    /// ns per load; lower is better.
    Latency,
    /// GB/s of each rank; higher is better.
    Bandwidth,
}

impl ScalingMetric {
    /// Returns the metric's name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
        }
    }

    pub const fn unit(self) -> &'static str {
        match self {
            Self::Latency => "ns",
            Self::Bandwidth => "GB/s",
        }
    }
}

/// A step with one number of ranks: one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingStep {
    /// The file, with its directory if there are several.
    pub file: String,
    /// The run it belongs to: its directory.
    pub run: String,
    /// The order of binding.
    pub mode: Mode,
    /// The nodes whose cores are used.
    pub domains: Vec<u32>,
    pub metric: ScalingMetric,
    /// True if the ranks measured one after the other.
    pub serial: bool,
    /// True if every size was measured; otherwise the step was aborted.
    pub complete: bool,
    /// The sizes of each rank's memory in bytes, ascending.
    pub sizes_bytes: Vec<u64>,
    /// The CSV's figures by size, then by rank, each the mean of a rank's windows.
    pub values: Vec<Vec<f64>>,
    /// The medians by size, then by rank, which leave out disturbed windows; empty if unknown.
    #[serde(default)]
    pub medians: Vec<Vec<f64>>,
    /// The location of each rank, if known.
    pub places: Vec<Option<RankPlace>>,
    /// The share of disturbed windows of all ranks, from 0 to 1, if known.
    #[serde(default)]
    pub disturbed: Option<f64>,
}

/// The location of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankPlace {
    /// The rank's cpu.
    pub cpu: CpuId,
    /// The node of that cpu, if known.
    pub cpu_node: Option<NodeId>,
    /// The node of its memory, if known.
    pub memory_node: Option<NodeId>,
}

impl ScalingStep {
    pub fn ranks(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }

    /// Returns the figures of all ranks at a size: their medians if known, else the CSV's means.
    pub fn at(&self, size_bytes: u64) -> Option<&[f64]> {
        let at = self.sizes_bytes.iter().position(|&size| size == size_bytes)?;
        self.medians.get(at).or_else(|| self.values.get(at)).map(Vec::as_slice)
    }

    /// Returns the L3 group (CCD) of a rank's cpu on the machine.
    pub fn l3_group(&self, rank: usize, machine: Option<&Machine>) -> Option<u32> {
        let place = self.places.get(rank).copied().flatten()?;
        machine?.cpu(place.cpu)?.l3_group
    }
}
