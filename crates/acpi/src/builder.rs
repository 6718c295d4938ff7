//! Writes tables into a caller's buffer.

use crate::entry::TypedEntry;
use crate::header::{Header, checksum};
use crate::record::Record;
use crate::table::Format;
use crate::writer::{BuildError, Writer};

/// Writes one table, entry by entry.
///
/// Entries that do not fit are still counted, so building into an empty buffer gives the length of
/// a table: see [`size_bytes`](Self::size_bytes).
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
    /// Begins a table; the builder replaces signature, length and checksum of `header`.
    pub fn new(buffer: &'b mut [u8], header: Header, fixed: F::Fixed) -> Self {
        let mut writer = Writer::new(buffer);
        Header { signature: F::SIGNATURE, ..header }.write(&mut writer);
        fixed.write(&mut writer);
        Self { writer, format: core::marker::PhantomData }
    }

    /// Appends an entry.
    pub fn push(&mut self, entry: &F::Entry<'_>) -> &mut Self {
        entry.encode(&mut self.writer);
        self
    }

    /// Returns the size of the table so far in bytes, even if the buffer is too small for it.
    pub fn size_bytes(&self) -> usize {
        self.writer.used
    }

    /// Completes the table and returns its bytes.
    ///
    /// # Errors
    /// [`BuildError::BufferTooSmall`] with the required length; the other errors if an entry cannot
    /// be encoded.
    pub fn finish(self) -> Result<&'b [u8], BuildError> {
        finish(self.writer)
    }
}

/// Fills in the length and the checksum.
pub(crate) fn finish<'b>(writer: Writer<'b>) -> Result<&'b [u8], BuildError> {
    if let Some(error) = writer.error {
        return Err(error);
    }
    let (needed, have) = (writer.used, writer.buffer.len());
    let length = u32::try_from(needed).map_err(|_| BuildError::TableTooLong { length: needed })?;
    let table =
        writer.buffer.get_mut(..needed).ok_or(BuildError::BufferTooSmall { needed, have })?;
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
