//! Everything that can be wrong with a table, with the facts.

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
        /// Bytes given.
        length: usize,
        /// Bytes a table of this kind begins with.
        minimum: usize,
    },
    /// Another table than the one asked for.
    #[error("signature \"{found}\", expected \"{expected}\"")]
    SignatureMismatch {
        /// In the header.
        found: Signature,
        /// Of the table asked for.
        expected: Signature,
    },
    /// A table that this crate does not read.
    #[error("signature \"{found}\", expected SRAT, SLIT, HMAT, APIC or CEDT")]
    SignatureUnknown {
        /// In the header.
        found: Signature,
    },
    /// The header's length does not even cover the fixed fields.
    #[error("header gives a length of {length} bytes, expected at least {minimum}")]
    LengthInvalid {
        /// In the header.
        length: u32,
        /// Bytes a table of this kind begins with.
        minimum: usize,
    },
    /// Fewer bytes than the header promises.
    #[error("header gives a length of {length} bytes, only {have} are there")]
    Truncated {
        /// In the header.
        length: u32,
        /// Bytes given.
        have: usize,
    },
    /// More bytes than the header promises; they are not read.
    #[error("{bytes} bytes follow the length that the header gives")]
    BytesAfterTable {
        /// How many.
        bytes: usize,
    },
    /// The table does not sum to zero.
    #[error("checksum {found:#04x}, expected {expected:#04x}")]
    ChecksumWrong {
        /// In the header.
        found: u8,
        /// What makes the table sum to zero.
        expected: u8,
    },
    /// A revision that this crate does not know; Linux ignores an HMAT of such a one.
    #[error("revision {revision}, known are {oldest} to {newest}")]
    RevisionUnknown {
        /// In the header.
        revision: u8,
        /// First known.
        oldest: u8,
        /// Last known.
        newest: u8,
    },
    /// The SRAT's "table revision" field, reserved for old systems, is not 1.
    #[error("reserved table revision {value}, expected 1")]
    TableRevisionNotOne {
        /// In the table.
        value: u32,
    },
    /// An entry shorter than its own head: what follows cannot be found.
    #[error(
        "entry of type {kind:#04x} gives a length of {length} bytes, expected at least {minimum}"
    )]
    EntryLengthInvalid {
        /// Type field.
        kind: u16,
        /// Length field.
        length: u32,
        /// Bytes of an entry head.
        minimum: usize,
    },
    /// An entry that reaches past the end of the table.
    #[error("entry of type {kind:#04x} gives a length of {length} bytes, {remaining} remain")]
    EntryOverruns {
        /// Type field.
        kind: u16,
        /// Length field.
        length: u32,
        /// Bytes to the end of the table.
        remaining: usize,
    },
    /// Zeros for an entry's length or more where an entry should be; Linux 6.1 takes them for a
    /// processor of no length and drops the whole SRAT, others stop there.
    #[error(
        "{zeros} bytes of zeros where an entry should be, the last {unread} bytes are not read"
    )]
    ZeroFill {
        /// Bytes up to the next that is not zero.
        zeros: usize,
        /// Bytes up to the end of the table.
        unread: usize,
    },
    /// Too few bytes for an entry head remain.
    #[error("{bytes} bytes remain, too few for an entry")]
    TrailingBytes {
        /// How many.
        bytes: usize,
    },
    /// An entry too short for its type; Linux drops the whole SRAT for one.
    #[error("entry of type {kind:#04x} is {length} bytes, expected {expected}")]
    EntryTooShort {
        /// Type field.
        kind: u16,
        /// Bytes of the entry.
        length: usize,
        /// Bytes its type and counts call for.
        expected: usize,
    },
    /// An entry longer than its type; the excess is not read.
    #[error("entry of type {kind:#04x} is {length} bytes, expected {expected}")]
    EntryTooLong {
        /// Type field.
        kind: u16,
        /// Bytes of the entry.
        length: usize,
        /// Bytes its type and counts call for.
        expected: usize,
    },
    /// An entry of a type unknown here; skipped, as the specification asks.
    #[error("entry of unknown type {kind:#04x}, skipped")]
    EntryUnknown {
        /// Type field.
        kind: u16,
    },
    /// An entry of a type that the specification reserves; skipped.
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
        /// What it holds.
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
    /// A field that must not be zero is.
    #[error("{field} is 0, expected another value")]
    FieldZero {
        /// The specification's name of the field.
        field: &'static str,
    },
    /// A field holds a value that the specification does not define.
    #[error("{field} is {value:#x}, expected at most {maximum:#x}")]
    FieldUndefined {
        /// The specification's name of the field.
        field: &'static str,
        /// What it holds.
        value: u64,
        /// Greatest defined value.
        maximum: u64,
    },
    /// Two interrupt controllers of one kind with one id.
    #[error("entry of type {kind:#04x} repeats id {id}, first given at {first:#06x}")]
    IdRepeated {
        /// Type field.
        kind: u16,
        /// The id.
        id: u32,
        /// Offset of the first entry that has it.
        first: usize,
    },
    /// Revision 1 proximity domains have 8 bits; the other three bytes are not zero.
    #[error("domain {raw:#x} in a revision 1 table, read as {domain}")]
    DomainBitsIgnored {
        /// All 32 bits.
        raw: u32,
        /// The low 8.
        domain: u32,
    },
    /// More of something than any system has.
    #[error(transparent)]
    Limit(#[from] LimitProblem),
    /// No enabled memory; Linux does not use such a SRAT.
    #[error("no enabled memory, expected at least one range")]
    NoMemory,
    /// An enabled hot-plug range of no bytes (as on Grace).
    #[error("hot-pluggable memory at {base:#x} has no bytes")]
    HotPlugEmpty {
        /// First address.
        base: u64,
    },
    /// An enabled range of no bytes.
    #[error("memory at {base:#x} has no bytes")]
    MemoryEmpty {
        /// First address.
        base: u64,
    },
    /// A range that reaches past 2^64.
    #[error("range at {base:#x} of {length:#x} bytes reaches past 2^64")]
    RangeWraps {
        /// First address.
        base: u64,
        /// Bytes.
        length: u64,
    },
    /// Memory claimed twice.
    #[error(transparent)]
    Overlap(#[from] OverlapProblem),
    /// An enabled processor given twice, in different domains.
    #[error("{processor} is in domain {domain}, and in domain {other_domain} at {other:#06x}")]
    ProcessorInTwoDomains {
        /// Which one.
        processor: ProcessorId,
        /// Its domain.
        domain: u32,
        /// The other's domain.
        other_domain: u32,
        /// Offset of the other entry.
        other: usize,
    },
    /// An enabled processor given twice in one domain, or as local APIC and as x2APIC.
    #[error("{processor} is given again, first at {other:#06x}")]
    ProcessorRepeated {
        /// Which one.
        processor: ProcessorId,
        /// Offset of the other entry.
        other: usize,
    },
    /// Two enabled processors of a MADT, of one type, with one id.
    #[error("two enabled processors with {processor}, the other at {other:#06x}")]
    ProcessorIdShared {
        /// The id.
        processor: ProcessorId,
        /// Offset of the other entry.
        other: usize,
    },
    /// An enabled processor with the id that means "none" or "all".
    #[error("enabled processor with the broadcast {processor}")]
    ProcessorIdBroadcast {
        /// The id.
        processor: ProcessorId,
    },
    /// Both the enabled and the online capable flag.
    #[error("flags enabled and online capable together, expected one of them")]
    EnabledAndOnlineCapable,
    /// A matrix of no rows.
    #[error("no localities, expected at least one")]
    NoLocalities,
    /// A matrix that does not fit into its table.
    #[error("{localities} localities call for {expected} bytes, the table has {length}")]
    MatrixOverruns {
        /// Rows.
        localities: u64,
        /// Bytes that the table would need; `u64::MAX` if that is too small for them.
        expected: u64,
        /// Bytes of the table.
        length: usize,
    },
    /// More table than matrix.
    #[error("{localities} localities call for {expected} bytes, the table has {length}")]
    MatrixTooLong {
        /// Rows.
        localities: u64,
        /// Bytes that the table needs.
        expected: u64,
        /// Bytes of the table.
        length: usize,
    },
    /// A locality's distance to itself is not 10; Linux drops the whole SLIT for it.
    #[error("distance of {locality} to itself is {distance}, expected 10")]
    LocalDistanceNotTen {
        /// Row and column.
        locality: usize,
        /// In the matrix.
        distance: u8,
    },
    /// A distance below 10; such values are reserved, and Linux drops the whole SLIT for one.
    #[error("distance from {from} to {to} is {distance}, expected more than 10")]
    DistanceReserved {
        /// Row.
        from: usize,
        /// Column.
        to: usize,
        /// In the matrix.
        distance: u8,
    },
    /// Another locality as near as the own one; Linux drops the whole SLIT for it.
    #[error("distance from {from} to {to} is 10 as if they were one, expected more")]
    RemoteDistanceTen {
        /// Row.
        from: usize,
        /// Column.
        to: usize,
    },
    /// A distance that differs from the way back.
    #[error("distance from {from} to {to} is {distance}, back it is {back}")]
    DistanceAsymmetric {
        /// Row.
        from: usize,
        /// Column.
        to: usize,
        /// In the matrix.
        distance: u8,
        /// Of the opposite cell.
        back: u8,
    },
    /// A latency or bandwidth beyond 32 bits; Linux takes it as unknown.
    #[error("value {value} times base unit {base_unit} exceeds 32 bits")]
    BaseUnitOverflow {
        /// Greatest matrix entry.
        value: u16,
        /// Entry base unit.
        base_unit: u64,
    },
    /// A window for CXL memory.
    #[error(transparent)]
    Window(#[from] WindowProblem),
    /// A domain of the SRAT that the SLIT has no row for.
    #[error("domain {domain} has no row in the SLIT, which has {localities}")]
    DomainWithoutSlitRow {
        /// The domain.
        domain: u32,
        /// Rows of the SLIT.
        localities: usize,
    },
    /// A row of the SLIT for a domain that the SRAT does not have.
    #[error("row {locality} is of no domain of the SRAT")]
    SlitRowWithoutDomain {
        /// Row.
        locality: usize,
    },
    /// An enabled processor of the MADT without a place in the SRAT.
    #[error("{processor} has no entry in the SRAT")]
    ProcessorNotInSrat {
        /// Which one.
        processor: ProcessorId,
    },
    /// An enabled processor of the SRAT that the MADT does not have.
    #[error("{processor} has no entry in the MADT")]
    ProcessorNotInMadt {
        /// Which one.
        processor: ProcessorId,
    },
    /// A domain of the HMAT that the SRAT does not have.
    #[error("{role} domain {domain} is not in the SRAT")]
    HmatDomainNotInSrat {
        /// "initiator", "target" or "memory".
        role: &'static str,
        /// The domain.
        domain: u32,
    },
}
