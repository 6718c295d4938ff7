//! The results of `numalab scale`, and of the NUMA benchmarking suite before it: how a
//! figure of each rank changes with the number of ranks and where they are bound.

mod csv;
mod error;
mod name;
mod placement;
mod read;

use numalab_topology::{CpuId, Machine, NodeId};
use serde::{Deserialize, Serialize};

pub use error::ScalingError;
pub use read::{ScalingFile, read};

/// Everything in a directory, or in several below one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scaling {
    /// What it is called: the system and partition, else the directory.
    pub name: String,
    /// The machine, where an architecture file describes it.
    pub machine: Option<Machine>,
    /// The steps: by run, mode, domains and ranks.
    pub steps: Vec<ScalingStep>,
    /// What was odd in the files.
    pub findings: Vec<String>,
}

/// The order in which ranks are bound to cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One core after the other.
    Sequential,
    /// One core of each L3 group in turn.
    Interleaved,
    /// Not said.
    Other,
}

impl Mode {
    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Interleaved => "interleaved",
            Self::Other => "other",
        }
    }
}

/// What the figures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ScalingMetric {
    /// ns per load; lower is better.
    Latency,
    /// GB/s of each rank; higher is better.
    Bandwidth,
}

impl ScalingMetric {
    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Latency => "ns",
            Self::Bandwidth => "GB/s",
        }
    }
}

/// One number of ranks: a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingStep {
    /// The file, with its directory where there are several.
    pub file: String,
    /// The run it belongs to: its directory.
    pub run: String,
    /// The order of binding.
    pub mode: Mode,
    /// The nodes whose cores are used.
    pub domains: Vec<u32>,
    /// What the figures are.
    pub metric: ScalingMetric,
    /// Whether the ranks measured one after the other.
    pub serial: bool,
    /// Whether every size was measured; else the step broke off.
    pub complete: bool,
    /// The sizes of each rank's memory in bytes, ascending.
    pub sizes_bytes: Vec<u64>,
    /// By size, then by rank: the CSV's figures, each the mean of a rank's windows.
    pub values: Vec<Vec<f64>>,
    /// The same of the medians, which leave disturbed windows out; empty where they are not known.
    #[serde(default)]
    pub medians: Vec<Vec<f64>>,
    /// Where each rank was, where known.
    pub places: Vec<Option<RankPlace>>,
    /// The share of the ranks' windows that something disturbed, from 0 to 1, where known.
    #[serde(default)]
    pub disturbed: Option<f64>,
}

/// Where a rank was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankPlace {
    /// Its cpu.
    pub cpu: CpuId,
    /// The node of that cpu, where known.
    pub cpu_node: Option<NodeId>,
    /// The node of its memory, where known.
    pub memory_node: Option<NodeId>,
}

impl ScalingStep {
    /// How many ranks there were.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }

    /// The figures of all ranks at a size: their medians where known, else the CSV's means.
    #[must_use]
    pub fn at(&self, size_bytes: u64) -> Option<&[f64]> {
        let at = self.sizes_bytes.iter().position(|&size| size == size_bytes)?;
        self.medians.get(at).or_else(|| self.values.get(at)).map(Vec::as_slice)
    }

    /// The L3 group (CCD) of a rank's cpu on the machine.
    #[must_use]
    pub fn l3_group(&self, rank: usize, machine: Option<&Machine>) -> Option<u32> {
        let place = self.places.get(rank).copied().flatten()?;
        machine?.cpu(place.cpu)?.l3_group
    }
}
