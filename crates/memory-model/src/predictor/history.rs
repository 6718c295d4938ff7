//! The latest branches, folded for the tables of a predictor: all tables at once, each in 16 bits of
//! one number.

use super::{INDEX_BITS, LARGE_TABLE_BITS, TABLE_BITS, TABLES, TAG_BITS};

/// Branches of history by table, in a series that is nearly geometric. The longest of a TAGE are
/// hundreds (A. Seznec, "A 256 Kbits L-TAGE branch predictor", Journal of Instruction-Level
/// Parallelism 9, 2007: 640). A Zen 4 learns all 195,000 branches of a scan of text that consists
/// of six parts in random order, for which it has to distinguish about five parts: 200 branches.
const HISTORIES: [u32; TABLES] = [4, 9, 18, 36, 130, LONGEST];
const LONGEST: u32 = 400;
/// Words of 64 branches: a power of two, for more than the longest history.
const WORDS: usize = 8;
/// Bits for each table.
const LANE: u32 = 16;
/// One in each lane.
const ONES: u128 = each(1);

/// A number for each table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lanes(u128);

impl Lanes {
    /// Returns a table's number.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest lane after the shift")]
    pub fn of(self, table: usize) -> u16 {
        (self.0 >> (LANE * table as u32)) as u16
    }
}

/// Returns the same number for each table.
#[inline(always)]
const fn each(number: u16) -> u128 {
    let half = number as u64 * 0x0001_0001_0001_0001;
    (half as u128) << 64 | half as u128
}

/// The latest branches, up to the length of each table's history, folded to a width.
#[derive(Clone, Copy, Debug, Default)]
struct Folded<const WIDTH: u32>(u128);

impl<const WIDTH: u32> Folded<WIDTH> {
    /// The position of the oldest branch in each table's folded history.
    const OLDEST: u128 = {
        let (mut all, mut table, mut lane) = (0, 0, 0);
        while table < TABLES {
            all |= 1 << (HISTORIES[table] % WIDTH + lane);
            (table, lane) = (table + 1, lane + LANE);
        }
        all
    };

    /// Shifts a branch in, and removes the bits of the branches that leave the histories from their
    /// rotated positions.
    #[inline(always)]
    fn push(&mut self, taken: u128, leaves: u128) {
        let folded = (self.0 << 1 | taken) ^ leaves & Self::OLDEST;
        self.0 = (folded ^ folded >> WIDTH & ONES) & each((1 << WIDTH) - 1);
    }
}

/// The latest branches.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// A bit for each of the latest, at its number modulo their count.
    branches: [u64; WORDS],
    /// The number of the next branch.
    next: u32,
    /// Number of latest branches in a row that were taken.
    taken: u32,
    index: Folded<INDEX_BITS>,
    tags: (Folded<TAG_BITS>, Folded<{ TAG_BITS - 1 }>),
}

impl History {
    /// Returns the place of the branch at an address in each table.
    #[inline(always)]
    pub fn places(&self, address: u32) -> Lanes {
        let mixed = address ^ address >> (TABLE_BITS - 2);
        let [low, high, ..] = (mixed ^ mixed >> TABLE_BITS).to_le_bytes();
        let folded = self.index.0;
        let mixed = each(u16::from_le_bytes([low, high])) ^ folded ^ folded >> TABLE_BITS & ONES;
        // The largest tables have a bit more than the history is folded to.
        let more = (self.tags.1.0 & ONES) << INDEX_BITS;
        Lanes(mixed & each((1 << LARGE_TABLE_BITS) - 1) | more)
    }

    /// Returns the tag of the branch at an address in each table, which is never 0, that of an unused
    /// entry.
    #[inline(always)]
    pub fn tags(&self, address: u32) -> Lanes {
        let [low, high, ..] = address.to_le_bytes();
        let mixed = each(u16::from_le_bytes([low, high])) ^ self.tags.0.0 ^ self.tags.1.0 << 1;
        Lanes(mixed & each((1 << TAG_BITS) - 1) | each(1 << TAG_BITS))
    }

    /// Returns true if another taken branch changes nothing, because all the latest ones were
    /// taken.
    #[inline]
    pub fn is_all_taken(&self) -> bool {
        self.taken >= LONGEST
    }

    /// Adds a branch.
    #[inline(always)]
    pub fn push(&mut self, taken: bool) {
        let mut leaves = 0;
        for (at, length) in (0..).zip(HISTORIES) {
            let (word, bit) = place(self.next.wrapping_sub(length));
            leaves |= u128::from(self.branches[word] >> bit & 1) << (LANE * at);
        }
        // Fills all bits of a lane instead of its lowest.
        leaves = (leaves << LANE).wrapping_sub(leaves);
        let shifted = each(u16::from(taken));
        self.index.push(shifted, leaves);
        self.tags.0.push(shifted, leaves);
        self.tags.1.push(shifted, leaves);
        let (word, bit) = place(self.next);
        self.branches[word] = self.branches[word] & !(1 << bit) | u64::from(taken) << bit;
        self.next = self.next.wrapping_add(1);
        self.taken = if taken { self.taken.saturating_add(1) } else { 0 };
    }
}

/// Returns the word of the branch with this number, and its bit there.
#[inline(always)]
fn place(number: u32) -> (usize, u32) {
    ((number / u64::BITS) as usize % WORDS, number % u64::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds the latest branches, with the newest last, bit by bit.
    fn folded(branches: &[bool], length: u32, width: u32) -> u16 {
        let of = (0..length).zip(branches.iter().rev()).filter(|(_, taken)| **taken);
        of.fold(0, |all, (at, _)| all ^ 1 << (at % width))
    }

    #[test]
    fn each_table_has_the_branches_that_it_looks_back_at_folded_to_its_width() {
        let (mut history, mut random) = (History::default(), 7_u64);
        let mut branches = Vec::new();
        for _ in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            branches.push(random >> 40 & 3 > 0);
            history.push(random >> 40 & 3 > 0);
            for (table, length) in HISTORIES.into_iter().enumerate() {
                let of = |width| folded(&branches, length, width);
                let [index, tag, other] = [INDEX_BITS, TAG_BITS, TAG_BITS - 1].map(of);
                assert_eq!(Lanes(history.index.0).of(table), index);
                let tags = (history.tags.0.0, history.tags.1.0);
                assert_eq!([tags.0, tags.1].map(|of| Lanes(of).of(table)), [tag, other]);
            }
        }
        assert!(!history.is_all_taken());
        (0..LONGEST).for_each(|_| history.push(true));
        let of = |history: &History| {
            let (places, tags) = (history.places(0x1234), history.tags(0x1234));
            (0..TABLES).map(|table| (places.of(table), tags.of(table))).collect::<Vec<_>>()
        };
        let before = of(&history);
        history.push(true);
        assert_eq!(of(&history), before);
        assert!(history.is_all_taken());
    }
}
