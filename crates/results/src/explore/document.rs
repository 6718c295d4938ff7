//! The JSON document of current memory placement and its problems.

use numalab_record::explore::View;
use serde::Serialize;

use crate::explore::ExploreFinding;

/// The current memory placement, and its problems.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ExploreDocument<'a> {
    /// The placement as observed.
    #[serde(flatten)]
    pub view: &'a View,
    /// The problems found.
    pub findings: Vec<FoundNow<'a>>,
}

/// A problem found.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FoundNow<'a> {
    /// The finding as values.
    #[serde(flatten)]
    pub finding: &'a ExploreFinding,
    /// The finding as a sentence.
    pub what: String,
    /// The command that fixes it, if there is one; alternatives are on separate lines.
    pub remedy: Option<String>,
}
