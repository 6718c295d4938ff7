//! What is asked of an advice.

use std::path::PathBuf;
use std::time::Duration;

use numalab_workload::MetricSpec;

/// The program, by what trials judge it, and how much is run.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The program, with its arguments.
    pub command: Vec<String>,
    /// The file that every run reads from its beginning.
    pub stdin: Option<PathBuf>,
    /// What trials judge by.
    pub metric: MetricSpec,
    /// Whether nothing is tried.
    pub predict_only: bool,
    /// Whether the program is not followed first.
    pub trials_only: bool,
    /// Which candidates are tried.
    pub tries: Option<Tries>,
    /// Blocks of trials.
    pub blocks: usize,
    /// The most time for all trials.
    pub budget: Option<Duration>,
    /// Whether candidates that cannot win run all the same.
    pub to_the_end: bool,
    /// Where the study is kept.
    pub keep: Option<PathBuf>,
    /// The version of the program that asks, and its build.
    pub version: String,
}

/// Candidates that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tries {
    /// As many of those that are likely to bring a gain.
    Best(usize),
    /// All that can be.
    All,
}
