//! A program's memory profile, from any source (`numalab profile`).

mod source;

use std::collections::BTreeMap;

use numalab_topology::{CpuSet, NodeId};
use serde::{Deserialize, Serialize};

pub use source::{
    CannotSee, Hindrance, PassedOver, ProfileSource, SampledEvent, SamplingUnit, SourceName,
};

use crate::program::ProgramMemory;

/// A program's memory profile, with the source of its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Profile {
    /// The command or process that was profiled.
    pub target: Target,
    /// The duration of profiling, in ns of this machine's time.
    pub watched_ns: u64,
    /// End of profiling.
    pub ended: Ended,
    /// The processes that the command left running, as `sleep (1234)`; they were terminated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// The source of the figures, which defines what a count means.
    pub source: ProfileSource,
    /// The page faults traced to find first touches; `None` if they were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsSeen>,
    /// The limits of this source.
    pub cannot_see: Vec<CannotSee>,
    /// Preferred sources, each with the reason why it could not be used.
    pub passed_over: Vec<PassedOver>,
    /// The nodes of the machine that the program ran on, or of the emulated machine.
    pub nodes: Vec<ProfiledNode>,
    /// The latency of an access in ns, one row per node with cpus; known for an emulated machine
    /// only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_ns: Vec<Vec<f64>>,
    /// The name of the program; of several processes, the one that used memory most.
    pub name: String,
    /// The program's threads, regions and accesses.
    pub program: ProgramMemory,
    /// The names of its threads, if they have any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thread_names: BTreeMap<u32, String>,
    /// Other processes and earlier programs of the command, whose figures are not in `program`.
    pub others: Vec<OtherProcess>,
    /// The processes whose figures are joined in `program`, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<OtherProcess>,
}

/// The subject of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A command started for the profile.
    Command(Vec<String>),
    /// A process that was already running.
    Process {
        /// The process id.
        process: u32,
        /// The process's command line.
        command: Vec<String>,
    },
}

impl Target {
    /// Returns the program and its arguments.
    pub fn words(&self) -> &[String] {
        match self {
            Self::Command(words) | Self::Process { command: words, .. } => words,
        }
    }
}

/// End of profiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The command exited with this code.
    Exited(i32),
    /// The command was ended by this signal.
    Signalled(i32),
    /// The process ended while it was profiled.
    ProcessEnded,
    /// The time limit was reached.
    TimeOver,
    /// The user interrupted it.
    Interrupted,
}

/// The page faults traced for a profile.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct FaultsSeen {
    /// The number of faults seen.
    pub seen: u64,
    /// The number of faults on pages that were already present: those of NUMA balancing, if it is
    /// on.
    pub again: u64,
    /// The records that the kernel dropped because they came faster than they could be read.
    pub lost: u64,
}

/// A node of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProfiledNode {
    pub node: NodeId,
    /// The node's cpus.
    pub cpus: CpuSet,
}

/// A process, summarised in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OtherProcess {
    /// The process id.
    pub process: u32,
    /// The name of its program.
    pub name: String,
    /// The run time of its threads, in ns.
    pub busy_ns: u64,
    /// The number of accesses seen.
    pub accesses: u64,
    /// The accesses to memory of a node other than the cpu's.
    pub remote: u64,
    /// The number of pages that it touched first.
    pub touched_pages: u64,
}
