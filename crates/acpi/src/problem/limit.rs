//! More of something than any system has: refused, so that every input takes bounded time and
//! memory.

use thiserror::Error;

/// Proximity domains that Linux takes, and rows of a SLIT: `MAX_PXM_DOMAINS` with the largest
/// `CONFIG_NODES_SHIFT`.
pub const MAX_DOMAINS: u32 = 1024;
/// Processors that are read; Linux takes 8,192 (`CONFIG_NR_CPUS` on x86).
pub const MAX_PROCESSORS: usize = 65_536;
/// Bytes of a table. A SLIT of [`MAX_DOMAINS`] rows has 1 MiB, a SRAT of [`MAX_PROCESSORS`]
/// processors 1.5 MiB.
pub const MAX_TABLE_BYTES: u32 = 4 << 20;

/// What there is more of than is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitProblem {
    /// A table of more than [`MAX_TABLE_BYTES`].
    #[error("header gives a length of {length} bytes, expected at most {MAX_TABLE_BYTES}")]
    TableTooLarge {
        /// In the header.
        length: u32,
    },
    /// A SLIT of more than [`MAX_DOMAINS`] rows.
    #[error("{localities} localities, expected at most {MAX_DOMAINS}")]
    TooManyLocalities {
        /// Rows.
        localities: u64,
    },
    /// A proximity domain of [`MAX_DOMAINS`] or more; Linux drops the whole SRAT for one.
    #[error("proximity domain {domain}, Linux takes those below {MAX_DOMAINS}")]
    DomainTooLarge {
        /// The domain.
        domain: u32,
    },
    /// More processors than [`MAX_PROCESSORS`].
    #[error("{processors} processors, expected at most {MAX_PROCESSORS}")]
    TooManyProcessors {
        /// Entries of processors.
        processors: usize,
    },
}
