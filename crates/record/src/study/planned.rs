//! The plan of a study.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Notice, Setting, Visit};

/// A study's plan, before anything is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlannedStudy {
    /// The study's name.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// A note that readers need in order to judge the answer.
    pub note: Option<String>,
    /// A description of the place where the study's samples are taken.
    pub backend: String,
    /// The reason why the study cannot be run here and now.
    pub cannot_run: Option<String>,
    /// The backend's notices before the start.
    pub notices: Vec<Notice>,
    /// The memory that its guests need, in bytes.
    pub memory_bytes: u64,
    /// The files to download first.
    pub downloads: Vec<String>,
    /// The treatments, the baseline first.
    pub treatments: Vec<String>,
    /// The levels with separate names, and their settings.
    pub levels: Vec<PlannedLevel>,
    /// The workloads that are run under each treatment.
    pub workloads: Vec<PlannedWorkload>,
    /// The seed of the random order.
    pub seed: u64,
    /// The number of warm-up blocks, which are not judged.
    pub warm_ups: usize,
    /// Every block, warm-ups first, with its treatments in order.
    pub blocks: Vec<Vec<Visit>>,
    /// The total number of samples.
    pub samples: usize,
    /// The number of samples already taken, if the study was started before.
    pub taken: usize,
    /// The time it takes.
    pub time: StudyTime,
    /// The changes that each number of blocks can detect.
    pub decisions: Decisions,
    /// The fewest blocks that can show a difference, if the study has fewer.
    pub fewest_blocks: Option<usize>,
    /// The minimum total number of blocks that can show a difference if blocks are added to those
    /// of the study, which is then judged twice.
    #[serde(default)]
    pub fewest_with_added: Option<usize>,
}

/// The duration of a study, as far as known before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StudyTime {
    /// An estimate from the time of a block, as stated by the author or measured.
    About {
        /// The time for all blocks.
        seconds: f64,
    },
    /// The study ends when its budget is spent.
    Budget {
        /// The budget.
        seconds: f64,
    },
    /// An upper bound from the time limits of its workloads.
    AtMost {
        /// The time for all blocks.
        seconds: f64,
    },
}

/// The changes that each number of blocks can detect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decisions {
    /// The metric that answers the question; `None` for any metric.
    pub primary: Option<String>,
    /// The spread of changes between blocks, as standard deviations in percent.
    pub spreads_percent: Vec<f64>,
    /// Rows by number of blocks, including the planned one.
    pub rows: Vec<Decision>,
}

/// The changes that a number of blocks can detect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decision {
    /// The number of blocks.
    pub blocks: usize,
    /// True for the planned number of blocks.
    pub is_planned: bool,
    /// For each spread, the smallest change in percent that four of five studies detect; `None` if
    /// no change can be detected.
    pub least_percent: Vec<Option<f64>>,
}

/// A level with a name that differs from its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlannedLevel {
    pub factor: String,
    pub level: String,
    /// The settings of the level.
    pub set: BTreeMap<String, Setting>,
}

/// A workload that is run under each treatment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlannedWorkload {
    /// The workload's name.
    pub name: String,
    /// The workload's command.
    pub command: Vec<String>,
    /// The command of the service that it needs.
    pub service: Option<Vec<String>>,
}

/// The bundled studies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyList {
    /// The studies, by name.
    pub studies: Vec<ListedStudy>,
}

/// A study in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ListedStudy {
    /// The study's name.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// The number of its blocks, including warm-ups.
    pub blocks: usize,
    /// The time it takes.
    pub time: StudyTime,
}

/// The backends, with their settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SettingList {
    pub backends: Vec<BackendSettings>,
}

/// The settings that a backend accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BackendSettings {
    /// The backend's name, as in `[backend.NAME]`.
    pub backend: String,
    /// A description in one line.
    pub about: String,
    /// The settings of its table in a study, and of `--set`.
    pub settings: Vec<ListedSetting>,
    /// The settings of factors' levels.
    pub levels: Vec<ListedSetting>,
}

/// A setting of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ListedSetting {
    /// The setting's name.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The values that it accepts, in words.
    pub expected: String,
    /// The default value, if there is one.
    pub default: Option<String>,
}

/// A study as its author wrote it, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShownStudy {
    /// The study in one line.
    #[serde(flatten)]
    pub line: ListedStudy,
    /// The study in TOML, with its time and the commands of its tools as comments.
    pub toml: String,
    pub study: serde_json::Value,
}
