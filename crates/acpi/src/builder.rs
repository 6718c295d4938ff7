//! Writing tables into a caller's buffer.

use thiserror::Error;

use crate::entry::EntryHead;
use crate::header::{Header, checksum};
use crate::record::Record;
use crate::table::Format;

/// Why a table could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The buffer is too small; nothing of use is in it.
    #[error("buffer of {have} bytes, the table needs {needed}")]
    BufferTooSmall {
        /// Bytes of the table.
        needed: usize,
        /// Bytes of the buffer.
        have: usize,
    },
    /// An entry too long for its length field.
    #[error(
        "entry of type {kind:#04x} has {length} bytes, its length field holds at most {maximum}"
    )]
    EntryTooLong {
        /// Type field.
        kind: u16,
        /// Bytes of the entry.
        length: usize,
        /// What the length field holds.
        maximum: u32,
    },
    /// More list items than the count field holds, or a matrix that is not rows times columns.
    #[error("{items} items in a list, expected {expected}")]
    ListLength {
        /// Items given.
        items: usize,
        /// Items that fit the other lists, or that the count field holds.
        expected: usize,
    },
    /// A table of 4 GiB or more.
    #[error("table of {length} bytes, its length field holds 32 bits")]
    TableTooLong {
        /// Bytes of the table.
        length: usize,
    },
}

/// Appends to a buffer, and goes on counting after its end.
#[doc(hidden)]
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    used: usize,
    error: Option<BuildError>,
}

impl<'b> Writer<'b> {
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, used: 0, error: None }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.used.saturating_add(bytes.len());
        if let Some(room) = self.buffer.get_mut(self.used..end) {
            room.copy_from_slice(bytes);
        }
        self.used = end;
    }

    pub(crate) fn refuse(&mut self, error: BuildError) {
        self.error.get_or_insert(error);
    }

    /// Appends an entry head for `body` bytes to come.
    pub(crate) fn head(&mut self, head: EntryHead, kind: u16, body: usize) {
        let length = head.size().saturating_add(body);
        let Ok(length) = u32::try_from(length) else {
            return self.refuse(BuildError::EntryTooLong { kind, length, maximum: u32::MAX });
        };
        let [kind_low, kind_high] = kind.to_le_bytes();
        let [l0, l1, l2, l3] = length.to_le_bytes();
        match head {
            EntryHead::Byte => self.bytes(&[kind_low, l0]),
            EntryHead::Word => self.bytes(&[kind_low, 0, l0, l1]),
            EntryHead::Double => self.bytes(&[kind_low, kind_high, 0, 0, l0, l1, l2, l3]),
        }
        let maximum = head.max_length();
        if length > maximum {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            self.refuse(BuildError::EntryTooLong { kind, length, maximum });
        }
    }

    /// A count field for `items`; refuses what it cannot hold.
    pub(crate) fn count<T: TryFrom<usize> + Default>(&mut self, items: usize) -> T {
        T::try_from(items).unwrap_or_else(|_| {
            let expected = if size_of::<T>() == 2 { usize::from(u16::MAX) } else { usize::MAX };
            self.refuse(BuildError::ListLength { items, expected });
            T::default()
        })
    }

    /// Appends an entry of fixed size.
    pub(crate) fn entry<R: Record>(&mut self, head: EntryHead, kind: u16, body: &R) {
        self.head(head, kind, R::SIZE);
        body.write(self);
    }

    /// Fills in the length and the checksum.
    pub(crate) fn finish(self) -> Result<&'b [u8], BuildError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (needed, have) = (self.used, self.buffer.len());
        let length =
            u32::try_from(needed).map_err(|_| BuildError::TableTooLong { length: needed })?;
        let buffer: &'b mut [u8] = self.buffer;
        let table = buffer.get_mut(..needed).ok_or(BuildError::BufferTooSmall { needed, have })?;
        if let Some(field) = table.get_mut(4..8) {
            field.copy_from_slice(&length.to_le_bytes());
        }
        if let Some(byte) = table.get_mut(Header::CHECKSUM_OFFSET) {
            *byte = 0;
        }
        let sum = checksum(table);
        if let Some(byte) = table.get_mut(Header::CHECKSUM_OFFSET) {
            *byte = sum;
        }
        Ok(table)
    }
}

/// Writes one table, entry by entry.
///
/// Entries that do not fit are counted all the same, so building into an empty buffer gives the
/// length a table needs: see [`size_bytes`](Self::size_bytes).
///
/// ```
/// use numalab_acpi::{Builder, Header, Signature, Srat, srat};
///
/// let memory = srat::Entry::Memory(srat::MemoryAffinity {
///     length_bytes: 1 << 30,
///     flags: srat::MemoryFlags::ENABLED,
///     ..Default::default()
/// });
/// let mut measure = Builder::<srat::Layout>::new(&mut [], Header::new(Signature::SRAT, 3), srat::Fixed::new());
/// measure.push(&memory);
/// assert_eq!(measure.size_bytes(), 88);
///
/// let mut buffer = [0; 88];
/// let mut builder = Builder::<srat::Layout>::new(&mut buffer, Header::new(Signature::SRAT, 3), srat::Fixed::new());
/// builder.push(&memory);
/// let table = Srat::read(builder.finish()?)?;
/// assert_eq!(table.memory().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Builder<'b, F> {
    writer: Writer<'b>,
    format: core::marker::PhantomData<F>,
}

impl<'b, F: Format> Builder<'b, F> {
    /// Begins a table; of `header`, signature, length and checksum are set by the builder.
    #[must_use]
    pub fn new(buffer: &'b mut [u8], header: Header, fixed: F::Fixed) -> Self {
        let mut writer = Writer::new(buffer);
        Header { signature: F::SIGNATURE, ..header }.write(&mut writer);
        fixed.write(&mut writer);
        Self { writer, format: core::marker::PhantomData }
    }

    /// Appends an entry.
    pub fn push(&mut self, entry: &F::Entry<'_>) -> &mut Self {
        F::encode(entry, &mut self.writer);
        self
    }

    /// Bytes of the table so far, whether or not the buffer holds them.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.writer.used
    }

    /// Completes the table and gives its bytes.
    ///
    /// # Errors
    /// [`BuildError::BufferTooSmall`] with the length needed; the other errors if an entry could
    /// not be expressed.
    pub fn finish(self) -> Result<&'b [u8], BuildError> {
        self.writer.finish()
    }
}
