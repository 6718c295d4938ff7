//! The origin of a document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The command that took a result, with time and place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// The version of numalab.
    pub version: String,
    /// The command line as given.
    pub command: Vec<String>,
    /// The time in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// The name of the machine that it ran on.
    pub hostname: String,
}
