//! Tables that were made, and why they cannot be.

use alloc::vec::Vec;

use numalab_acpi::BuildError;

use crate::finding::Finding;

/// More domains than this would make a SLIT larger than firmware is.
pub(super) const MOST_DOMAINS: u32 = 4096;

/// The tables of one machine, complete with header and checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableBytes {
    /// Affinities.
    pub srat: Vec<u8>,
    /// Distances.
    pub slit: Vec<u8>,
    /// Latencies, bandwidths and memory-side caches, if the machine has any.
    pub hmat: Option<Vec<u8>>,
    /// Processors.
    pub madt: Vec<u8>,
    /// What was made up, what tables do not carry, and what is odd about them.
    pub findings: Vec<Finding>,
}

/// Why a machine has no tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A proximity domain is too large for a distance table.
    #[error("proximity domain {domain}: a SLIT of more than {MOST_DOMAINS} rows is not written")]
    DomainTooLarge {
        /// The domain.
        domain: u32,
    },
    /// No node has memory, without which a SRAT is not used.
    #[error("no memory is known of any node, and an SRAT without memory is not used")]
    NoMemory,
    /// The memory does not fit into 64 bits of addresses.
    #[error("{bytes} bytes of memory: expected a sum with addresses below 2^64")]
    MemoryTooLarge {
        /// Memory of all nodes.
        bytes: u64,
    },
    /// The tables were read back, and are not of this machine.
    #[error("the tables would not describe the machine: {0}")]
    Refused(Finding),
    /// A table could not be put together.
    #[error(transparent)]
    Build(#[from] BuildError),
}
