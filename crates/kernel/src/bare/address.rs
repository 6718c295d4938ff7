//! Conversions between addresses, counts and the types of the language.

use alloc::vec::Vec;

/// Converts a count or an address to an index; the kernel is for 64-bit machines only.
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits here")]
#[inline(always)]
pub const fn index(number: u64) -> usize {
    number as usize
}

/// Converts the index of a cpu, node or piece to its type in results; there are never 2^32 of them.
pub fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Converts indices to their type in results.
pub fn numbers(places: &[usize]) -> Vec<u32> {
    places.iter().copied().map(number).collect()
}

/// Returns the pointer to an address. Only its use needs a justification.
#[inline(always)]
pub fn pointer<T>(address: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(index(address))
}
