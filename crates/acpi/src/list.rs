//! Lists inside entries: read from a table's bytes, or borrowed from a caller that builds one.

use crate::record::Record;
use crate::writer::Writer;

/// An integer that can be an element of a list in a table.
pub trait Scalar: Record {}

impl Scalar for u16 {}
impl Scalar for u32 {}

/// A list of integers, from table bytes or from a slice.
#[derive(Clone, Copy, Debug)]
pub enum List<'a, T> {
    /// Little-endian bytes as stored in a table; an incomplete integer at the end is not counted.
    Bytes(&'a [u8]),
    /// Native integers, for building.
    Values(&'a [T]),
}

impl<'a, T: Scalar> List<'a, T> {
    /// Returns the number of integers.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len().checked_div(T::SIZE).unwrap_or(0),
            Self::Values(values) => values.len(),
        }
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the integer at `index`.
    pub fn get(&self, index: usize) -> Option<T> {
        match self {
            Self::Bytes(bytes) => T::read(&mut bytes.get(index.checked_mul(T::SIZE)?..)?),
            Self::Values(values) => values.get(index).copied(),
        }
    }

    /// Returns all integers in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + Clone + use<'a, T> {
        let (bytes, values): (&[u8], &[T]) = match self {
            Self::Bytes(bytes) => (bytes, &[]),
            Self::Values(values) => (&[], values),
        };
        let read = bytes.chunks_exact(T::SIZE).filter_map(|mut chunk| T::read(&mut chunk));
        read.chain(values.iter().copied())
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.len().saturating_mul(T::SIZE)
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Bytes(bytes) => writer.bytes(bytes.get(..self.size_bytes()).unwrap_or(bytes)),
            Self::Values(values) => values.iter().for_each(|value| value.write(writer)),
        }
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self::Values(&[])
    }
}

impl<T: Scalar + PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Scalar + Eq> Eq for List<'_, T> {}
