//! The tables of a machine as bytes, and the errors of writing them.

use alloc::vec::Vec;

use numalab_acpi::BuildError;

use crate::finding::Finding;

/// The largest number of domains, beyond which a SLIT is larger than any firmware's.
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
    /// Notes on values that were invented, values that tables cannot represent, and unusual values.
    pub findings: Vec<Finding>,
}

/// Reasons why the tables of a machine cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A proximity domain is too large for a distance table.
    #[error("proximity domain {domain}: expected below {MOST_DOMAINS}, the most rows of a SLIT")]
    DomainTooLarge {
        /// The domain.
        domain: u32,
    },
    /// No node has memory, and systems ignore a SRAT without memory.
    #[error("no node has known memory: expected some, as systems ignore a SRAT without memory")]
    NoMemory,
    /// The memory does not fit into 64 bits of addresses.
    #[error("{bytes} bytes of memory: expected a sum with addresses below 2^64")]
    MemoryTooLarge {
        /// Memory of all nodes in bytes.
        bytes: u64,
    },
    /// The tables, when read back, do not describe the machine.
    #[error("the tables would not describe the machine: {0}")]
    Refused(Finding),
    /// A table could not be encoded.
    #[error(transparent)]
    Build(#[from] BuildError),
}
