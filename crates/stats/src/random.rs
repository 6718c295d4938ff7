//! Seeded random numbers: the same seed always gives the same study, on every machine.

use std::num::{NonZeroU64, NonZeroUsize};

/// The generator xoshiro256++ (Blackman & Vigna, "Scrambled linear pseudorandom number
/// generators", ACM TOMS 47, 2021), seeded through SplitMix64 as its authors advise.
///
/// For resampling and for orders of treatments; not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates the generator of a seed; every seed is good, including 0.
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        let mut split_mix = || {
            counter = counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = counter;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Self { state: [split_mix(), split_mix(), split_mix(), split_mix()] }
    }

    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Returns a number below `bound`, with all equally likely (Lemire, "Fast random integer
    /// generation in an interval", ACM TOMACS 29, 2019).
    pub fn below(&mut self, bound: NonZeroU64) -> u64 {
        let bound = bound.get();
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let (high, low) = halves(product);
            if low >= threshold {
                return high;
            }
        }
    }

    /// Returns a number in [0, 1) with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts a slice in random order, with all orders equally likely (Fisher & Yates).
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for last in (1..slice.len()).rev() {
            let chosen = self.index(NonZeroUsize::MIN.saturating_add(last));
            slice.swap(last, chosen);
        }
    }

    /// Returns an index below `len`.
    #[expect(clippy::cast_possible_truncation, reason = "the result is below a usize")]
    pub(crate) fn index(&mut self, len: NonZeroUsize) -> usize {
        self.below(NonZeroU64::MIN.saturating_add(len.get() as u64 - 1)) as usize
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves are taken separately")]
fn halves(wide: u128) -> (u64, u64) {
    ((wide >> 64) as u64, wide as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_reference_implementation() {
        // xoshiro256++ from the state 1, 2, 3, 4, as the authors' C code gives it.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let stream: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(stream, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
        // SplitMix64 of seed 1234567 begins with this number.
        assert_eq!(Rng::new(1_234_567).state[0], 6_457_827_717_110_365_317);
    }

    #[test]
    fn each_number_below_a_bound_is_about_equally_likely() {
        let mut rng = Rng::new(7);
        let mut counts = [0_i32; 6];
        for _ in 0..60_000 {
            counts[rng.index(NonZeroUsize::new(6).unwrap())] += 1;
        }
        // Six standard deviations of a binomial with n = 60,000 and p = 1/6.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 550), "{counts:?}");
    }

    #[test]
    fn uniform_numbers_have_mean_one_half_and_stay_below_one() {
        let mut rng = Rng::new(0);
        let numbers: Vec<f64> = (0..10_000).map(|_| rng.uniform()).collect();
        assert!(numbers.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = numbers.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.015, "{mean}");
    }

    #[test]
    fn shuffling_keeps_every_element_and_reaches_every_order() {
        let mut rng = Rng::new(3);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut order = [1, 2, 3];
            rng.shuffle(&mut order);
            *seen.entry(order).or_insert(0_i32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (count - 1_000).abs() < 180), "{seen:?}");
        rng.shuffle::<u8>(&mut []);
    }
}
