//! The journal of a study: one entry per line, written as it runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::disturbance::Disturbance;
use super::notice::Notice;
use super::plan::Arm;
use super::quantity::Reading;
use crate::Environment;
use crate::tiering::TierLook;

/// A line of `journal.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum JournalEntry {
    /// A session began: the first one, or one that resumes.
    Began {
        /// The hash of the plan that the session follows.
        plan: String,
        /// Milliseconds since 1970-01-01 UTC.
        unix_ms: u64,
        /// Facts about the backend's system.
        environment: Environment,
        /// Notices for the reader before the start, such as that a knob cannot have an effect here.
        notices: Vec<Notice>,
    },
    /// A treatment was applied.
    Applied(Applied),
    /// A sample was taken.
    Sample(SampleEntry),
    /// A treatment can no longer be the best, and is dropped.
    Out {
        /// The treatment's index.
        treatment: usize,
        /// The first block without the treatment.
        from_block: usize,
    },
    /// The session ended by itself.
    Ended {
        reason: EndReason,
        /// Milliseconds since 1970-01-01 UTC.
        unix_ms: u64,
    },
}

/// The reason for the end of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Every block is done.
    Done,
    /// Every interval is narrow enough.
    Precise,
    /// No treatment other than the baseline can still be the best.
    NoneLeft,
    /// The time budget is spent.
    BudgetSpent,
    /// The user interrupted it.
    Interrupted,
    /// Something failed.
    Failed(String),
}

/// An applied treatment, with the evidence that it is in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Applied {
    /// The block from 0, warm-ups first.
    pub block: usize,
    /// The index of the treatment.
    pub treatment: usize,
    /// The arm: judged, or the repeated baseline.
    pub arm: Arm,
    /// The time that applying it took, in seconds.
    pub took_s: f64,
    /// The values read back.
    pub evidence: Vec<Evidence>,
}

/// Evidence that a setting is in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Evidence {
    /// The setting, or the fact: `numa_balancing`, `AnonHugePages`.
    pub what: String,
    /// The value requested; `None` for an accompanying fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The value found.
    pub found: String,
}

impl Evidence {
    /// Returns a fact that was not requested.
    pub fn fact(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), wanted: None, found: found.into() }
    }

    /// Returns the value found for a requested setting.
    pub fn of(
        what: impl Into<String>,
        wanted: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), wanted: Some(wanted.into()), found: found.into() }
    }
}

/// A sample: one run of one workload under one treatment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SampleEntry {
    /// The block from 0, warm-ups first.
    pub block: usize,
    /// The index of the treatment.
    pub treatment: usize,
    /// The arm: judged, or the repeated baseline.
    pub arm: Arm,
    /// The index of the workload.
    pub workload: usize,
    /// The number of earlier, disturbed attempts.
    pub attempt: usize,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// The time it took in seconds, including preparation.
    pub took_s: f64,
    #[serde(flatten)]
    pub observation: Observation,
}

/// The result of taking a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Observation {
    /// The measured values.
    pub readings: Vec<Reading>,
    /// The counters collected during the sample: `numa_pte_updates`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// The sample's placement and that of its memory, and evidence that its settings were in
    /// effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The locations of the guests that ran it together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestPlace>,
    /// The locations of a tier probe's pages over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<TierLook>,
    /// The large files that the sample read, as the page cache held them before it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CachedFile>,
    /// The disturbances of the sample, detected without regard to its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
}

/// A file in the page cache before a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CachedFile {
    /// The file's path.
    pub path: String,
    /// The bytes that were dropped, and read again under the sample's own treatment.
    pub dropped_bytes: u64,
    /// The bytes that could not be dropped, because another run read them and they stay where it
    /// did.
    pub kept_bytes: u64,
}

/// The location of a guest and its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestPlace {
    pub guest: String,
    /// The node that it is assigned to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u32>,
    /// The size of its memory on each node, in frames or bytes; the node is `None` for memory
    /// without one.
    pub memory: Vec<(Option<u32>, u64)>,
    /// The CPUs that it may run on, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
}

impl Observation {
    /// Returns true if it was disturbed by other load, as opposed to a failed guest.
    pub fn is_disturbed_by_load(&self) -> bool {
        !self.disturbances.is_empty() && self.disturbances.iter().all(Disturbance::is_load)
    }
}
