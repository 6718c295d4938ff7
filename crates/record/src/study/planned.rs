//! What a study would do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Notice, Setting, Visit};

/// What a study would do, before anything is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    pub notices: Vec<Notice>,
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
    /// How long it takes.
    pub time: StudyTime,
    /// What each number of blocks can decide.
    pub decisions: Decisions,
    /// The fewest blocks that can show a difference, where it has fewer.
    pub fewest_blocks: Option<usize>,
}

/// How long a study takes, as far as is known before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StudyTime {
    /// As long as a block takes by its author, or by trying it out.
    About {
        /// For all blocks.
        seconds: f64,
    },
    /// It ends when its budget is spent.
    Budget {
        /// The budget.
        seconds: f64,
    },
    /// Nobody said how long a block takes: the limits of its workloads are known.
    AtMost {
        /// For all blocks.
        seconds: f64,
    },
}

/// What each number of blocks can decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decisions {
    /// The metric that answers the question; any metric where none is named.
    pub primary: Option<String>,
    /// How far the changes of single blocks lie apart: standard deviations in percent.
    pub spreads_percent: Vec<f64>,
    /// Numbers of blocks, the planned one among them.
    pub rows: Vec<Decision>,
}

/// What a number of blocks can decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// The number of blocks.
    pub blocks: usize,
    /// Whether it is the planned one.
    pub is_planned: bool,
    /// For each spread the least change in percent that is found in four of five studies;
    /// `None` where nothing can be.
    pub least_percent: Vec<Option<f64>>,
}

/// A level with a name of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyList {
    /// The studies, by name.
    pub studies: Vec<ListedStudy>,
}

/// A study in a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedStudy {
    /// Its name.
    pub name: String,
    /// What it answers.
    pub question: String,
    /// Its blocks, warm-ups included.
    pub blocks: usize,
    /// How long it takes.
    pub time: StudyTime,
}

/// The backends with all that can be set in each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingList {
    /// The backends.
    pub backends: Vec<BackendSettings>,
}

/// What can be set in a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackendSettings {
    /// Its name: `[backend.NAME]`.
    pub backend: String,
    /// What it is, in a line.
    pub about: String,
    /// What its table in a study, and `--set`, may say.
    pub settings: Vec<ListedSetting>,
    /// What levels of factors may set.
    pub levels: Vec<ListedSetting>,
}

/// A setting of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedSetting {
    /// Its name.
    pub name: String,
    /// What it does, in a line.
    pub about: String,
    /// What it may be, in words.
    pub expected: String,
    /// Its value where nothing is said, if there is one.
    pub default: Option<String>,
}

/// A study as its author wrote it, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
