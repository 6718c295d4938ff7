//! What readers and writers return.

use numalab_topology::{Finding, Machine, Severity};

/// What was read, and what was odd about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<T = Machine> {
    /// What the text describes.
    pub value: T,
    /// What was ignored, assumed or inconsistent, in order of appearance.
    pub findings: Vec<Finding>,
}

/// What was written, and what the format could not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T = String> {
    /// The text or arguments.
    pub output: T,
    /// What of the machine is missing or changed in the output.
    pub losses: Vec<Finding>,
}

/// Findings as they are made.
#[derive(Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    pub(crate) fn note(&mut self, code: &str, place: String, message: String) {
        self.add(Severity::Note, code, place, message);
    }

    pub(crate) fn warning(&mut self, code: &str, place: String, message: String) {
        self.add(Severity::Warning, code, place, message);
    }

    fn add(&mut self, severity: Severity, code: &str, place: String, message: String) {
        let code = code.to_owned();
        self.0.push(Finding { severity, code, place, message });
    }
}
