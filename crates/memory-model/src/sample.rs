//! Simulates a known share of the accesses: faster, for figures with error bars.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Picks one access in `every`, at random distances, for each vCPU.
#[derive(Debug)]
pub struct Sampler {
    every: u32,
    /// The generator's state in the upper bits, and the number of accesses to skip in the lower
    /// ones.
    vcpus: Vec<State>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct State {
    left: AtomicU64,
    random: AtomicU64,
}

impl Sampler {
    /// Creates a sampler of one access in `every`, on average; of all accesses for 1.
    pub fn new(vcpus: usize, every: u32) -> Self {
        let seeded = |vcpu: u64| State {
            left: AtomicU64::new(0),
            random: AtomicU64::new((vcpu + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        };
        Self { every, vcpus: (0..vcpus as u64).map(seeded).collect() }
    }

    /// Returns the number of accesses that a sampled one represents.
    pub fn weight(&self) -> u64 {
        u64::from(self.every)
    }

    /// Reports whether the vCPU's next access is not sampled.
    #[inline]
    pub fn skips(&self, vcpu: usize) -> bool {
        if self.every == 1 {
            return false;
        }
        let state = &self.vcpus[vcpu];
        let left = state.left.load(Relaxed);
        if left > 0 {
            state.left.store(left - 1, Relaxed);
            return true;
        }
        // Xorshift; distances of 1 to 2 * every - 1, with a mean of `every`.
        let mut random = state.random.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        state.random.store(random, Relaxed);
        state.left.store((random >> 32) % (2 * self.weight() - 1), Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_everything() {
        let sampler = Sampler::new(1, 1);
        assert!((0..100).all(|_| !sampler.skips(0)));
    }

    #[test]
    fn the_share_is_as_requested_for_programs_of_any_period() {
        for every in [2, 10, 64] {
            let sampler = Sampler::new(2, every);
            let accesses = 1_000_000;
            let mut of_even = 0_u64;
            let mut seen = 0_u64;
            for access in 0..accesses {
                if !sampler.skips(1) {
                    seen += 1;
                    of_even += u64::from(access % 2 == 0);
                }
            }
            let expected = accesses / u64::from(every);
            assert!(seen.abs_diff(expected) < expected / 20, "1 in {every}: {seen}");
            assert!((2 * of_even).abs_diff(seen) < seen / 20, "1 in {every}: {of_even} of {seen}");
        }
    }
}
