//! Reads at random addresses, and first touch: the access pattern of programs without locality.

use crate::line::Line;

/// A stream of random numbers: xorshift64* (Vigna, "An experimental exploration of Marsaglia's
/// xorshift generators, scrambled", 2016).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates one of the streams of random numbers of a seed.
    pub const fn new(seed: u64, stream: u64) -> Self {
        // SplitMix64's finaliser: neighbouring seeds give unrelated states, and never 0.
        let mut state =
            seed.wrapping_add(stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((state ^ (state >> 31)) | 1)
    }

    /// Returns the next number.
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        let mut state = self.0;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0 = state;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `limit`, uniform to one part in 2^32 for limits below 2^32 (Lemire's
    /// multiplication, without his correction).
    #[inline]
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.draw() as u128 * limit as u128) >> 64) as u64
    }
}

/// Reads words at random addresses and returns their sum. The reads do not wait for each other, and
/// they are the only memory accesses.
#[inline(never)]
pub fn random_reads(words: &[u64], reads: u64, mut random: Random) -> u64 {
    let mut sum = 0_u64;
    for _ in 0..reads {
        let place = random.below(words.len() as u64);
        if let Ok(place) = usize::try_from(place)
            && let Some(word) = words.get(place)
        {
            sum = sum.wrapping_add(*word);
        }
    }
    sum
}

/// Writes a word of every line.
#[inline(never)]
pub fn touch(lines: &mut [Line], word: u64) {
    for line in lines {
        line.words_mut()[0] = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn random_numbers_are_below_their_limit_evenly_and_repeat_with_their_seed() {
        let mut random = Random::new(1, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let take = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.draw(), random.draw()]
        };
        assert_eq!(take(1, 2), take(1, 2));
        assert_ne!(take(1, 2), take(1, 3));
        assert_ne!(take(1, 2), take(2, 2));
    }

    #[test]
    fn the_requested_number_of_words_is_read() {
        let mut lines = vec![Line::ZERO; 100];
        touch(&mut lines, 1);
        assert!(lines.iter().all(|line| line.words() == &[1, 0, 0, 0, 0, 0, 0, 0]));
        let words = vec![1; 777];
        assert_eq!(random_reads(&words, 12_345, Random::new(7, 7)), 12_345);
        assert_eq!(random_reads(&[], 5, Random::new(7, 7)), 0);
    }
}
