//! What a reader has to say about a table.

use core::fmt;

use crate::header::Signature;
use crate::problem::Problem;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Allowed or harmless; worth knowing.
    Note,
    /// Against the specification, yet kernels cope with it. A strict reader refuses it.
    Warning,
    /// The table, or a part of it, cannot be trusted, or a kernel refuses it.
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

/// A problem and the place it was found at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table it is in.
    pub table: Signature,
    /// Byte offset in that table.
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl Finding {
    /// How grave it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.problem.severity()
    }

    /// Its stable name, such as `memory-overlaps-across-domains`.
    #[must_use]
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
