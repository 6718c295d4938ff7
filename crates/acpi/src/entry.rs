//! Iteration over the variable-length entries that follow a table's fixed part.

use core::fmt;

use crate::problem::Problem;
use crate::record::Record;
use crate::writer::{BuildError, Writer};

/// The head of an entry: the widths of its type and length fields differ between tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryHead {
    /// Type u8, length u8 (SRAT, MADT).
    Byte,
    /// Type u8, reserved u8, length u16 (CEDT).
    Word,
    /// Type u16, reserved u16, length u32 (HMAT).
    Double,
}

impl EntryHead {
    /// Returns the size of the head in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Byte => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }

    /// Returns the largest entry length that the length field can hold.
    pub const fn max_length(self) -> u32 {
        match self {
            Self::Byte => u8::MAX as u32,
            Self::Word => u16::MAX as u32,
            Self::Double => u32::MAX,
        }
    }

    /// Appends a head for a body of `body` bytes.
    pub(crate) fn write(self, writer: &mut Writer<'_>, kind: u16, body: usize) {
        let length = self.size().saturating_add(body);
        let Ok(length) = u32::try_from(length) else {
            return writer.refuse(BuildError::EntryTooLong { kind, length, maximum: u32::MAX });
        };
        let [kind_low, kind_high] = kind.to_le_bytes();
        let [l0, l1, l2, l3] = length.to_le_bytes();
        match self {
            Self::Byte => writer.bytes(&[kind_low, l0]),
            Self::Word => writer.bytes(&[kind_low, 0, l0, l1]),
            Self::Double => writer.bytes(&[kind_low, kind_high, 0, 0, l0, l1, l2, l3]),
        }
        let maximum = self.max_length();
        if length > maximum {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            writer.refuse(BuildError::EntryTooLong { kind, length, maximum });
        }
    }

    /// Appends an entry of fixed size.
    pub(crate) fn entry<R: Record>(self, writer: &mut Writer<'_>, kind: u16, body: &R) {
        self.write(writer, kind, R::SIZE);
        body.write(writer);
    }

    fn read(self, mut bytes: &[u8]) -> Option<(u16, u32)> {
        let bytes = &mut bytes;
        Some(match self {
            Self::Byte => {
                let [kind, length] = Record::read(bytes)?;
                (u16::from(kind), u32::from(length))
            }
            Self::Word => {
                let [kind, _reserved] = Record::read(bytes)?;
                (u16::from(kind), u32::from(u16::read(bytes)?))
            }
            Self::Double => {
                let (kind, _reserved) = (u16::read(bytes)?, u16::read(bytes)?);
                (kind, u32::read(bytes)?)
            }
        })
    }
}

/// One entry as stored in the table, head included.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawEntry<'a> {
    /// Type field.
    pub kind: u16,
    /// The whole entry, head included.
    pub bytes: &'a [u8],
}

impl fmt::Debug for RawEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawEntry({self})")
    }
}

impl fmt::Display for RawEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type {:#04x}, {} bytes:", self.kind, self.bytes.len())?;
        self.bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
    }
}

/// An entry of a table with its type.
pub trait TypedEntry<'a>: Copy + fmt::Display {
    /// Converts an entry to its type; unknown and too short ones stay raw.
    #[doc(hidden)]
    fn decode(raw: RawEntry<'a>) -> Self;

    /// Appends an entry with its head.
    #[doc(hidden)]
    fn encode(&self, writer: &mut Writer<'_>);
}

/// Implements [`TypedEntry`] for the `Entry` of a table: its types of
/// fixed size, then those of varying size.
macro_rules! entries {
    ($head:ident {
        $($kind:literal => $variant:ident,)*
        $(varying $other_kind:literal => $other:ident($type:ident),)*
    }) => {
        impl<'a> $crate::entry::TypedEntry<'a> for Entry<'a> {
            #[inline]
            fn decode(raw: RawEntry<'a>) -> Self {
                let typed = raw.bytes.get(EntryHead::$head.size()..).and_then(|body| {
                    let mut rest = body;
                    Some(match raw.kind {
                        $($kind => Self::$variant(Record::read(&mut rest)?),)*
                        $($other_kind => Self::$other($type::read(body)?),)*
                        _ => return None,
                    })
                });
                typed.unwrap_or(Self::Raw(raw))
            }

            fn encode(&self, writer: &mut Writer<'_>) {
                match self {
                    $(Self::$variant(body) => EntryHead::$head.entry(writer, $kind, body),)*
                    $(Self::$other(body) => body.write(writer),)*
                    Self::Raw(raw) => writer.bytes(raw.bytes),
                }
            }
        }
    };
}

/// Iterator over entries until the end or the first entry that cannot be skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    head: EntryHead,
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Walk<'a> {
    /// The number of zero bytes from which a zero length counts as padding, not as one wrong length
    /// field.
    const BLANK_ENTRY: usize = 16;

    pub(crate) fn new(head: EntryHead, rest: &'a [u8], offset: usize) -> Self {
        Self { head, rest, offset }
    }

    /// Returns the offset after the last entry read.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the reason why the walk stopped before the end of the table, if it did.
    pub(crate) fn obstacle(&self) -> Option<Problem> {
        let remaining = self.rest.len();
        if remaining == 0 || self.split().is_some() {
            return None;
        }
        // Real firmware leaves a blank entry, or a blank tail (Dell Precision Tower 5810).
        let zeros = self.rest.iter().take_while(|byte| **byte == 0).count();
        if zeros == remaining || zeros >= Self::BLANK_ENTRY {
            return Some(Problem::ZeroFill { zeros, unread: remaining });
        }
        let Some((kind, length)) = self.head.read(self.rest) else {
            return Some(Problem::TrailingBytes { bytes: remaining });
        };
        let minimum = self.head.size();
        Some(if usize::try_from(length).is_ok_and(|length| length < minimum) {
            Problem::EntryLengthInvalid { kind, length, minimum }
        } else {
            Problem::EntryOverruns { kind, length, remaining }
        })
    }

    fn split(&self) -> Option<(u16, &'a [u8], &'a [u8])> {
        let (kind, length) = self.head.read(self.rest)?;
        let length = usize::try_from(length).ok()?;
        if length < self.head.size() {
            return None;
        }
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        Some((kind, bytes, rest))
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (usize, RawEntry<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (kind, bytes, rest) = self.split()?;
        let offset = self.offset;
        self.rest = rest;
        self.offset = offset.saturating_add(bytes.len());
        Some((offset, RawEntry { kind, bytes }))
    }
}
