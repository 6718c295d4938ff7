//! The memory that every loop works on: whole, aligned cache lines.

use core::slice;
use core::sync::atomic::AtomicU64;

/// 64 bytes of memory, aligned to 64: one cache line of most machines, or half of a line of 128
/// bytes.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line([u64; 8]);

impl Line {
    /// A line of zeros.
    pub const ZERO: Line = Line([0; 8]);
    /// The size of a line in bytes.
    pub const SIZE_BYTES: usize = size_of::<Line>();

    /// Views a mapping's bytes as lines.
    ///
    /// # Errors
    /// [`MemoryError::Misaligned`] unless the bytes start at a multiple of 64, and
    /// [`MemoryError::NotWholeLines`] unless their number is a multiple of 64.
    pub fn slice_from_bytes(bytes: &mut [u8]) -> Result<&mut [Line], MemoryError> {
        // SAFETY: the exclusive borrow of `bytes` becomes the exclusive borrow of the lines,
        // for the same memory and the same lifetime; every bit pattern is a `Line` and a byte.
        unsafe { Line::slice_from_raw(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Views raw memory as lines.
    ///
    /// # Errors
    /// [`MemoryError::Null`] if `start` is null; otherwise as [`Line::slice_from_bytes`].
    ///
    /// # Safety
    /// For the lifetime `'a`, `size_bytes` bytes from `start` must be mapped, readable, writable
    /// and initialised, and accessed only through the returned slice.
    pub unsafe fn slice_from_raw<'a>(
        start: *mut u8,
        size_bytes: usize,
    ) -> Result<&'a mut [Line], MemoryError> {
        if start.is_null() {
            return Err(MemoryError::Null);
        }
        if !start.addr().is_multiple_of(Line::SIZE_BYTES) {
            return Err(MemoryError::Misaligned { address: start.addr() });
        }
        if !size_bytes.is_multiple_of(Line::SIZE_BYTES) {
            return Err(MemoryError::NotWholeLines { size_bytes });
        }
        // SAFETY: 1. `start` is not null and aligned for `Line`, checked above.
        // 2. The caller guarantees `size_bytes` valid bytes, used only through this slice for `'a`.
        // 3. Every initialised bit pattern is a valid `Line`.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast(), size_bytes / Line::SIZE_BYTES) })
    }

    pub(crate) fn first_word(&self) -> u64 {
        self.0[0]
    }

    /// Returns the line's first word as an atomic, to be passed back and forth between two cpus.
    pub fn as_atomic(&mut self) -> &AtomicU64 {
        let first: *mut u64 = &raw mut self.0[0];
        // SAFETY: `first` is valid and 64-byte aligned; the exclusive borrow of the line, which
        // lasts until the end of the atomic, excludes any non-atomic access meanwhile.
        unsafe { AtomicU64::from_ptr(first) }
    }

    /// Returns the line's eight words.
    pub fn words(&self) -> &[u64; 8] {
        &self.0
    }

    /// Returns the line's eight words for writing.
    pub fn words_mut(&mut self) -> &mut [u64; 8] {
        &mut self.0
    }
}

/// Reasons why memory cannot be viewed as lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The address is null.
    #[error("memory at address 0; expected a mapping")]
    Null,
    /// The memory does not start at a line boundary.
    #[error("memory at {address:#x}; expected an address that is a multiple of 64")]
    Misaligned {
        /// The start address of the memory.
        address: usize,
    },
    /// The memory does not end at a line boundary.
    #[error("memory of {size_bytes} bytes; expected a multiple of 64")]
    NotWholeLines {
        /// The size given.
        size_bytes: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;
    use std::{vec, vec::Vec};

    fn bytes_of(lines: &mut Vec<Line>) -> (*mut u8, usize) {
        (lines.as_mut_ptr().cast(), lines.len() * Line::SIZE_BYTES)
    }

    #[test]
    fn aligned_bytes_become_lines() {
        let mut memory = vec![Line::ZERO; 3];
        let (start, size) = bytes_of(&mut memory);
        // SAFETY: `memory` outlives the slice and is not accessed otherwise.
        let bytes = unsafe { slice::from_raw_parts_mut(start, size) };
        bytes[64] = 7;
        let lines = Line::slice_from_bytes(bytes).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1].words()[0].to_le_bytes()[0], 7);
    }

    #[test]
    fn bytes_off_a_line_boundary_are_refused_with_their_address_or_size() {
        let mut memory = vec![Line::ZERO; 3];
        let (start, size) = bytes_of(&mut memory);
        // SAFETY: `memory` outlives the slice and is not accessed otherwise.
        let bytes = unsafe { slice::from_raw_parts_mut(start, size) };
        let address = start.addr() + 8;
        assert_eq!(
            Line::slice_from_bytes(&mut bytes[8..72]),
            Err(MemoryError::Misaligned { address })
        );
        assert_eq!(
            Line::slice_from_bytes(&mut bytes[..100]),
            Err(MemoryError::NotWholeLines { size_bytes: 100 })
        );
    }

    #[test]
    fn null_is_refused() {
        // SAFETY: the call refuses null, so nothing is accessed there.
        let refused = unsafe { Line::slice_from_raw(core::ptr::null_mut(), 64) };
        assert_eq!(refused, Err(MemoryError::Null));
    }

    #[test]
    fn the_atomic_is_the_first_word() {
        let mut line = Line::ZERO;
        line.as_atomic().store(5, Ordering::Relaxed);
        assert_eq!(line.words(), &[5, 0, 0, 0, 0, 0, 0, 0]);
    }
}
