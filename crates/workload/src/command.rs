//! What a command line may name, and what must be up while it runs.

use serde::{Deserialize, Serialize};

/// In a command line: an empty directory of the run's own.
pub const SCRATCH: &str = "{scratch}";
/// As a program: this very numalab, wherever it lies.
pub const NUMALAB: &str = "numalab";

/// A program that must be up while the workload runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Starts it; it stays in the foreground.
    pub command: Vec<String>,
    /// Ends with 0 once the service is up: tried until then.
    pub ready: Vec<String>,
    /// How long it may take to be up, in seconds.
    pub ready_within_s: u64,
}
