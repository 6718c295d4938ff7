//! What a program does to its memory, from any source (`numalab profile`).

mod source;

use std::collections::BTreeMap;

use numalab_topology::{CpuSet, NodeId};
use serde::{Deserialize, Serialize};

pub use source::{
    CannotSee, Hindrance, PassedOver, ProfileSource, SampledEvent, SamplingUnit, SourceName,
};

use crate::program::ProgramMemory;

/// A program's memory, with where the figures come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// What was looked at.
    pub target: Target,
    /// For how long, in ns of this machine's time.
    pub watched_ns: u64,
    /// How that ended.
    pub ended: Ended,
    /// What the command left running, as `sleep (1234)`; it was ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// What the figures come from. A count is one of what this source counts.
    pub source: ProfileSource,
    /// Page faults that were followed for who touches memory first; `None` where they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsSeen>,
    /// What cannot be seen from there.
    pub cannot_see: Vec<CannotSee>,
    /// Better sources, and why they could not be used.
    pub passed_over: Vec<PassedOver>,
    /// The nodes of the machine that it ran on, or that was emulated for it.
    pub nodes: Vec<ProfiledNode>,
    /// ns of an access, a row for each node of cpus; known of a machine that is emulated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_ns: Vec<Vec<f64>>,
    /// The name of the program: of several processes that which used memory most.
    pub name: String,
    /// What it did.
    pub program: ProgramMemory,
    /// The names of its threads, where they have any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thread_names: BTreeMap<u32, String>,
    /// Processes that it started and programs that it was before whose figures are not in `program`.
    pub others: Vec<OtherProcess>,
    /// Those whose figures are together in `program`, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<OtherProcess>,
}

/// What was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A command that was started for it.
    Command(Vec<String>),
    /// A process that was running.
    Process {
        /// Its number.
        process: u32,
        /// Its command line.
        command: Vec<String>,
    },
}

impl Target {
    /// The program and its arguments.
    #[must_use]
    pub fn words(&self) -> &[String] {
        match self {
            Self::Command(words) | Self::Process { command: words, .. } => words,
        }
    }
}

/// How looking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The command exited with this code.
    Exited(i32),
    /// This signal ended the command.
    Signalled(i32),
    /// The process ended while it was looked at.
    ProcessEnded,
    /// The time was over.
    TimeOver,
    /// The user interrupted it.
    Interrupted,
}

/// Page faults that were followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultsSeen {
    /// Faults that were seen.
    pub seen: u64,
    /// Of these, those on pages that were there before: of NUMA balancing, where that is on.
    pub again: u64,
    /// Records that the kernel dropped, because more came than could be read.
    pub lost: u64,
}

/// A node of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfiledNode {
    /// The node.
    pub node: NodeId,
    /// Its cpus.
    pub cpus: CpuSet,
}

/// A process, in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherProcess {
    /// Its number.
    pub process: u32,
    /// Its program.
    pub name: String,
    /// How long its threads ran, in ns.
    pub busy_ns: u64,
    /// Accesses that were seen of it.
    pub accesses: u64,
    /// Of these, those to memory of another node than the cpu's.
    pub remote: u64,
    /// Pages that it touched first.
    pub touched_pages: u64,
}
