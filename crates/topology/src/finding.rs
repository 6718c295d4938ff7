//! What is odd or wrong about an input.

use alloc::string::String;
use core::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Unusual, harmless.
    Note,
    /// Questionable: a value was ignored or replaced.
    Warning,
    /// Wrong: a system that believes it misbehaves.
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

/// Something odd or wrong in an input, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A stable short name, such as `distance-asymmetric`.
    pub code: String,
    /// Where: a file, a line, a node pair.
    pub place: String,
    /// What is wrong, quoting the value and saying what was expected.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {} [{}]", self.severity, self.place, self.message, self.code)
    }
}
