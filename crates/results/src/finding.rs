//! A finding of a rule, with its threshold and evidence.

use serde::Serialize;

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Finding<What, Evidence> {
    /// The finding itself, with its figures.
    #[serde(flatten)]
    pub what: What,
    /// The rule's threshold, which the finding exceeds; `None` for a plain fact.
    pub threshold: Option<f64>,
    pub evidence: Vec<Evidence>,
}

impl<What, Evidence> Finding<What, Evidence> {
    /// Makes a finding that is a plain fact.
    pub const fn new(what: What) -> Self {
        Self { what, threshold: None, evidence: Vec::new() }
    }

    /// Adds the threshold that the finding exceeds.
    pub fn over(self, threshold: f64) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    pub fn shown_by(self, evidence: Vec<Evidence>) -> Self {
        Self { evidence, ..self }
    }
}
