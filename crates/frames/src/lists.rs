//! Blocks by number of free frames: bitmaps by fullness, with summaries.
//!
//! A leaf word covers a group of 64 blocks on one list; a summary word covers 64 groups. The eight
//! leaves of a group's partial lists share a cache line; the leaves of the wholly free blocks are
//! contiguous, so that runs of blocks are runs of bits.

use crate::bits::span;
use crate::block::List;
use crate::ids::CpuIndex;
use crate::sync::{Ordering, Word, index};

const FIRST_BLOCK: usize = 0;
const BLOCKS: usize = 1;
const FIRST_GROUP: usize = 2;
const SUMMARY: usize = 3;
const SUMMARY_WORDS: usize = 4;
const GIVEN: usize = 5;

/// The positions of a pool's blocks, groups and summaries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) first_block: usize,
    pub(crate) blocks: usize,
    first_group: usize,
    summary: usize,
    summary_words: usize,
}

impl Pool {
    /// Returns the pool that follows `self` in all tables.
    pub(crate) const fn next(&self, blocks: usize) -> Self {
        Self {
            first_block: self.first_block + self.blocks,
            blocks,
            first_group: self.first_group + self.blocks.div_ceil(64),
            summary: self.summary + self.summary_words * List::COUNT,
            summary_words: blocks.div_ceil(64).div_ceil(64),
        }
    }

    /// The position before the first pool.
    pub(crate) const NONE: Self =
        Self { first_block: 0, blocks: 0, first_group: 0, summary: 0, summary_words: 0 };

    pub(crate) fn write(&self, record: &[Word; 8]) {
        let fields = [
            (FIRST_BLOCK, self.first_block),
            (BLOCKS, self.blocks),
            (FIRST_GROUP, self.first_group),
            (SUMMARY, self.summary),
            (SUMMARY_WORDS, self.summary_words),
            (GIVEN, 0),
        ];
        for (field, value) in fields {
            record[field].store(value as u64, Ordering::Relaxed);
        }
    }

    /// Returns the word that counts the blocks assigned to regions so far; used while the tables
    /// are built.
    pub(crate) fn given(record: &[Word; 8]) -> &Word {
        &record[GIVEN]
    }

    /// Returns the block, relative to the pool's first, at which a cpu begins to look for free
    /// ones, so that cpus that share a pool work in different parts of it and on different cache
    /// lines. Multiples of the golden ratio are spread evenly over an interval, whatever their
    /// number (Knuth, TAOCP 3, 6.4).
    fn start(&self, cpu: CpuIndex) -> usize {
        const GOLDEN: u32 = 0x9e37_79b9;
        let part = u64::from(u32::from(cpu.0).wrapping_mul(GOLDEN));
        index((part * self.blocks as u64) >> 32)
    }

