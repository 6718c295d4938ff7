//! The atomics: the processor's, or the model checker's under `cfg(loom)`.

#[cfg(not(loom))]
pub(crate) use core::hint::spin_loop;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::thread::yield_now as spin_loop;

/// The word that all metadata consists of: `core`'s, or the model checker's under `cfg(loom)`.
pub type Word = AtomicU64;

/// Converts a number stored in the metadata to an index.
#[expect(clippy::cast_possible_truncation, reason = "lib.rs refuses targets below 64 bits")]
#[inline(always)]
pub(crate) const fn index(number: u64) -> usize {
    number as usize
}

/// Converts a table index that `Machine::check` has bounded to a node or cpu number.
#[expect(clippy::cast_possible_truncation, reason = "MAX_NODES and MAX_CPUS are below 2^16")]
pub(crate) const fn low_u16(place: usize) -> u16 {
    place as u16
}

#[cfg(feature = "checked")]
pub(crate) const fn high_u32(word: u64) -> u32 {
    let [_, _, _, _, a, b, c, d] = word.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
