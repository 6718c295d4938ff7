//! Tables made of a header, fixed fields and a run of entries: SRAT, HMAT, MADT and CEDT.

use crate::entry::{EntryHead, RawEntry, Walk};
use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::problem::{LimitProblem, MAX_TABLE_BYTES, Problem};
use crate::record::Record;
use crate::writer::Writer;

/// What one kind of table consists of.
pub trait Format: Copy {
    /// Signature in the header.
    const SIGNATURE: Signature;
    /// How its entries begin.
    const HEAD: EntryHead;
    /// Oldest and newest revision known.
    const REVISIONS: (u8, u8);
    /// Fields between the header and the first entry.
    type Fixed: Record;
    /// Typed entries.
    type Entry<'a>: Copy;

    /// Gives an entry its type; unknown and too short ones stay raw.
    #[doc(hidden)]
    fn decode(raw: RawEntry<'_>) -> Self::Entry<'_>;

    /// Appends an entry with its head.
    #[doc(hidden)]
    fn encode(entry: &Self::Entry<'_>, writer: &mut Writer<'_>);
}

/// A table as it lies in memory.
///
/// [`read`](Self::read) is tolerant: it refuses only what has no readable header and fixed fields.
/// [`entries`](Self::entries) then gives all that can be reached. [`check`](crate::check()) tells
/// what is odd, and [`AnyTable::read_strict`](crate::AnyTable::read_strict) refuses it.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a, F: Format> {
    header: Header,
    fixed: F::Fixed,
    bytes: &'a [u8],
    entries: &'a [u8],
    excess: usize,
}

/// An entry and its byte offset in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// From the start of the table.
    pub offset: usize,
    /// The entry.
    pub entry: T,
}

/// The typed entries of a table, in order.
#[derive(Clone, Debug)]
pub struct Entries<'a, F> {
    walk: Walk<'a>,
    format: core::marker::PhantomData<F>,
}

impl<'a, F: Format> Table<'a, F> {
    /// Bytes before the first entry.
    pub const ENTRIES_OFFSET: usize = Header::SIZE.saturating_add(F::Fixed::SIZE);

    /// Reads a table tolerantly; bytes past the header's length are left out.
    ///
    /// # Errors
    /// A [`Finding`] of [`Severity::Error`](crate::Severity::Error) if the signature is another,
    /// the header's length is too small for the fixed fields, or fewer bytes are given.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Finding> {
        let (header, bytes, excess) = read_header(bytes, F::SIGNATURE, Self::ENTRIES_OFFSET)?;
        let refuse = || refusal(F::SIGNATURE, 0, short(bytes.len(), Self::ENTRIES_OFFSET));
        let mut rest = bytes.get(Header::SIZE..).ok_or_else(refuse)?;
        let fixed = F::Fixed::read(&mut rest).ok_or_else(refuse)?;
        Ok(Self { header, fixed, bytes, entries: rest, excess })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The fields between the header and the first entry.
    #[must_use]
    pub fn fixed(&self) -> &F::Fixed {
        &self.fixed
    }

    /// The whole table.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All entries that can be reached, unknown ones raw.
    #[must_use]
    pub fn entries(&self) -> Entries<'a, F> {
        Entries { walk: self.walk(), format: core::marker::PhantomData }
    }

    /// Bytes given past the header's length.
    pub(crate) fn excess(&self) -> usize {
        self.excess
    }

    pub(crate) fn walk(&self) -> Walk<'a> {
        Walk::new(F::HEAD, self.entries, Self::ENTRIES_OFFSET)
    }
}

impl<'a, F: Format> Iterator for Entries<'a, F> {
    type Item = Located<F::Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, raw) = self.walk.next()?;
        Some(Located { offset, entry: F::decode(raw) })
    }
}

/// Reads a header, cuts `bytes` to the length it gives, and counts what was cut off.
pub(crate) fn read_header(
    bytes: &[u8],
    expected: Signature,
    minimum: usize,
) -> Result<(Header, &[u8], usize), Finding> {
    let header = Header::read(&mut &*bytes)
        .ok_or_else(|| refusal(expected, 0, short(bytes.len(), minimum)))?;
    let found = header.signature;
    if found != expected {
        return Err(refusal(expected, 0, Problem::SignatureMismatch { found, expected }));
    }
    let length = header.length;
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    if wanted < minimum {
        return Err(refusal(expected, 4, Problem::LengthInvalid { length, minimum }));
    }
    if length > MAX_TABLE_BYTES {
        return Err(refusal(expected, 4, LimitProblem::TableTooLarge { length }.into()));
    }
    let (table, excess) = bytes
        .split_at_checked(wanted)
        .ok_or_else(|| refusal(expected, 4, Problem::Truncated { length, have: bytes.len() }))?;
    Ok((header, table, excess.len()))
}

fn short(length: usize, minimum: usize) -> Problem {
    Problem::TooShort { length, minimum }
}

pub(crate) fn refusal(table: Signature, offset: usize, problem: Problem) -> Finding {
    Finding { table, offset, problem }
}
