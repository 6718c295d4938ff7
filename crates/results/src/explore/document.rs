//! Where memory lies now with what is wrong with it, in JSON.

use numalab_record::explore::View;
use serde::Serialize;

use crate::explore::ExploreFinding;

/// Where memory lies now, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExploreDocument<'a> {
    /// What was seen.
    #[serde(flatten)]
    pub view: &'a View,
    /// What is wrong.
    pub findings: Vec<FoundNow<'a>>,
}

/// Something found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundNow<'a> {
    /// The finding as values.
    #[serde(flatten)]
    pub finding: &'a ExploreFinding,
    /// The same in a sentence.
    pub what: String,
    /// The command that mends it, where there is one.
    pub mend: Option<String>,
}
