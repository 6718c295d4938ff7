//! All problems of tables, with their facts.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

mod grading;
mod limit;
mod overlap;
mod window;

pub use limit::{LimitProblem, MAX_DOMAINS, MAX_PROCESSORS, MAX_TABLE_BYTES};
pub use overlap::OverlapProblem;
use thiserror::Error;
pub use window::WindowProblem;

use crate::header::Signature;
use crate::processor::ProcessorId;

/// One kind of problem; offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// Too few bytes for a header and the fixed fields.
    #[error("{length} bytes, expected at least {minimum}")]
    TooShort { length: usize, minimum: usize },
    /// Another table than the requested one.
    #[error("signature \"{found}\", expected \"{expected}\"")]
    SignatureMismatch { found: Signature, expected: Signature },
    /// A table that this crate does not support.
    #[error("signature \"{found}\", expected {}", Signature::choice())]
    SignatureUnknown { found: Signature },
    /// The length in the header is too small even for the fixed fields.
    #[error("header gives a length of {length} bytes, expected at least {minimum}")]
    LengthInvalid { length: u32, minimum: usize },
    /// There are fewer bytes than the header gives.
    #[error("header gives a length of {length} bytes, but there are only {have}")]
    Truncated { length: u32, have: usize },
    /// There are more bytes than the header gives; they are not read.
    #[error("{bytes} bytes follow the end of the table given by the header's length")]
    BytesAfterTable { bytes: usize },
    /// The table does not sum to zero.
    #[error("checksum {found:#04x}, expected {expected:#04x}")]
    ChecksumWrong { found: u8, expected: u8 },
    /// A revision unknown to this crate; Linux ignores an HMAT of an unknown revision.
    #[error("revision {revision}, expected {oldest} to {newest}")]
    RevisionUnknown { revision: u8, oldest: u8, newest: u8 },
    /// The SRAT's "table revision" field, which is reserved for old systems, is not 1.
    #[error("reserved table revision {value}, expected 1")]
    TableRevisionNotOne { value: u32 },
    /// An entry shorter than its own head, so that the next one cannot be found.
    #[error(
        "entry of type {kind:#04x} gives a length of {length} bytes, expected at least {minimum}"
    )]
    EntryLengthInvalid { kind: u16, length: u32, minimum: usize },
    /// An entry that extends past the end of the table.
    #[error("entry of type {kind:#04x} gives a length of {length} bytes, {remaining} remain")]
    EntryOverruns { kind: u16, length: u32, remaining: usize },
    /// At least an entry's length of zeros in place of an entry. Linux 6.1 mistakes them for a
    /// processor of length 0 and drops the whole SRAT; others stop there.
    #[error("{zeros} bytes of zeros in place of an entry, so the last {unread} bytes are not read")]
    ZeroFill {
        /// Number of bytes before the next non-zero byte.
        zeros: usize,
        unread: usize,
    },
    /// The remaining bytes are too few for an entry head.
    #[error("{bytes} bytes remain, too few for an entry")]
    TrailingBytes { bytes: usize },
    /// An entry too short for its type; Linux then drops the whole SRAT.
    #[error("entry of type {kind:#04x} is {length} bytes, expected {expected}")]
    EntryTooShort { kind: u16, length: usize, expected: usize },
    /// An entry longer than its type; the excess is not read.
    #[error("entry of type {kind:#04x} is {length} bytes, expected {expected}")]
    EntryTooLong { kind: u16, length: usize, expected: usize },
    /// An entry of an unknown type; it is skipped, as the specification requires.
    #[error("entry of unknown type {kind:#04x}, skipped")]
    EntryUnknown { kind: u16 },
    /// An entry of a type that the specification reserves; it is skipped.
    #[error("entry of reserved type {kind:#04x}, skipped")]
    EntryReserved { kind: u16 },
    /// A reserved field is not zero; readers ignore such fields.
    #[error("{field} is {value:#x}, expected 0")]
    ReservedNotZero { field: &'static str, value: u64 },
    /// Flags that the specification does not define.
    #[error("{field} has undefined bits {undefined:#x} set, expected 0")]
    FlagsUndefined {
        field: &'static str,
        /// The bits that should be 0.
        undefined: u64,
    },
    /// A field that must not be zero is zero.
    #[error("{field} is 0, expected a value other than 0")]
    FieldZero { field: &'static str },
    /// A field holds a value that the specification does not define.
    #[error("{field} is {value:#x}, expected at most {maximum:#x}")]
    FieldUndefined { field: &'static str, value: u64, maximum: u64 },
    /// Two interrupt controllers of one kind that have the same id.
    #[error("entry of type {kind:#04x} repeats id {id}, first used at {first:#06x}")]
    IdRepeated { kind: u16, id: u32, first: usize },
    /// Revision 1 proximity domains have 8 bits, but the other three bytes are not zero.
    #[error("domain {raw:#x} in a revision 1 table, read as {domain}")]
    DomainBitsIgnored {
        /// The domain with all 32 bits.
        raw: u32,
        /// The domain as read, with 8 bits.
        domain: u32,
    },
    /// A quantity beyond the limits of any system.
    #[error(transparent)]
    Limit(#[from] LimitProblem),
    /// There is no enabled memory; Linux does not use such a SRAT.
    #[error("no enabled memory, expected at least one range")]
    NoMemory,
    /// An enabled hot-plug range of length 0 (as on Grace).
    #[error("hot-pluggable memory at {base:#x} has length 0")]
    HotPlugEmpty { base: u64 },
    /// An enabled range of length 0.
    #[error("memory at {base:#x} has length 0")]
    MemoryEmpty { base: u64 },
    /// A range that extends past 2^64.
    #[error("range at {base:#x} of {length:#x} bytes extends past 2^64")]
    RangeWraps { base: u64, length: u64 },
    /// Memory that belongs to two entries.
    #[error(transparent)]
    Overlap(#[from] OverlapProblem),
    /// An enabled processor listed twice, in different domains.
    #[error("{processor} is in domain {domain}, and in domain {other_domain} at {other:#06x}")]
    ProcessorInTwoDomains { processor: ProcessorId, domain: u32, other_domain: u32, other: usize },
    /// An enabled processor listed twice in one domain, or both as local APIC and as x2APIC.
    #[error("{processor} is listed again, first at {other:#06x}")]
    ProcessorRepeated { processor: ProcessorId, other: usize },
    /// Two enabled processors of a MADT of the same type with the same id.
    #[error("two enabled processors with {processor}, the other at {other:#06x}")]
    ProcessorIdShared { processor: ProcessorId, other: usize },
    /// An enabled processor with an id that means "none" or "all".
    #[error("enabled processor with the broadcast id: {processor}")]
    ProcessorIdBroadcast { processor: ProcessorId },
    /// Both the enabled and the online capable flag are set.
    #[error("flags enabled and online capable are both set, expected at most one of them")]
    EnabledAndOnlineCapable,
    /// A matrix without rows.
    #[error("no localities, expected at least one")]
    NoLocalities,
    /// A matrix that does not fit into its table.
    #[error("{localities} localities need {expected} bytes, the table has {length}")]
    MatrixOverruns {
        localities: u64,
        /// Size in bytes that the table would need; `u64::MAX` if it does not fit in 64 bits.
        expected: u64,
        length: usize,
    },
    /// A table larger than its matrix.
    #[error("{localities} localities need {expected} bytes, the table has {length}")]
    MatrixTooLong { localities: u64, expected: u64, length: usize },
    /// A locality's distance to itself is not 10; Linux then drops the whole SLIT.
    #[error("distance of {locality} to itself is {distance}, expected 10")]
    LocalDistanceNotTen { locality: usize, distance: u8 },
    /// A distance below 10; such values are reserved, and Linux then drops the whole SLIT.
    #[error("distance from {from} to {to} is {distance}, expected more than 10")]
    DistanceReserved { from: usize, to: usize, distance: u8 },
    /// Another locality at the local distance; Linux then drops the whole SLIT.
    #[error(
        "distance from {from} to {to} is 10, the distance of a domain to itself, expected more"
    )]
    RemoteDistanceTen { from: usize, to: usize },
    /// A distance that differs from that in the opposite direction.
    #[error("distance from {from} to {to} is {distance}, but {back} in the opposite direction")]
    DistanceAsymmetric {
        from: usize,
        to: usize,
        distance: u8,
        /// Distance in the opposite cell.
        back: u8,
    },
    /// A latency or bandwidth beyond 32 bits; Linux treats it as unknown.
    #[error("value {value} times base unit {base_unit} exceeds 32 bits")]
    BaseUnitOverflow { value: u16, base_unit: u64 },
    /// A problem with a window for CXL memory.
    #[error(transparent)]
    Window(#[from] WindowProblem),
    /// A domain of the SRAT without a row in the SLIT.
    #[error("domain {domain} has no row in the SLIT, which has {localities} rows")]
    DomainWithoutSlitRow { domain: u32, localities: usize },
    /// A row of the SLIT for a domain that is not in the SRAT.
    #[error("row {locality} does not belong to a domain of the SRAT")]
    SlitRowWithoutDomain { locality: usize },
    /// An enabled processor of the MADT that is not in the SRAT.
    #[error("{processor} has no entry in the SRAT")]
    ProcessorNotInSrat { processor: ProcessorId },
    /// An enabled processor of the SRAT that is not in the MADT.
    #[error("{processor} has no entry in the MADT")]
    ProcessorNotInMadt { processor: ProcessorId },
    /// A domain of the HMAT that is not in the SRAT.
    #[error("{role} domain {domain} is not in the SRAT")]
    HmatDomainNotInSrat {
        /// "initiator", "target" or "memory".
        role: &'static str,
        domain: u32,
    },
}
