//! Tables that consist of a header, fixed fields and a sequence of entries: SRAT, HMAT, MADT and
//! CEDT.

use crate::entry::{EntryHead, TypedEntry, Walk};
use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::problem::{LimitProblem, MAX_TABLE_BYTES, Problem};
use crate::record::Record;

/// The layout of one kind of table.
pub trait Format: Copy {
    /// Signature in the header.
    const SIGNATURE: Signature;
    /// Head of its entries.
    const HEAD: EntryHead;
    /// Oldest and newest revision known.
    const REVISIONS: (u8, u8);
    /// Fields between the header and the first entry.
    type Fixed: Record;
    /// Typed entries.
    type Entry<'a>: TypedEntry<'a>;
}

/// A table in memory.
///
/// [`read`](Self::read) is tolerant: it refuses only a table without a readable header and fixed
/// fields. [`entries`](Self::entries) then returns all entries that can be reached.
/// [`check`](crate::check()) reports findings, and
/// [`AnyTable::read_strict`](crate::AnyTable::read_strict) refuses a table that has any.
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
    /// Offset from the start of the table.
    pub offset: usize,
    /// The entry.
    pub entry: T,
}

/// Iterator over the typed entries of a table, in order.
#[derive(Clone, Debug)]
pub struct Entries<'a, F> {
    walk: Walk<'a>,
    format: core::marker::PhantomData<F>,
}

impl<'a, F: Format> Table<'a, F> {
    /// Offset of the first entry in bytes.
    pub const ENTRIES_OFFSET: usize = Header::SIZE.saturating_add(F::Fixed::SIZE);

    /// Reads a table tolerantly; bytes after the header's length are ignored.
    ///
    /// # Errors
    /// A [`Finding`] of [`Severity::Error`](crate::Severity::Error) if the signature differs, the
    /// header's length is too small for the fixed fields, or there are fewer bytes than it gives.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Finding> {
        let (header, bytes, excess) = read_header(bytes, F::SIGNATURE, Self::ENTRIES_OFFSET)?;
        let refuse = || refusal(F::SIGNATURE, 0, short(bytes.len(), Self::ENTRIES_OFFSET));
        let mut rest = bytes.get(Header::SIZE..).ok_or_else(refuse)?;
        let fixed = F::Fixed::read(&mut rest).ok_or_else(refuse)?;
        Ok(Self { header, fixed, bytes, entries: rest, excess })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the fields between the header and the first entry.
    pub fn fixed(&self) -> &F::Fixed {
        &self.fixed
    }

    /// Returns the whole table.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns all entries that can be reached, unknown ones as raw entries.
    pub fn entries(&self) -> Entries<'a, F> {
        Entries { walk: self.walk(), format: core::marker::PhantomData }
    }

    /// Returns the number of bytes beyond the length that the header gives.
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
        Some(Located { offset, entry: TypedEntry::decode(raw) })
    }
}

/// Reads a header, truncates `bytes` to the length it gives, and counts the bytes cut off.
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
