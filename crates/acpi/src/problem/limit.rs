//! Quantities beyond the limits of any system, which are refused so that every input takes bounded
//! time and memory.

use thiserror::Error;

/// The largest number of proximity domains, and of rows of a SLIT, that Linux supports:
/// `MAX_PXM_DOMAINS` with the largest `CONFIG_NODES_SHIFT`.
pub const MAX_DOMAINS: u32 = 1024;
/// The largest number of processors that are read; Linux supports 8,192 (`CONFIG_NR_CPUS` on x86).
pub const MAX_PROCESSORS: usize = 65_536;
/// The largest size of a table in bytes. A SLIT of [`MAX_DOMAINS`] rows has 1 MiB, a SRAT of
/// [`MAX_PROCESSORS`] processors 1.5 MiB.
pub const MAX_TABLE_BYTES: u32 = 4 << 20;

/// A quantity that exceeds its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitProblem {
    /// A table of more than [`MAX_TABLE_BYTES`].
    #[error("header gives a length of {length} bytes, expected at most {MAX_TABLE_BYTES}")]
    TableTooLarge { length: u32 },
    /// A SLIT of more than [`MAX_DOMAINS`] rows.
    #[error("{localities} localities, expected at most {MAX_DOMAINS}")]
    TooManyLocalities { localities: u64 },
    /// A proximity domain of [`MAX_DOMAINS`] or more; Linux then drops the whole SRAT.
    #[error("proximity domain {domain}, expected below {MAX_DOMAINS}, the limit of Linux")]
    DomainTooLarge { domain: u32 },
    /// More processors than [`MAX_PROCESSORS`].
    #[error("{processors} processors, expected at most {MAX_PROCESSORS}")]
    TooManyProcessors { processors: usize },
}
