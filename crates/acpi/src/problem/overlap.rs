//! Memory that two entries of a SRAT claim.

use thiserror::Error;

/// How two ranges overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverlapProblem {
    /// RAM claimed by two domains; Linux drops the whole SRAT for it.
    #[error(
        "memory at {base:#x} of domain {domain} overlaps that of domain {other_domain} at {other:#06x}"
    )]
    AcrossDomains {
        /// First address.
        base: u64,
        /// Its domain.
        domain: u32,
        /// The other's domain.
        other_domain: u32,
        /// Offset of the other entry.
        other: usize,
    },
    /// Hot-pluggable or non-volatile memory of two domains, as QEMU has it where an NVDIMM lies
    /// in the range for hot-plug; Linux uses such a SRAT.
    #[error(
        "memory at {base:#x} of domain {domain}, absent at boot, overlaps that of domain {other_domain} at {other:#06x}"
    )]
    HotPlug {
        /// First address.
        base: u64,
        /// Its domain.
        domain: u32,
        /// The other's domain.
        other_domain: u32,
        /// Offset of the other entry.
        other: usize,
    },
    /// Memory claimed twice by one domain.
    #[error("memory at {base:#x} of domain {domain} overlaps that at {other:#06x}")]
    WithinDomain {
        /// First address.
        base: u64,
        /// Its domain.
        domain: u32,
        /// Offset of the other entry.
        other: usize,
    },
}
