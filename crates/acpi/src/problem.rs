//! All problems of tables, with their facts.

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
    TooShort {
        /// Length of the input in bytes.
        length: usize,
        /// Size in bytes of the fixed part of this kind of table.
        minimum: usize,
    },
    /// Another table than the requested one.
    #[error("signature \"{found}\", expected \"{expected}\"")]
    SignatureMismatch {
        /// Signature in the header.
        found: Signature,
        /// Signature of the requested table.
        expected: Signature,
    },
    /// A table that this crate does not support.
    #[error("signature \"{found}\", expected SRAT, SLIT, HMAT, APIC or CEDT")]
    SignatureUnknown {
        /// Signature in the header.
        found: Signature,
    },
    /// The length in the header is too small even for the fixed fields.
    #[error("header gives a length of {length} bytes, expected at least {minimum}")]
    LengthInvalid {
        /// Length in the header.
        length: u32,
        /// Size in bytes of the fixed part of this kind of table.
        minimum: usize,
    },
    /// There are fewer bytes than the header gives.
    #[error("header gives a length of {length} bytes, but there are only {have}")]
    Truncated {
        /// Length in the header.
        length: u32,
        /// Length of the input in bytes.
        have: usize,
    },
    /// There are more bytes than the header gives; they are not read.
    #[error("{bytes} bytes follow the end of the table given by the header's length")]
    BytesAfterTable {
        /// Number of bytes left over.
        bytes: usize,
    },
    /// The table does not sum to zero.
    #[error("checksum {found:#04x}, expected {expected:#04x}")]
    ChecksumWrong {
        /// Checksum in the header.
        found: u8,
        /// Checksum that makes the table sum to zero.
        expected: u8,
    },
    /// A revision unknown to this crate; Linux ignores an HMAT of an unknown revision.
    #[error("revision {revision}, expected {oldest} to {newest}")]
    RevisionUnknown {
        /// Revision in the header.
        revision: u8,
        /// Oldest known revision.
        oldest: u8,
        /// Newest known revision.
        newest: u8,
    },
    /// The SRAT's "table revision" field, which is reserved for old systems, is not 1.
    #[error("reserved table revision {value}, expected 1")]
    TableRevisionNotOne {
        /// Value in the table.
        value: u32,
    },
    /// An entry shorter than its own head, so that the next one cannot be found.
    #[error(
        "entry of type {kind:#04x} gives a length of {length} bytes, expected at least {minimum}"
    )]
    EntryLengthInvalid {
        /// Type field.
        kind: u16,
        /// Length field.
        length: u32,
        /// Size of an entry head in bytes.
        minimum: usize,
    },
    /// An entry that extends past the end of the table.
    #[error("entry of type {kind:#04x} gives a length of {length} bytes, {remaining} remain")]
    EntryOverruns {
        /// Type field.
        kind: u16,
        /// Length field.
        length: u32,
        /// Bytes to the end of the table.
        remaining: usize,
    },
    /// At least an entry's length of zeros in place of an entry. Linux 6.1 mistakes them for a
    /// processor of length 0 and drops the whole SRAT; others stop there.
    #[error("{zeros} bytes of zeros in place of an entry, so the last {unread} bytes are not read")]
    ZeroFill {
        /// Number of bytes before the next non-zero byte.
        zeros: usize,
        /// Number of bytes before the end of the table.
        unread: usize,
    },
    /// The remaining bytes are too few for an entry head.
    #[error("{bytes} bytes remain, too few for an entry")]
    TrailingBytes {
        /// Number of bytes left over.
        bytes: usize,
    },
    /// An entry too short for its type; Linux then drops the whole SRAT.
    #[error("entry of type {kind:#04x} is {length} bytes, expected {expected}")]
    EntryTooShort {
        /// Type field.
        kind: u16,
        /// Size of the entry in bytes.
        length: usize,
        /// Size in bytes that its type and counts require.
        expected: usize,
    },
    /// An entry longer than its type; the excess is not read.
    #[error("entry of type {kind:#04x} is {length} bytes, expected {expected}")]
    EntryTooLong {
        /// Type field.
        kind: u16,
        /// Size of the entry in bytes.
        length: usize,
        /// Size in bytes that its type and counts require.
        expected: usize,
    },
    /// An entry of an unknown type; it is skipped, as the specification requires.
    #[error("entry of unknown type {kind:#04x}, skipped")]
    EntryUnknown {
        /// Type field.
        kind: u16,
    },
    /// An entry of a type that the specification reserves; it is skipped.
    #[error("entry of reserved type {kind:#04x}, skipped")]
    EntryReserved {
        /// Type field.
        kind: u16,
    },
    /// A reserved field is not zero; readers ignore such fields.
    #[error("{field} is {value:#x}, expected 0")]
    ReservedNotZero {
        /// The specification's name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// Flags that the specification does not define.
    #[error("{field} has undefined bits {undefined:#x} set, expected 0")]
    FlagsUndefined {
        /// The specification's name of the field.
        field: &'static str,
        /// The bits that should be 0.
        undefined: u64,
    },
    /// A field that must not be zero is zero.
    #[error("{field} is 0, expected a value other than 0")]
    FieldZero {
        /// The specification's name of the field.
        field: &'static str,
    },
    /// A field holds a value that the specification does not define.
    #[error("{field} is {value:#x}, expected at most {maximum:#x}")]
    FieldUndefined {
        /// The specification's name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
        /// Largest defined value.
        maximum: u64,
    },
    /// Two interrupt controllers of one kind that have the same id.
    #[error("entry of type {kind:#04x} repeats id {id}, first used at {first:#06x}")]
    IdRepeated {
        /// Type field.
        kind: u16,
        /// The id concerned.
        id: u32,
        /// Offset of the first entry that has it.
        first: usize,
    },
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
    HotPlugEmpty {
        /// First address.
        base: u64,
    },
    /// An enabled range of length 0.
    #[error("memory at {base:#x} has length 0")]
    MemoryEmpty {
        /// First address.
        base: u64,
    },
    /// A range that extends past 2^64.
    #[error("range at {base:#x} of {length:#x} bytes extends past 2^64")]
    RangeWraps {
        /// First address.
        base: u64,
        /// Length of the range in bytes.
        length: u64,
    },
    /// Memory that belongs to two entries.
    #[error(transparent)]
    Overlap(#[from] OverlapProblem),
    /// An enabled processor listed twice, in different domains.
    #[error("{processor} is in domain {domain}, and in domain {other_domain} at {other:#06x}")]
    ProcessorInTwoDomains {
        /// The processor concerned.
        processor: ProcessorId,
        /// Domain in this entry.
        domain: u32,
        /// Domain in the other entry.
        other_domain: u32,
        /// Offset of the other entry.
        other: usize,
    },
    /// An enabled processor listed twice in one domain, or both as local APIC and as x2APIC.
    #[error("{processor} is listed again, first at {other:#06x}")]
    ProcessorRepeated {
        /// The processor concerned.
        processor: ProcessorId,
        /// Offset of the other entry.
        other: usize,
    },
    /// Two enabled processors of a MADT of the same type with the same id.
    #[error("two enabled processors with {processor}, the other at {other:#06x}")]
    ProcessorIdShared {
        /// The id concerned.
        processor: ProcessorId,
        /// Offset of the other entry.
        other: usize,
    },
    /// An enabled processor with an id that means "none" or "all".
    #[error("enabled processor with the broadcast id: {processor}")]
    ProcessorIdBroadcast {
        /// The id concerned.
        processor: ProcessorId,
    },
    /// Both the enabled and the online capable flag are set.
    #[error("flags enabled and online capable are both set, expected at most one of them")]
    EnabledAndOnlineCapable,
    /// A matrix without rows.
    #[error("no localities, expected at least one")]
    NoLocalities,
    /// A matrix that does not fit into its table.
    #[error("{localities} localities need {expected} bytes, the table has {length}")]
    MatrixOverruns {
        /// Number of localities that the table gives.
        localities: u64,
        /// Size in bytes that the table would need; `u64::MAX` if it does not fit in 64 bits.
        expected: u64,
        /// Size of the table in bytes.
        length: usize,
    },
    /// A table larger than its matrix.
    #[error("{localities} localities need {expected} bytes, the table has {length}")]
    MatrixTooLong {
        /// Number of localities that the table gives.
        localities: u64,
        /// Size in bytes that the table needs.
        expected: u64,
        /// Size of the table in bytes.
        length: usize,
    },
    /// A locality's distance to itself is not 10; Linux then drops the whole SLIT.
    #[error("distance of {locality} to itself is {distance}, expected 10")]
    LocalDistanceNotTen {
        /// Row and column.
        locality: usize,
        /// Distance in the matrix.
        distance: u8,
    },
    /// A distance below 10; such values are reserved, and Linux then drops the whole SLIT.
    #[error("distance from {from} to {to} is {distance}, expected more than 10")]
    DistanceReserved {
        /// Row of the matrix.
        from: usize,
        /// Column of the matrix.
        to: usize,
        /// Distance in the matrix.
        distance: u8,
    },
    /// Another locality at the local distance; Linux then drops the whole SLIT.
    #[error(
        "distance from {from} to {to} is 10, the distance of a domain to itself, expected more"
    )]
    RemoteDistanceTen {
        /// Row of the matrix.
        from: usize,
        /// Column of the matrix.
        to: usize,
    },
    /// A distance that differs from that in the opposite direction.
    #[error("distance from {from} to {to} is {distance}, but {back} in the opposite direction")]
    DistanceAsymmetric {
        /// Row of the matrix.
        from: usize,
        /// Column of the matrix.
        to: usize,
        /// Distance in the matrix.
        distance: u8,
        /// Distance in the opposite cell.
        back: u8,
    },
    /// A latency or bandwidth beyond 32 bits; Linux treats it as unknown.
    #[error("value {value} times base unit {base_unit} exceeds 32 bits")]
    BaseUnitOverflow {
        /// Largest matrix entry.
        value: u16,
        /// Entry base unit.
        base_unit: u64,
    },
    /// A problem with a window for CXL memory.
    #[error(transparent)]
    Window(#[from] WindowProblem),
    /// A domain of the SRAT without a row in the SLIT.
    #[error("domain {domain} has no row in the SLIT, which has {localities} rows")]
    DomainWithoutSlitRow {
        /// The domain concerned.
        domain: u32,
        /// Number of rows of the SLIT.
        localities: usize,
    },
    /// A row of the SLIT for a domain that is not in the SRAT.
    #[error("row {locality} does not belong to a domain of the SRAT")]
    SlitRowWithoutDomain {
        /// Row of the matrix.
        locality: usize,
    },
    /// An enabled processor of the MADT that is not in the SRAT.
    #[error("{processor} has no entry in the SRAT")]
    ProcessorNotInSrat {
        /// The processor concerned.
        processor: ProcessorId,
    },
    /// An enabled processor of the SRAT that is not in the MADT.
    #[error("{processor} has no entry in the MADT")]
    ProcessorNotInMadt {
        /// The processor concerned.
        processor: ProcessorId,
    },
    /// A domain of the HMAT that is not in the SRAT.
    #[error("{role} domain {domain} is not in the SRAT")]
    HmatDomainNotInSrat {
        /// "initiator", "target" or "memory".
        role: &'static str,
        /// The domain concerned.
        domain: u32,
    },
}
