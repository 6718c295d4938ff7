//! What a study would do.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Setting, Visit};

/// What a study would do, before anything is started.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedStudy {
    /// Its name.
    pub name: String,
    /// What it answers.
    pub question: String,
    /// What a reader must know to judge the answer.
    pub note: Option<String>,
    /// Where its samples are taken.
    pub backend: String,
    /// Why it cannot be run here and now.
    pub cannot_run: Option<String>,
    /// What the backend says before it starts.
    pub notices: Vec<String>,
    /// Memory that its guests take, in bytes.
    pub memory_bytes: u64,
    /// What must be downloaded first.
    pub downloads: Vec<String>,
    /// The treatments, the baseline first.
    pub treatments: Vec<String>,
    /// What the levels set that have a name of their own.
    pub levels: Vec<PlannedLevel>,
    /// What is run under each treatment.
    pub workloads: Vec<PlannedWorkload>,
    /// The seed of the order.
    pub seed: u64,
    /// Blocks that are not judged, of all.
    pub warm_ups: usize,
    /// Every block, warm-ups first: the treatments in their order.
    pub blocks: Vec<Vec<Visit>>,
    /// Samples in all.
    pub samples: usize,
    /// Samples that have been taken already, where the study was begun before.
    pub taken: usize,
    /// How long it takes, in words.
    pub time: String,
    /// What each number of blocks can decide, as a table in text.
    pub decisions: String,
    /// The fewest blocks that can show a difference, where it has fewer.
    pub fewest_blocks: Option<usize>,
}

/// A level with a name of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedLevel {
    /// The factor.
    pub factor: String,
    /// The level.
    pub level: String,
    /// What it sets.
    pub set: BTreeMap<String, Setting>,
}

/// What is run under each treatment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedWorkload {
    /// Its name.
    pub name: String,
    /// Its command.
    pub command: Vec<String>,
    /// The command of the service that it needs.
    pub service: Option<Vec<String>>,
}

/// The studies that come with numalab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyList {
    /// The studies, by name.
    pub studies: Vec<ListedStudy>,
}

/// A study in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedStudy {
    /// Its name.
    pub name: String,
    /// What it answers.
    pub question: String,
    /// Its blocks, warm-ups included.
    pub blocks: usize,
    /// How long it takes, in words.
    pub time: String,
}

/// A study as its author wrote it, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownStudy {
    /// What it is in a line.
    #[serde(flatten)]
    pub line: ListedStudy,
    /// The study in TOML, with its time and the commands of its tools as comments.
    pub toml: String,
    /// The study.
    pub study: serde_json::Value,
}