    #[inline(always)]
    pub(crate) fn read(record: &[Word; 8]) -> Self {
        let field = |at: usize| index(record[at].load(Ordering::Relaxed));
        Self {
            first_block: field(FIRST_BLOCK),
            blocks: field(BLOCKS),
            first_group: field(FIRST_GROUP),
            summary: field(SUMMARY),
            summary_words: field(SUMMARY_WORDS),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Lists<'m> {
    pub(crate) groups: &'m [[Word; 8]],
    pub(crate) whole: &'m [Word],
    pub(crate) summaries: &'m [Word],
}

impl Lists<'_> {
    #[inline(always)]
    fn leaf(&self, pool: &Pool, list: List, group: usize) -> &Word {
        if list == List::WHOLE {
            &self.whole[pool.first_group + group]
        } else {
            &self.groups[pool.first_group + group][list.at()]
        }
    }

    fn summary(&self, pool: &Pool, list: List) -> &[Word] {
        let start = pool.summary + list.at() * pool.summary_words;
        &self.summaries[start..start + pool.summary_words]
    }

    /// Puts a block on a list. For the ordering see `clear`.
    pub(crate) fn set(&self, pool: &Pool, list: List, block: usize) {
        let at = block - pool.first_block;
        let leaf = self.leaf(pool, list, at / 64);
        if leaf.fetch_or(1 << (at % 64), Ordering::AcqRel) == 0 {
            let summary = &self.summary(pool, list)[at / 4096];
            summary.fetch_or(1 << (at / 64 % 64), Ordering::AcqRel);
        }
    }

    /// Removes a block from a list. A summary bit is cleared first and its leaf read again
    /// afterwards: a `set` whose summary bit this erased had written its leaf before (`AcqRel` on
    /// the summary pairs with `AcqRel` in `set`), so the leaf shows it, and the bit is set again.
    pub(crate) fn clear(&self, pool: &Pool, list: List, block: usize) {
        let at = block - pool.first_block;
        let bit = 1 << (at % 64);
        let leaf = self.leaf(pool, list, at / 64);
        if leaf.fetch_and(!bit, Ordering::AcqRel) == bit {
            let summary = &self.summary(pool, list)[at / 4096];
            let group_bit = 1 << (at / 64 % 64);
            summary.fetch_and(!group_bit, Ordering::AcqRel);
            if leaf.load(Ordering::Acquire) != 0 {
                summary.fetch_or(group_bit, Ordering::AcqRel);
            }
        }
    }

    /// Passes the listed blocks to `each` until it returns a value: from the list `least` on, the
    /// fullest first, and within each list by address from the cpu's starting point round to it,
    /// according to the summaries. A block that is being moved may be missed: see [`Lists::every`].
    #[inline(never)]
    pub(crate) fn search(
        &self,
        pool: Pool,
        least: List,
        cpu: CpuIndex,
        each: &mut dyn FnMut(usize, List) -> Option<u64>,
    ) -> Option<u64> {
        let start = pool.start(cpu);
        for list in List::fullest_first().filter(|&list| list >= least) {
            for (from, to) in [(start, pool.blocks), (0, start)] {
                for group in bits(self.summary(&pool, list), from / 64, to.div_ceil(64)) {
                    let first = group * 64;
                    let here = span(from.saturating_sub(first) as u64, (to - first).min(64) as u64);
                    let leaf = self.leaf(&pool, list, group).load(Ordering::Acquire);
                    let mut blocks =
                        word_bits(leaf & here).map(|bit| pool.first_block + first + bit);
                    if let Some(found) = blocks.find_map(|block| each(block, list)) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// Returns the blocks on any list, by address, from the leaves alone.
    pub(crate) fn every(&self, pool: Pool) -> impl Iterator<Item = usize> + '_ {
        (0..pool.blocks.div_ceil(64)).flat_map(move |group| {
            let partial = &self.groups[pool.first_group + group];
            let listed = partial
                .iter()
                .chain([&self.whole[pool.first_group + group]])
                .fold(0, |listed, leaf| listed | leaf.load(Ordering::Acquire));
            word_bits(listed).map(move |bit| pool.first_block + group * 64 + bit)
        })
    }

    /// Returns the word of 64 blocks' bits on the list of the wholly free ones.
    pub(crate) fn whole_word(&self, pool: &Pool, group: u64) -> u64 {
        self.whole[pool.first_group + index(group)].load(Ordering::Acquire)
    }
}

/// Returns the numbers of the set bits of a bitmap from `from` up to, but not including, `to`.
fn bits(words: &[Word], from: usize, to: usize) -> impl Iterator<Item = usize> {
    (from / 64..to.div_ceil(64)).flat_map(move |place| {
        let start = place * 64;
        let here = span(from.saturating_sub(start) as u64, (to - start).min(64) as u64);
        word_bits(words[place].load(Ordering::Acquire) & here).map(move |bit| start + bit)
    })
}

/// Returns the numbers of the set bits of a word, lowest first.
fn word_bits(word: u64) -> impl Iterator<Item = usize> {
    let mut rest = word;
    core::iter::from_fn(move || {
        let bit = (rest != 0).then(|| index(u64::from(rest.trailing_zeros())))?;
        rest &= rest - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn cpus_of_a_pool_start_in_different_parts_of_it() {
        let pool = Pool::NONE.next(1 << 16);
        for cpus in [2, 3, 8, 64] {
            let mut starts: Vec<usize> = (0..cpus).map(|cpu| pool.start(CpuIndex(cpu))).collect();
            starts.sort_unstable();
            assert!(starts.iter().all(|&start| start < pool.blocks));
            starts.push(pool.blocks);
            let nearest = starts.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
            let even = pool.blocks / usize::from(cpus);
            assert!(nearest * 3 >= even, "{cpus} cpus: {nearest} blocks apart, {even} if even");
        }
        assert_eq!(Pool::NONE.next(1).start(CpuIndex(65_533)), 0);
    }

    #[test]
    fn a_cpu_visits_every_listed_block_once_beginning_at_its_start() {
        let words = |count| (0..count).map(|_| Word::new(0)).collect::<Vec<_>>();
        for blocks in [0, 1, 63, 64, 65, 200, 4096, 9000] {
            let pool = Pool::NONE.next(blocks);
            let groups: Vec<[Word; 8]> =
                (0..blocks.div_ceil(64)).map(|_| Default::default()).collect();
            let (whole, summaries) = (words(groups.len()), words(pool.summary_words * 9));
            let lists = Lists { groups: &groups, whole: &whole, summaries: &summaries };
            let listed: Vec<usize> = (0..blocks).filter(|block| block % 5 != 1).collect();
            listed.iter().for_each(|&block| lists.set(&pool, List::WHOLE, block));
            for cpu in [0, 1, 7, 65_533].map(CpuIndex) {
                let mut expected = listed.clone();
                expected.rotate_left(listed.partition_point(|&block| block < pool.start(cpu)));
                let mut met = Vec::new();
                let none = lists.search(pool, List::FULLEST, cpu, &mut |block, _| {
                    met.push(block);
                    None
                });
                assert_eq!(none, None);
                assert_eq!(met, expected, "{blocks} blocks, cpu {cpu:?}");
            }
        }
    }
}
