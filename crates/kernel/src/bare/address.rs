//! Addresses and counts as the language has them.

/// A count or an address; the kernel is for 64-bit machines only.
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits here")]
#[inline(always)]
pub const fn index(number: u64) -> usize {
    number as usize
}

/// The pointer to an address. Using it is what needs reasons.
#[inline(always)]
pub fn pointer<T>(address: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(index(address))
}
