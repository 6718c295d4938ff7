//! What is written while a study runs, an entry a line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::disturbance::Disturbance;
use super::notice::Notice;
use super::plan::Arm;
use super::quantity::Reading;
use crate::Environment;
use crate::tiering::TierLook;

/// A line of `journal.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum Entry {
    /// A session began: the first, or one that resumes.
    Began {
        /// The hash of the plan that it follows.
        plan: String,
        /// Milliseconds since 1970-01-01 UTC.
        unix_ms: u64,
        /// Facts about the backend.
        environment: Environment,
        /// What the reader should know beforehand, such as that a knob cannot act here.
        notices: Vec<Notice>,
    },
    /// A treatment was applied.
    Applied(Applied),
    /// A sample was taken.
    Sample(SampleEntry),
    /// A treatment cannot be the best any more, and is not tried again.
    Out {
        /// Its index.
        treatment: usize,
        /// The first block without it.
        from_block: usize,
    },
    /// The session ended by itself.
    Ended {
        /// Why.
        reason: EndReason,
        /// Milliseconds since 1970-01-01 UTC.
        unix_ms: u64,
    },
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Every block is done.
    Done,
    /// Every interval is narrow enough.
    Precise,
    /// No treatment but the baseline is left that could be the best.
    NoneLeft,
    /// The time allowed is spent.
    BudgetSpent,
    /// The user interrupted it.
    Interrupted,
    /// Something failed.
    Failed(String),
}

/// A treatment that was applied, and how that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Applied {
    /// The block from 0, warm-ups first.
    pub block: usize,
    /// The index of the treatment.
    pub treatment: usize,
    /// Whether it is judged, or the baseline once more.
    pub arm: Arm,
    /// How long it took in seconds.
    pub took_s: f64,
    /// What was read back.
    pub evidence: Vec<Evidence>,
}

/// That a setting holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The setting, or the fact: `numa_balancing`, `AnonHugePages`.
    pub what: String,
    /// What was asked for; nobody asks for a fact that goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// What was found.
    pub found: String,
}

impl Evidence {
    /// A fact that nobody asked for.
    #[must_use]
    pub fn fact(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), wanted: None, found: found.into() }
    }

    /// What was found where something was asked for.
    #[must_use]
    pub fn of(
        what: impl Into<String>,
        wanted: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), wanted: Some(wanted.into()), found: found.into() }
    }
}

/// A sample: one run of one workload under one treatment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleEntry {
    /// The block from 0, warm-ups first.
    pub block: usize,
    /// The index of the treatment.
    pub treatment: usize,
    /// Whether it is judged, or the baseline once more.
    pub arm: Arm,
    /// The index of the workload.
    pub workload: usize,
    /// From 0; more where the ones before were disturbed.
    pub attempt: usize,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// How long it took in seconds, with all that belongs to it.
    pub took_s: f64,
    /// What was found.
    #[serde(flatten)]
    pub observation: Observation,
}

/// What a sample gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Observation {
    /// What was measured.
    pub readings: Vec<Reading>,
    /// What else was counted while it ran: `numa_pte_updates`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// Where it ran and where its memory lay, and that its settings acted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Where guests lay that ran it together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestPlace>,
    /// Where the pages of a probe of memory tiers were from time to time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<TierLook>,
    /// What disturbed it, found without a look at its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
}

/// Where a guest ran and where its memory lay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestPlace {
    /// The guest.
    pub guest: String,
    /// The node that it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u32>,
    /// Nodes with the memory that it has there, in frames or bytes; `None` is no node's memory.
    pub memory: Vec<(Option<u32>, u64)>,
    /// The CPUs that it may run on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
}

impl Observation {
    /// Whether what disturbed it was other load, as against a guest that failed.
    #[must_use]
    pub fn is_disturbed_by_load(&self) -> bool {
        !self.disturbances.is_empty() && self.disturbances.iter().all(Disturbance::is_load)
    }
}
