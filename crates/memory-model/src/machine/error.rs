//! Faults in a machine's description.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use super::SCHEMA;
use crate::curve::CurveError;
use alloc::string::String;

/// Maximum number of lines in all caches: their model takes 8 bytes of the host's memory per line.
pub(super) const MOST_LINES: u64 = 1 << 27;
/// One kilobyte per second.
pub(super) const LEAST_MB_S: f64 = 1e-3;

/// A fault in a machine's description.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The JSON is malformed or has unexpected fields.
    #[error("{0}; expected a machine as in `{SCHEMA}`")]
    Json(#[from] serde_json::Error),
    /// The schema is another format or version.
    #[error("schema is `{found}`, expected `{SCHEMA}`")]
    Schema { found: String },
    /// A list or matrix has the wrong size.
    #[error("`{field}` has {found} entries, expected {expected}, one per {per}")]
    Length {
        field: &'static str,
        found: usize,
        expected: usize,
        /// The unit that has one entry each: `node`.
        per: &'static str,
    },
    /// There are too many nodes or vCPUs, or none.
    #[error("{found} {what}, expected 1 to {most}")]
    Count {
        /// `nodes` or `vCPUs`.
        what: &'static str,
        found: usize,
        most: usize,
    },
    /// The host's pages have a size that no processor supports.
    #[error("`tlb` host_page_bytes is {bytes}, expected 4096, 2097152 or 1073741824")]
    HostPages { bytes: u64 },
    /// A vCPU is on a node that does not exist.
    #[error("vCPU {vcpu} is on node position {node}, expected 0 to {last}")]
    NoSuchNode { vcpu: usize, node: usize, last: usize },
    /// A memory range ends before it begins, or overlaps another one.
    #[error("range {start:#x}-{end:#x} of node {id} {problem}")]
    Range { start: u64, end: u64, id: u32, problem: &'static str },
    /// A figure is negative or too large.
    #[error("`{field}` has {value}, expected 0 to {most}")]
    Figure { field: &'static str, value: f64, most: f64 },
    /// A bandwidth is too small to transfer anything in a reasonable time.
    #[error("`{field}` has {value} MB/s, expected {LEAST_MB_S} or more, or 0 for no limit")]
    Bandwidth { field: &'static str, value: f64 },
    /// Curves are invalid.
    #[error("`{field}` {error}")]
    Curve { field: &'static str, error: CurveError },
    /// A bandwidth is given together with curves, whose last points are bandwidths.
    #[error("`{bandwidth}` and `{load}` exclude each other")]
    BandwidthAndLoad { bandwidth: &'static str, load: &'static str },
    /// Transfers need private caches, which hold the lines, but no vCPU has one.
    #[error("`transfers` (stage owners) needs `caches` of scope `cpu`, which hold the lines")]
    NoOwnCaches,
    /// Two nodes have the same number.
    #[error("node {id} is listed twice")]
    NodeTwice { id: u32 },
    /// The caches do not fit into the host's memory.
    #[error("the caches have {lines} lines together, expected at most {MOST_LINES}")]
    Lines { lines: u64 },
    /// A cache has an impossible shape.
    #[error("cache level {level}: {problem}")]
    Cache { level: u8, problem: &'static str },
    /// A TLB's entries are not a whole number of sets.
    #[error("TLB level {level}: entries must be a whole number of sets of its ways")]
    TlbSets { level: u8 },
    /// A TLB holds pages of a size that does not exist.
    #[error("TLB level {level}: page size {bytes}, expected 4096, 2097152 or 1073741824")]
    Page { level: u8, bytes: u64 },
    /// Page tables are on a node that does not exist.
    #[error("`tlb` puts page tables on node position {node}, expected 0 to {last}")]
    NoNodeForTables { node: usize, last: usize },
}
