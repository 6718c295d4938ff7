//! Problems of the windows of a CEDT.

use thiserror::Error;

/// One kind of problem with a CXL fixed memory window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WindowProblem {
    /// A window that is not aligned as CXL requires.
    #[error("{field} {value:#x} is not a multiple of {alignment:#x}")]
    Unaligned { field: &'static str, value: u64, alignment: u64 },
    /// Two CXL windows over the same addresses.
    #[error("window at {base:#x} overlaps that at {other:#06x}")]
    Overlap { base: u64, other: usize },
    /// A window interleaved over a host bridge that no CHBS describes.
    #[error("interleave target {uid:#x} has no CXL host bridge entry")]
    TargetUnknown { uid: u32 },
}
