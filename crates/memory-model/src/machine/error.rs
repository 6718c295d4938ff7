//! What can be wrong with a machine's description.

use super::SCHEMA;
use crate::curve::CurveError;
use alloc::string::String;

/// Lines of all caches at most: their model takes 8 bytes of the host's memory for each.
pub(super) const MOST_LINES: u64 = 1 << 27;
/// A kilobyte a second.
pub(super) const LEAST_MB_S: f64 = 1e-3;

/// What is wrong with a machine's description.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Not the JSON that was expected.
    #[error("{0}; expected a machine as in `{SCHEMA}`")]
    Json(#[from] serde_json::Error),
    /// Another format or version.
    #[error("schema is `{found}`, expected `{SCHEMA}`")]
    Schema {
        /// What the file says.
        found: String,
    },
    /// A list or matrix of the wrong size.
    #[error("`{field}` has {found} entries, expected {expected}, one per {per}")]
    Length {
        /// The list, or the matrix' row.
        field: &'static str,
        /// Entries found.
        found: usize,
        /// Entries expected.
        expected: usize,
        /// What there is one of each.
        per: &'static str,
    },
    /// More than fits.
    #[error("{found} {what}, expected 1 to {most}")]
    Count {
        /// Nodes or vCPUs.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many may be.
        most: usize,
    },
    /// Pages that no processor has.
    #[error("`tlb` host_page_bytes is {bytes}, expected 4096, 2097152 or 1073741824")]
    HostPages {
        /// What was given.
        bytes: u64,
    },
    /// A vCPU on a node that is not there.
    #[error("vCPU {vcpu} is on node position {node}, expected 0 to {last}")]
    NoSuchNode {
        /// The vCPU.
        vcpu: usize,
        /// What it says.
        node: usize,
        /// The last position.
        last: usize,
    },
    /// Memory that ends before it begins, or belongs to two nodes.
    #[error("range {start:#x}-{end:#x} of node {id} {problem}")]
    Range {
        /// Its first byte.
        start: u64,
        /// The byte after its last.
        end: u64,
        /// The node's number.
        id: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// A negative or absurd figure.
    #[error("`{field}` has {value}, expected 0 to {most}")]
    Figure {
        /// Which figure.
        field: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        most: f64,
    },
    /// A bandwidth so small that nothing would ever pass.
    #[error("`{field}` has {value} MB/s, expected {LEAST_MB_S} or more, or 0 for no limit")]
    Bandwidth {
        /// Which figure.
        field: &'static str,
        /// What it is.
        value: f64,
    },
    /// Curves that cannot be.
    #[error("`{field}` {error}")]
    Curve {
        /// Which curves.
        field: &'static str,
        /// What is wrong with them.
        error: CurveError,
    },
    /// A bandwidth beside curves, whose last points are bandwidths.
    #[error("`{bandwidth}` and `{load}` exclude each other")]
    BandwidthAndLoad {
        /// The bandwidths.
        bandwidth: &'static str,
        /// The curves.
        load: &'static str,
    },
    /// Lines that nobody could own.
    #[error("`transfers` (stage owners) needs `caches` of scope `cpu`, which lines are in")]
    NoOwnCaches,
    /// A node's number that another one has.
    #[error("node {id} is there twice")]
    NodeTwice {
        /// The number.
        id: u32,
    },
    /// Caches that the host has no room for.
    #[error("the caches have {lines} lines together, expected at most {MOST_LINES}")]
    Lines {
        /// Of all vCPUs and groups.
        lines: u64,
    },
    /// A cache that cannot be built.
    #[error("cache level {level}: {problem}")]
    Cache {
        /// Which level.
        level: u8,
        /// What is wrong.
        problem: &'static str,
    },
    /// A TLB that cannot be built.
    #[error("TLB level {level}: entries must be a whole number of sets of its ways")]
    TlbSets {
        /// Which level.
        level: u8,
    },
    /// A size that no page has.
    #[error("TLB level {level}: a page of {bytes} bytes, expected 4096, 2097152 or 1073741824")]
    Page {
        /// Which level.
        level: u8,
        /// The size.
        bytes: u64,
    },
    /// Page tables on a node that is not there.
    #[error("`tlb` puts page tables on node position {node}, expected 0 to {last}")]
    NoNodeForTables {
        /// The node's position.
        node: usize,
        /// The last node's.
        last: usize,
    },
}
