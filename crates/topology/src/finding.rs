//! Findings about unusual or wrong parts of an input.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

pub use numalab_acpi::Severity;

/// An unusual or wrong part of an input, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// A stable short name, such as `distance-asymmetric`.
    pub code: String,
    /// The place: a file, a line, a node pair.
    pub place: String,
    /// The problem, with the value and the expectation.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {} [{}]", self.severity, self.place, self.message, self.code)
    }
}

impl Finding {
    /// Returns a finding.
    pub fn new(
        severity: Severity,
        code: &str,
        place: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { severity, code: code.into(), place: place.into(), message: message.into() }
    }
}

impl From<&numalab_acpi::Finding> for Finding {
    fn from(finding: &numalab_acpi::Finding) -> Self {
        let place = format!("{} at {:#06x}", finding.table, finding.offset);
        Self::new(finding.severity(), finding.code(), place, finding.problem.to_string())
    }
}

/// A collection of findings. Of those with the same code the first [`Findings::MAX_ALIKE`] are
/// kept, and one more gives the number of those that were not.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    /// The number of findings of each code.
    counts: BTreeMap<String, usize>,
}

impl Findings {
    /// The number of findings of one code that are kept: thousands of nodes can have the same
    /// problem.
    pub const MAX_ALIKE: usize = 8;

    /// Adds a finding, unless it is there: some files of odd trees are read twice.
    pub fn push(&mut self, finding: Finding) {
        if self.list.contains(&finding) {
            return;
        }
        let count = self.counts.entry(finding.code.clone()).or_default();
        *count += 1;
        if *count <= Self::MAX_ALIKE {
            self.list.push(finding);
        }
    }

    pub(crate) fn add(
        &mut self,
        severity: Severity,
        code: &str,
        place: impl ToString,
        message: impl Into<String>,
    ) {
        self.push(Finding::new(severity, code, place.to_string(), message));
    }

    /// Adds an error.
    pub fn error(&mut self, code: &str, place: impl ToString, message: impl Into<String>) {
        self.add(Severity::Error, code, place, message);
    }

    /// Adds a warning.
    pub fn warning(&mut self, code: &str, place: impl ToString, message: impl Into<String>) {
        self.add(Severity::Warning, code, place, message);
    }

    /// Adds a note.
    pub fn note(&mut self, code: &str, place: impl ToString, message: impl Into<String>) {
        self.add(Severity::Note, code, place, message);
    }

    /// Returns the findings in the order in which they were added, each kind followed by the number
    /// of those not kept.
    pub fn into_list(mut self) -> Vec<Finding> {
        for (code, count) in self.counts {
            let Some(more) = count.checked_sub(Self::MAX_ALIKE).filter(|&more| more > 0) else {
                continue;
            };
            let Some(last) = self.list.iter().rposition(|finding| finding.code == code) else {
                continue;
            };
            let severity = self.list[last].severity;
            let (place, message) = ("elsewhere".to_string(), format!("{more} more like it"));
            self.list.insert(last + 1, Finding { severity, code, place, message });
        }
        self.list
    }
}
