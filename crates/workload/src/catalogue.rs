//! The tools that numalab knows. Each program has a file, with all there is to say of it:
//! its command lines, packages and metrics, and how its output is read.

mod dbench;
mod numalab;
mod perf_bench;
mod redis;
mod stress_ng;
mod sysbench;

pub use numalab::tier_looks;
use numalab_record::study::{Quantity, Reading};

use serde::{Deserialize, Serialize};

use crate::command::Service;
use crate::error::OutputError;
use crate::finished::Finished;
use crate::need::KernelNeed;

/// All tools by program, in the order in which they are listed.
const PROGRAMS: [&[Entry]; 6] = [
    perf_bench::ENTRIES,
    sysbench::ENTRIES,
    dbench::ENTRIES,
    redis::ENTRIES,
    stress_ng::ENTRIES,
    numalab::ENTRIES,
];

/// A tool of the catalogue. The usual arguments are those of the NUMA balancing study where it
/// has them, else a few seconds on a common machine.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in studies: `perf-sched-pipe`.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub summary: &'static str,
    /// The command line before the arguments.
    pub command: &'static [&'static str],
    /// The arguments if the user gives none.
    pub arguments: &'static [&'static str],
    /// The command line after the arguments.
    pub end: &'static [&'static str],
    /// The metrics that matter if the user names none; all if empty.
    pub metrics: &'static [&'static str],
    /// After how many seconds it has failed.
    pub timeout_s: u64,
    pub(crate) programs: &'static [Program],
    pub(crate) service: Option<fn() -> Service>,
    parser: Parser,
}

/// A program, the package that has it, and the argument that makes it tell its version.
pub(crate) type Program = (&'static str, &'static str, &'static str);

/// How an output is read.
#[derive(Clone, Copy, Debug)]
struct Parser {
    /// All readings in the output of a command with these arguments that ended well.
    read: fn(&[String], &Finished<'_>) -> Result<Vec<Reading>, OutputError>,
    /// The metric of this name, if the output can have it: for those who plan before anything
    /// has run. A test compares them with what is found in real output.
    metric: fn(&str) -> Option<Quantity>,
}

/// All tools.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    PROGRAMS.into_iter().flatten()
}

/// The tool of this name.
#[must_use]
pub fn entry(name: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.name == name)
}

/// The names of all tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|entry| entry.name)
}

/// What the kernel and the machine must have for a command line, whoever wrote it.
#[must_use]
pub fn kernel_needs(command: &[String]) -> Vec<KernelNeed> {
    sysbench::kernel_needs(command)
}

pub(crate) fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Entry {
    /// The Debian packages that have its programs.
    #[must_use]
    pub fn packages(&self) -> Vec<&'static str> {
        self.programs.iter().map(|(_, package, _)| *package).collect()
    }
}

/// The reader of a tool's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReader {
    /// The tool's name in the catalogue.
    pub tool: String,
    /// Its arguments: what some print depends on them.
    pub arguments: Vec<String>,
}

impl ToolReader {
    pub(crate) fn read(&self, finished: &Finished<'_>) -> Result<Vec<Reading>, OutputError> {
        let tool = entry(&self.tool).ok_or_else(|| OutputError::NotApplicable {
            reason: format!("`{}` is not a tool of this numalab", self.tool),
        })?;
        (tool.parser.read)(&self.arguments, finished)
    }

    pub(crate) fn metric(&self, name: &str) -> Option<Quantity> {
        (entry(&self.tool)?.parser.metric)(name)
    }
}
