//! What is wrong, in a sentence, and the command that mends it.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Memory is where it should not be, or will be.
    Wrong,
    /// Worth knowing; it may be meant so.
    Note,
}

/// What is wrong, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// How bad it is.
    pub weight: Weight,
    /// The sentence.
    pub what: String,
    /// A command that mends it, where there is one.
    pub mend: Option<String>,
}

impl Finding {
    /// Something wrong with its command.
    #[must_use]
    pub fn wrong(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { weight: Weight::Wrong, what: what.into(), mend: Some(mend.into()) }
    }

    /// Something worth knowing, with its command.
    #[must_use]
    pub fn note(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { weight: Weight::Note, ..Self::wrong(what, mend) }
    }

    /// Something worth knowing that no single command mends.
    #[must_use]
    pub fn remark(what: impl Into<String>) -> Self {
        Self { weight: Weight::Note, what: what.into(), mend: None }
    }
}
