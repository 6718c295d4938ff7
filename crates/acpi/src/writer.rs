//! The writer of a table's bytes into a caller's buffer.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use thiserror::Error;

/// Reasons why a table cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The buffer is too small; its content is unspecified.
    #[error("buffer of {have} bytes, expected at least {needed}")]
    BufferTooSmall { needed: usize, have: usize },
    /// An entry too long for its length field.
    #[error(
        "entry of type {kind:#04x} has {length} bytes, but its length field holds at most {maximum}"
    )]
    EntryTooLong { kind: u16, length: usize, maximum: u32 },
    /// More list items than the count field can hold, or a matrix that is not rows times columns.
    #[error("{items} items in a list, expected {expected}")]
    ListLength { items: usize, expected: usize },
    /// A table of 4 GiB or more.
    #[error("table of {length} bytes, but its length field has 32 bits")]
    TableTooLong { length: usize },
}

/// Appends to a buffer, and continues to count after its end.
#[doc(hidden)]
#[derive(Debug)]
pub struct Writer<'b> {
    pub(crate) buffer: &'b mut [u8],
    pub(crate) used: usize,
    pub(crate) error: Option<BuildError>,
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

    /// Converts a number of items to a count field; records an error if it does not fit.
    pub(crate) fn count<T: TryFrom<usize> + Default>(&mut self, items: usize) -> T {
        T::try_from(items).unwrap_or_else(|_| {
            let expected = if size_of::<T>() == 2 { usize::from(u16::MAX) } else { usize::MAX };
            self.refuse(BuildError::ListLength { items, expected });
            T::default()
        })
    }
}
