//! What a search for the commit that made something worse found.

use serde::{Deserialize, Serialize};

use crate::study::Quantity;

/// A bisection: what was asked, each commit that was judged with its samples, and the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectDocument {
    /// The kind of document.
    pub schema: String,
    /// The version of numalab.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Milliseconds since 1970 when it began.
    pub started_unix_ms: u64,
    /// The study that takes the samples.
    pub study: String,
    /// Where it takes them, in words.
    pub backend: String,
    /// The settings under which all commits are judged, by the name of the treatment.
    pub treatment: String,
    /// The workload.
    pub workload: String,
    /// What is compared.
    pub quantity: Quantity,
    /// The chance that the whole search names a wrong commit, in percent.
    pub error_percent: f64,
    /// A change up to this counts as none, in percent.
    pub margin_percent: f64,
    /// The most samples of one commit.
    pub most_samples: usize,
    /// Commits that could be the first bad one, the bad one included.
    pub candidates: usize,
    /// The commit that is known as good.
    pub good: JudgedCommit,
    /// The commit that is known as bad.
    pub bad: JudgedCommit,
    /// The commits between them that were built, in this order.
    pub judged: Vec<JudgedCommit>,
    /// What came of it; none while it runs.
    pub answer: Option<BisectAnswer>,
}

/// A commit as git tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commit {
    /// Its whole hash.
    pub hash: String,
    /// The first line of its message.
    pub subject: String,
    /// Name and address of its author.
    pub author: String,
}

impl Commit {
    /// The first twelve digits of its hash, as kernel developers quote commits.
    #[must_use]
    pub fn short(&self) -> &str {
        self.hash.get(..12).unwrap_or(&self.hash)
    }
}

/// A commit with what was measured of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgedCommit {
    /// Which.
    pub commit: Commit,
    /// Seconds that its build took.
    pub build_s: f64,
    /// Its samples, each after a boot of its own where the study boots, in the order in which they were taken.
    pub samples: Vec<f64>,
    /// How much more it costs than the good commit, in percent; less than 0 where it is better.
    /// None before there are samples of both.
    pub worse_percent: Option<f64>,
    /// What it was taken for.
    pub side: CommitSide,
}

/// What a commit is taken for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CommitSide {
    /// Nothing yet.
    #[default]
    Open,
    /// As the good one.
    Good,
    /// As the bad one.
    Bad,
    /// The most samples did not tell.
    Undecided,
    /// It does not build, for this reason.
    NotBuilt(String),
    /// It does not boot or run the workload, for this reason.
    NotRun(String),
}

/// What a bisection ends with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BisectAnswer {
    /// This commit is the first bad one.
    FirstBad {
        /// Which.
        commit: Commit,
    },
    /// It is one of these: those that could not be judged, and the first known as bad.
    OneOf {
        /// Which.
        commits: Vec<Commit>,
    },
    /// The bad commit is not worse than the good one by more than the margin.
    NotWorse,
    /// Whether the bad commit is worse was not decided by the most samples.
    EndsUndecided,
    /// It was interrupted.
    Interrupted,
}
