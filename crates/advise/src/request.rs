//! A request for advice.

use std::path::PathBuf;
use std::time::Duration;

use numalab_workload::MetricSpec;

/// The program, the metric of the trials, and the number of runs.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program, with its arguments.
    pub command: Vec<String>,
    /// The file that every run reads from its beginning.
    pub stdin: Option<PathBuf>,
    /// The metric by which trials are judged.
    pub metric: MetricSpec,
    /// True to predict only, without trials.
    pub predict_only: bool,
    /// True to skip following the program under emulation.
    pub trials_only: bool,
    pub tries: Option<Tries>,
    /// The number of blocks of trials.
    pub blocks: usize,
    /// The time limit of all trials.
    pub budget: Option<Duration>,
    /// True to run candidates to the end even if they can no longer win.
    pub to_the_end: bool,
    /// The directory in which the study is kept.
    pub keep: Option<PathBuf>,
    /// The version and build of the calling program.
    pub version: String,
}

/// The candidates to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tries {
    /// At most this number of candidates: those that are likely to bring a gain.
    Best(usize),
    /// All that can be tried.
    All,
}
