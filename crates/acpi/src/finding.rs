//! Findings of a reader about a table.

use core::fmt;

use crate::header::Signature;
use crate::problem::Problem;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Unusual but harmless.
    Note,
    /// Questionable: a value was ignored or replaced.
    Warning,
    /// Wrong: a system that relies on it misbehaves.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A problem and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table that has the problem.
    pub table: Signature,
    /// Byte offset in that table.
    pub offset: usize,
    /// The problem.
    pub problem: Problem,
}

impl Finding {
    /// Returns the severity of the problem.
    pub fn severity(&self) -> Severity {
        self.problem.severity()
    }

    /// Returns the stable name of the problem, such as `memory-overlaps-across-domains`.
    pub fn code(&self) -> &'static str {
        self.problem.code()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#06x}: {} [{}]", self.table, self.offset, self.problem, self.code())
    }
}

impl core::error::Error for Finding {}
