//! The result of a bisection: the search for the commit that made something slower.

use serde::{Deserialize, Serialize};

use crate::study::Quantity;

/// A bisection: the question, each commit judged with its samples, and the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BisectDocument {
    /// The schema of this document.
    pub schema: String,
    /// The version of numalab that wrote the document.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The start of the bisection, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The study that takes the samples.
    pub study: String,
    /// A description of where the samples are taken.
    pub backend: String,
    /// The treatment under which every commit is judged.
    pub treatment: String,
    /// The workload that is run.
    pub workload: String,
    /// The quantity that is compared.
    pub quantity: Quantity,
    /// The chance that the search names a wrong commit, in percent.
    pub error_percent: f64,
    /// The largest change that counts as no change, in percent.
    pub margin_percent: f64,
    /// The maximum number of samples per commit.
    pub most_samples: usize,
    /// The number of commits that could be the first bad one, including the known bad one.
    pub candidates: usize,
    /// The commit known to be good.
    pub good: JudgedCommit,
    /// The commit known to be bad.
    pub bad: JudgedCommit,
    /// The commits between the two that were built, in the order in which they were built.
    pub judged: Vec<JudgedCommit>,
    /// The answer; `None` while the bisection runs.
    pub answer: Option<BisectAnswer>,
}

/// A commit, as git describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Commit {
    /// The commit's full hash.
    pub hash: String,
    /// The first line of its message.
    pub subject: String,
    /// The name and address of its author.
    pub author: String,
}

impl Commit {
    /// Returns the first twelve digits of the hash, as kernel developers quote commits.
    pub fn short(&self) -> &str {
        self.hash.get(..12).unwrap_or(&self.hash)
    }
}

/// A commit with its measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedCommit {
    pub commit: Commit,
    /// The time its build took, in seconds.
    pub build_s: f64,
    /// The samples in the order in which they were taken, each after a fresh boot if the study
    /// boots.
    pub samples: Vec<f64>,
    /// The change of the metric from the good commit, in percent; `None` until both have samples.
    pub change_percent: Option<f64>,
    /// The verdict on it.
    pub side: CommitSide,
}

/// The verdict on a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitSide {
    /// Not judged yet.
    #[default]
    Open,
    /// The commit resembles the good one.
    Good,
    /// The commit resembles the bad one.
    Bad,
    /// Still undecided after the maximum number of samples.
    Undecided,
    /// The commit does not build, for the given reason.
    NotBuilt(String),
    /// The commit does not boot or run the workload, for the given reason.
    NotRun(String),
}

/// The result of a bisection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BisectAnswer {
    /// A single first bad commit.
    FirstBad { commit: Commit },
    /// One of several commits is the first bad one: those that could not be judged, and the
    /// earliest one known to be bad.
    OneOf {
        /// The candidates.
        commits: Vec<Commit>,
    },
    /// The bad commit is not worse than the good one by more than the margin.
    NotWorse,
    /// The maximum number of samples did not show whether the bad commit is worse.
    EndsUndecided,
    /// The search was interrupted.
    Interrupted,
}
