//! The bytes of a table on their way into a caller's buffer.

use thiserror::Error;

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

    /// A count field for `items`; refuses what it cannot hold.
    pub(crate) fn count<T: TryFrom<usize> + Default>(&mut self, items: usize) -> T {
        T::try_from(items).unwrap_or_else(|_| {
            let expected = if size_of::<T>() == 2 { usize::from(u16::MAX) } else { usize::MAX };
            self.refuse(BuildError::ListLength { items, expected });
            T::default()
        })
    }
}
