//! Something found, with the rule and the evidence.

use serde::Serialize;

/// Something found by a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding<What, Evidence> {
    /// What was found, with its figures.
    #[serde(flatten)]
    pub what: What,
    /// The rule's threshold: it reports what lies beyond; `None` for a plain fact.
    pub threshold: Option<f64>,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

impl<What, Evidence> Finding<What, Evidence> {
    /// A plain fact.
    #[must_use]
    pub const fn new(what: What) -> Self {
        Self { what, threshold: None, evidence: Vec::new() }
    }

    /// The same, found because it lies beyond a threshold.
    #[must_use]
    pub fn over(self, threshold: f64) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    /// The same with its evidence.
    #[must_use]
    pub fn shown_by(self, evidence: Vec<Evidence>) -> Self {
        Self { evidence, ..self }
    }
}
