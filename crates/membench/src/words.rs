//! The benchmark suite's chain: every word points to another, with eight words in each line.

use crate::chase::Walk;
use crate::cycle::CycleError;
use crate::cycle::mix;
use crate::line::Line;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// One cycle over all words of some memory, in uniformly random order.
///
/// A walk visits each line eight times, so small sizes look faster than on a [`crate::Chase`],
/// which visits a line once; it is for comparison with results of the benchmark suite. The order is
/// that of a Fisher-Yates shuffle, closed to a cycle: it is made in place by Sattolo's variant,
/// which draws from the same cycles without an array of indices that doubles the footprint, and
/// without the bias of a remainder.
#[derive(Debug)]
pub struct WordChain<'a> {
    memory: NonNull<Line>,
    words: usize,
    lines: PhantomData<&'a mut [Line]>,
}

// SAFETY: the memory is borrowed exclusively, as by `&mut [Line]`, which is Send.
unsafe impl Send for WordChain<'_> {}
// SAFETY: a shared chain only reads the memory.
unsafe impl Sync for WordChain<'_> {}

impl<'a> WordChain<'a> {
    /// Builds the chain over all words of `lines`. The same seed gives the same chain.
    ///
    /// # Errors
    /// [`CycleError::TooSmall`] without lines.
    pub fn shuffle(lines: &'a mut [Line], seed: u64) -> Result<WordChain<'a>, CycleError> {
        let pattern = crate::cycle::Pattern::Random;
        if lines.is_empty() {
            let needed_bytes = Line::SIZE_BYTES;
            return Err(CycleError::TooSmall { pattern, size_bytes: 0, needed_bytes });
        }
        let words = lines.len() * WORDS_PER_LINE;
        for word in 0..words {
            *word_of(lines, word) = word as u64;
        }
        let mut state = seed;
        for last in (1..words).rev() {
            let other = below(&mut state, last);
            let kept = *word_of(lines, other);
            *word_of(lines, other) = core::mem::replace(word_of(lines, last), kept);
        }
        let base = lines.as_ptr().addr() as u64;
        for word in 0..words {
            let next = word_of(lines, word);
            *next = base + *next * WORD_BYTES;
        }
        // Must come after the last use of `lines`: another use would invalidate the pointer.
        let memory = NonNull::from(lines).cast::<Line>();
        Ok(WordChain { memory, words, lines: PhantomData })
    }

    /// Returns the number of words on the cycle.
    pub fn nodes(&self) -> usize {
        self.words
    }

    /// Starts a walk from the first word.
    pub fn walk(&self) -> Walk<'_> {
        // SAFETY: every word of the memory contains the address of another one, and the walk
        // borrows the chain, which keeps the memory borrowed.
        unsafe { Walk::over(self.memory) }
    }
}

const WORDS_PER_LINE: usize = Line::SIZE_BYTES / 8;
const WORD_BYTES: u64 = 8;

fn word_of(lines: &mut [Line], word: usize) -> &mut u64 {
    &mut lines[word / WORDS_PER_LINE].words_mut()[word % WORDS_PER_LINE]
}

/// Returns a number below `bound`, with all equally likely (Lemire, "Fast random integer generation
/// in an interval", 2019).
fn below(state: &mut u64, bound: usize) -> usize {
    let bound = bound as u64;
    loop {
        *state = state.wrapping_add(1);
        let product = u128::from(mix(*state)) * u128::from(bound);
        #[expect(clippy::cast_possible_truncation, reason = "only the lower half is used")]
        let low = product as u64;
        if low >= bound.wrapping_neg() % bound {
            #[expect(clippy::cast_possible_truncation, reason = "below a usize")]
            return (product >> 64) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{vec, vec::Vec};

    fn order(lines: usize, seed: u64) -> Vec<usize> {
        let mut memory = vec![Line::ZERO; lines];
        let chain = WordChain::shuffle(&mut memory, seed).unwrap();
        let mut walk = chain.walk();
        (0..chain.nodes())
            .map(|_| {
                walk.loads(1);
                walk.offset_bytes() / 8
            })
            .collect()
    }

    #[test]
    fn a_walk_visits_every_word_once_and_comes_back() {
        for (lines, seed) in [(1, 0), (2, 7), (37, 1), (100, u64::MAX)] {
            let visited = order(lines, seed);
            assert_eq!(visited.last(), Some(&0), "it is back at the first word");
            let mut sorted = visited;
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..lines * 8));
        }
    }

    #[test]
    fn a_seed_decides_the_chain() {
        assert_eq!(order(16, 5), order(16, 5));
        assert_ne!(order(16, 5), order(16, 6));
    }

    #[test]
    fn all_cycles_of_few_words_are_equally_likely() {
        // The word after the first one, out of seven others, over many seeds: about 1,000 each.
        let mut counts = [0_u32; 8];
        for seed in 0..7_000 {
            counts[order(1, seed << 20)[0]] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn no_memory_is_an_error() {
        assert!(WordChain::shuffle(&mut [], 1).is_err());
    }
}
