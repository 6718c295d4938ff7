//! The catalogue of known tools. Each program has a file with everything about it: its command
//! lines, packages and metrics, and the parser of its output.

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

/// All tools by program, in the order of listing.
const PROGRAMS: [&[ToolEntry]; 6] = [
    perf_bench::ENTRIES,
    sysbench::ENTRIES,
    dbench::ENTRIES,
    redis::ENTRIES,
    stress_ng::ENTRIES,
    numalab::ENTRIES,
];

/// A tool of the catalogue. The default arguments are those of the NUMA balancing study if it used
/// the tool, otherwise they take a few seconds on a common machine.
#[derive(Clone, Copy, Debug)]
pub struct ToolEntry {
    /// Name in studies, such as `perf-sched-pipe`.
    pub name: &'static str,
    /// A short description of the tool's measurement.
    pub summary: &'static str,
    /// The command line before the arguments.
    pub command: &'static [&'static str],
    pub arguments: &'static [&'static str],
    /// The command line after the arguments.
    pub end: &'static [&'static str],
    /// The default metrics; all if empty.
    pub metrics: &'static [&'static str],
    /// Timeout in seconds, after which it has failed.
    pub timeout_s: u64,
    pub(crate) programs: &'static [Program],
    pub(crate) service: Option<fn() -> Service>,
    parser: Parser,
}

impl ToolEntry {
    /// Returns a tool with only a parser and a timeout of five minutes, as a base for others.
    const fn of(parser: Parser) -> Self {
        Self {
            name: "",
            summary: "",
            command: &[],
            arguments: &[],
            end: &[],
            metrics: &[],
            timeout_s: 300,
            programs: &[],
            service: None,
            parser,
        }
    }
}

/// A program, its package, and the argument that makes it print its version.
pub(crate) type Program = (&'static str, &'static str, &'static str);

/// The parser of a tool's output.
#[derive(Clone, Copy, Debug)]
struct Parser {
    /// Returns all readings in the output of a successful command with these arguments.
    read: fn(&[String], &Finished<'_>) -> Result<Vec<Reading>, OutputError>,
    /// Returns the metric with this name, if the output can have it: for planning before anything
    /// has run. A test compares these with the metrics in real output.
    metric: fn(&str) -> Option<Quantity>,
}

pub fn all() -> impl Iterator<Item = &'static ToolEntry> {
    PROGRAMS.into_iter().flatten()
}

/// Returns the tool with this name.
pub fn entry(name: &str) -> Option<&'static ToolEntry> {
    all().find(|entry| entry.name == name)
}

/// Returns the names of all tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|entry| entry.name)
}

/// Returns the requirements of a command line on the kernel and the machine, whether it is a tool's
/// or a user's.
pub fn kernel_needs(command: &[String]) -> Vec<KernelNeed> {
    sysbench::kernel_needs(command)
}

pub(crate) fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl ToolEntry {
    /// Returns the Debian packages of its programs.
    pub fn packages(&self) -> Vec<&'static str> {
        self.programs.iter().map(|(_, package, _)| *package).collect()
    }
}

/// The reader of a tool's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReader {
    /// The tool's name in the catalogue.
    pub tool: String,
    /// Arguments of the tool, because some output depends on them.
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
