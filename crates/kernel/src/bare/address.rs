//! Addresses and counts as the language has them.

use alloc::vec::Vec;

/// A count or an address; the kernel is for 64-bit machines only.
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits here")]
#[inline(always)]
pub const fn index(number: u64) -> usize {
    number as usize
}

/// A cpu's, node's or piece's place as results have it; there are never as many as 2^32.
pub fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Places as results have them.
pub fn numbers(places: &[usize]) -> Vec<u32> {
    places.iter().copied().map(number).collect()
}

/// The pointer to an address. Using it is what needs reasons.
#[inline(always)]
pub fn pointer<T>(address: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(index(address))
}
