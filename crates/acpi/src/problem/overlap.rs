//! Memory that belongs to two entries of a SRAT.

use thiserror::Error;

/// The kind of overlap of two ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverlapProblem {
    /// RAM that belongs to two domains; Linux then drops the whole SRAT.
    #[error(
        "memory at {base:#x} of domain {domain} overlaps that of domain {other_domain} at {other:#06x}"
    )]
    AcrossDomains { base: u64, domain: u32, other_domain: u32, other: usize },
    /// Hot-pluggable or non-volatile memory of two domains, as in QEMU when an NVDIMM is in the
    /// hot-plug range; Linux uses such a SRAT.
    #[error(
        "memory at {base:#x} of domain {domain}, absent at boot, overlaps that of domain {other_domain} at {other:#06x}"
    )]
    HotPlug { base: u64, domain: u32, other_domain: u32, other: usize },
    /// Memory that belongs to two entries of one domain.
    #[error("memory at {base:#x} of domain {domain} overlaps that at {other:#06x}")]
    WithinDomain { base: u64, domain: u32, other: usize },
}
