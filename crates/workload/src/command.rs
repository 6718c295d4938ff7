//! Placeholders in a command line, and services that it needs.

use serde::{Deserialize, Serialize};

/// Placeholder in a command line for an empty directory that belongs to the run.
pub const SCRATCH: &str = "{scratch}";
/// Placeholder for a program: this numalab, wherever it is installed.
pub const NUMALAB: &str = "numalab";

/// A program that must be running while the workload runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Command that starts it and stays in the foreground.
    pub command: Vec<String>,
    /// Command that exits with 0 once the service is up; it is repeated until then.
    pub ready: Vec<String>,
    /// Time limit for the service to become ready, in seconds.
    pub ready_within_s: u64,
}
