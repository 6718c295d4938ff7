//! The arithmetic of one round: hashes added to halves, modulo their number of values.

/// Spreads every bit of `value` over the result (`SplitMix64`'s finaliser: Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

/// Adds a hash of each of `other` to each of `halves`.
#[inline(always)]
pub fn add_hash<const N: usize>(halves: &mut [u32; N], other: &[u32; N], key: u32, modulus: u32) {
    for (half, &other) in halves.iter_mut().zip(other) {
        *half = add(*half, hash(other, key, modulus), modulus);
    }
}

/// Undoes [`add_hash`].
#[inline(always)]
pub fn subtract_hash<const N: usize>(
    halves: &mut [u32; N],
    other: &[u32; N],
    key: u32,
    modulus: u32,
) {
    for (half, &other) in halves.iter_mut().zip(other) {
        *half = subtract(*half, hash(other, key, modulus), modulus);
    }
}

/// Returns a number below `bound` that depends on every bit of `half` and `key`: two odd
/// multipliers with a shift between them, then the top bits (Lemire, "Fast random integer
/// generation in an interval", 2019).
#[inline(always)]
fn hash(half: u32, key: u32, bound: u32) -> u32 {
    let value = (half ^ key).wrapping_mul(0x9E37_79B1);
    let value = (value ^ value >> 15).wrapping_mul(0x85EB_CA77);
    ((u64::from(value) * u64::from(bound)) >> 32) as u32
}

/// Returns `value + by` modulo `modulus`; both are below it, and it is at most 2^31. Branch-free:
/// the sum minus the modulus is huge if it would be negative.
#[inline(always)]
fn add(value: u32, by: u32, modulus: u32) -> u32 {
    let sum = value.wrapping_add(by);
    sum.min(sum.wrapping_sub(modulus))
}

/// Returns `value - by` modulo `modulus`, in the same way.
#[inline(always)]
fn subtract(value: u32, by: u32, modulus: u32) -> u32 {
    let difference = value.wrapping_sub(by);
    difference.min(difference.wrapping_add(modulus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_hash_is_below_its_bound(half: u32, key: u32, bound in 1_u32..1 << 31) {
            prop_assert!(hash(half, key, bound) < bound);
        }

        #[test]
        fn subtracting_undoes_adding(modulus in 1_u32..1 << 31, half: u32, other: u32, key: u32) {
            let half = half % modulus;
            let mut halves = [half];
            add_hash(&mut halves, &[other], key, modulus);
            prop_assert!(halves[0] < modulus);
            let expected = u64::from(half) + u64::from(hash(other, key, modulus));
            prop_assert_eq!(u64::from(halves[0]), expected % u64::from(modulus));
            subtract_hash(&mut halves, &[other], key, modulus);
            prop_assert_eq!(halves[0], half);
        }
    }
}
