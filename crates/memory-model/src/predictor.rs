//! Predicts branches.
//!
//! Directions are predicted by a small TAGE (A. Seznec and P. Michaud, "A case for (partially)
//! TAgged GEometric history length branch prediction", Journal of Instruction-Level Parallelism 8,
//! 2006): a table of counters by address, and tables by address and increasingly long histories,
//! with tagged entries; the table with the longest history that knows the branch decides. Indirect
//! branches are predicted to go to their last target, after the same history if that is known.
//! Returns count as predicted correctly, as by a return stack.

use alloc::boxed::Box;
use alloc::vec;

use crate::machine::Family;

/// Branches of history by table, in a geometric series.
const HISTORIES: [u32; TABLES] = [4, 9, 18, 36, 72, 126];
const TABLES: usize = 6;
/// A Zen 3 learnt about as many random branches that are repeated: most of 16,000, a third of 32,000.
const TABLE_BITS: u32 = 12;
/// Width to which histories are folded for an index: odd, so that of two branches in turn, one of
/// which is always taken, as in loops, the other one reaches all bits.
const INDEX_BITS: u32 = 13;
const TARGET_BITS: u32 = 11;
const TAG_BITS: u32 = 10;
const BASE_BITS: u32 = 13;
/// Tables with histories that distinguish cases of indirect branches; their number.
const TARGET_TABLES: usize = 2;
/// Mispredictions between two agings of entries.
const AGES: u32 = 1 << 10;

/// The learnt behaviour of a branch after a history.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u16,
    /// Predicts taken if it is 0 or more; -4 to 3.
    counter: i8,
    /// Number of times it was right and the next best was wrong; 0 to 3.
    useful: u8,
}

/// The latest branches, folded to the width of an index or a tag.
#[derive(Clone, Copy, Debug, Default)]
struct Folded(u32);

impl Folded {
    /// Shifts a branch in, and removes the bit of the branch that leaves the history from its
    /// rotated position.
    #[inline]
    fn push(&mut self, taken: u32, (leaves, place): (u32, u32), width: u32) {
        let folded = (self.0 << 1 | taken) ^ (leaves << place);
        self.0 = (folded ^ folded >> width) & ((1 << width) - 1);
    }
}

/// Widths to which a table's history is folded: for its index, and twice for tags.
const WIDTHS: [u32; 3] = [INDEX_BITS, TAG_BITS, TAG_BITS - 1];

/// A table of entries after histories of one length.
#[derive(Clone, Debug)]
struct Table {
    entries: Box<[Entry]>,
    folded: [Folded; WIDTHS.len()],
    /// The position of the oldest branch in each folded history.
    oldest: [u32; WIDTHS.len()],
    length: u32,
}

impl Table {
    fn new(length: u32) -> Self {
        let entries = vec![Entry::default(); 1 << TABLE_BITS].into_boxed_slice();
        let oldest = WIDTHS.map(|width| length % width);
        Self { entries, folded: Default::default(), oldest, length }
    }

    #[inline]
    fn place(&self, address: u32) -> usize {
        let mixed = address ^ address >> (TABLE_BITS - 2) ^ self.folded[0].0;
        ((mixed ^ mixed >> TABLE_BITS) & ((1 << TABLE_BITS) - 1)) as usize
    }

    #[inline]
    fn tag(&self, address: u32) -> u16 {
        let tag = (address ^ self.folded[1].0 ^ self.folded[2].0 << 1) & ((1 << TAG_BITS) - 1);
        // The added bit distinguishes tag 0 from an unused entry.
        u16::try_from(tag).unwrap_or(0) | 1 << TAG_BITS
    }

    #[inline]
    fn push(&mut self, history: u128, taken: u32) {
        let leaves = u32::from(history >> (self.length - 1) & 1 == 1);
        for (folded, (oldest, width)) in self.folded.iter_mut().zip(self.oldest.iter().zip(WIDTHS))
        {
            folded.push(taken, (leaves, *oldest), width);
        }
    }
}

/// The prediction of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prediction {
    /// Right, and at once.
    #[default]
    Known,
    /// Right, but only after a look at the branches before it, as it has had several targets.
    Late,
    /// Wrong.
    Wrong,
}

/// The last target of an indirect branch.
#[derive(Clone, Copy, Debug)]
struct Target {
    tag: u64,
    address: u64,
    /// True if it has had others.
    varies: bool,
}

/// A core's branch predictor.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// Counters from -2 to 1; 0 or more predicts taken.
    base: Box<[i8]>,
    tables: [Table; TABLES],
    history: u128,
    mispredictions: u32,
    /// Targets, by address, and by address and history.
    targets: [Box<[Target]>; 1 + TARGET_TABLES],
    /// Tables whose histories distinguish cases of indirect branches.
    target_tables: [usize; TARGET_TABLES],
}

impl Predictor {
    /// Creates an empty predictor. Zen 3 remembers targets by a short history: of random code of eight
    /// instructions, interpreted in a loop, it knew 64 but not 256.
    pub fn new(family: Option<Family>) -> Self {
        let none = Target { tag: u64::MAX, address: 0, varies: false };
        let targets = || vec![none; 1 << TARGET_BITS].into_boxed_slice();
        Self {
            target_tables: if family.is_some_and(Family::is_zen) { [1, 3] } else { [1, 4] },
            base: vec![0; 1 << BASE_BITS].into_boxed_slice(),
            tables: HISTORIES.map(Table::new),
            history: 0,
            mispredictions: 0,
            targets: [targets(), targets(), targets()],
        }
    }
}

/// Folds an address to fewer bits.
#[inline]
fn short(address: u64) -> u32 {
    u32::try_from((address ^ address >> 17) & u64::from(u32::MAX)).unwrap_or(0)
}

#[inline]
fn towards(counter: &mut i8, taken: bool, least: i8, most: i8) {
    *counter = if taken { (*counter + 1).min(most) } else { (*counter - 1).max(least) };
}

impl Predictor {
    /// Updates the prediction of the conditional branch at an address; returns whether it was
    /// wrong.
    #[inline]
    pub fn misses(&mut self, address: u64, taken: bool) -> bool {
        let address = short(address);
        let mut places = [0; TABLES];
        let (mut provider, mut next) = (None, None);
        for (at, table) in self.tables.iter().enumerate() {
            places[at] = table.place(address);
            if table.entries[places[at]].tag == table.tag(address) {
                (next, provider) = (provider, Some(at));
            }
        }
        let base = address as usize & ((1 << BASE_BITS) - 1);
        let of = |table: Option<usize>| match table {
            Some(at) => self.tables[at].entries[places[at]].counter >= 0,
            None => self.base[base] >= 0,
        };
        let (first, second) = (of(provider), of(next));
        // An entry that has not decided yet is less reliable than those of shorter histories.
        let is_new = provider.is_some_and(|at| {
            let entry = &self.tables[at].entries[places[at]];
            entry.useful == 0 && matches!(entry.counter, -1 | 0)
        });
        let wrong = taken != if is_new { second } else { first };
        match provider {
            Some(at) => {
                let entry = &mut self.tables[at].entries[places[at]];
                if first != second {
                    let useful = entry.useful + u8::from(first == taken) * 2;
                    entry.useful = useful.saturating_sub(1).min(3);
                }
                towards(&mut entry.counter, taken, -4, 3);
            }
            None => towards(&mut self.base[base], taken, -2, 1),
        }
        if wrong {
            self.allocate(provider.map_or(0, |at| at + 1), address, &places, taken);
        }
        self.push(taken);
        wrong
    }

    /// Allocates an entry with a longer history after a misprediction, which may distinguish the
    /// branch's cases.
    fn allocate(&mut self, from: usize, address: u32, places: &[usize; TABLES], taken: bool) {
        self.mispredictions += 1;
        if self.mispredictions.is_multiple_of(AGES) {
            let entries = self.tables.iter_mut().flat_map(|table| &mut table.entries);
            entries.for_each(|entry| entry.useful >>= 1);
        }
        let is_free = |at: &usize| self.tables[*at].entries[places[*at]].useful == 0;
        // Long histories are learnt slowly, so the next longer free table is taken; one time in four
        // the one after it.
        let skip = usize::from(self.mispredictions % 4 == 3);
        let free = (from..TABLES).filter(is_free).nth(skip);
        if let Some(at) = free.or_else(|| (from..TABLES).find(is_free)) {
            let table = &mut self.tables[at];
            let entry =
                Entry { tag: table.tag(address), counter: if taken { 0 } else { -1 }, useful: 0 };
            table.entries[places[at]] = entry;
            return;
        }
        for (table, place) in self.tables.iter_mut().zip(places).skip(from) {
            let entry = &mut table.entries[*place];
            entry.useful = entry.useful.saturating_sub(1);
        }
    }

    /// Updates the prediction of the indirect branch at an address; returns the one it had.
    #[inline]
    pub fn target(&mut self, address: u64, target: u64) -> Prediction {
        let short_address = short(address);
        let mask = (1 << TARGET_BITS) - 1;
        let mut places = [short_address as usize & mask; 1 + TARGET_TABLES];
        let mut tags = [address; 1 + TARGET_TABLES];
        for (at, table) in self.target_tables.into_iter().enumerate() {
            let table = &self.tables[table];
            places[at + 1] = table.place(short_address) & mask;
            tags[at + 1] = address ^ u64::from(table.tag(short_address)) << 48;
        }
        let known = (0..places.len()).rev().map(|at| (at, self.targets[at][places[at]]));
        let mut known = known.filter(|(at, known)| known.tag == tags[*at]);
        let wrong = known.next().is_none_or(|(_, known)| known.address != target);
        let last = self.targets[0][places[0]];
        let varies = last.tag == address && (last.varies || last.address != target);
        for at in 0..places.len() {
            self.targets[at][places[at]] = Target { tag: tags[at], address: target, varies };
        }
        (0..2).for_each(|bit| self.push((target >> 2 ^ target >> (5 + bit)) >> bit & 1 == 1));
        match (wrong, varies) {
            (true, _) => Prediction::Wrong,
            (false, true) => Prediction::Late,
            (false, false) => Prediction::Known,
        }
    }

    #[inline]
    fn push(&mut self, taken: bool) {
        let history = self.history;
        self.tables.iter_mut().for_each(|table| table.push(history, u32::from(taken)));
        self.history = history << 1 | u128::from(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mispredictions among the last thousand branches at an address.
    fn missed(direction: impl Fn(u64) -> bool) -> usize {
        let mut predictor = Predictor::new(None);
        let wrong: Vec<bool> =
            (0..20_000).map(|at| predictor.misses(0x40_1000, direction(at))).collect();
        wrong[19_000..].iter().filter(|wrong| **wrong).count()
    }

    fn random(at: u64) -> u64 {
        let mixed = (at ^ 0x1234_5678).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
    }

    #[test]
    fn repeating_branches_are_predicted_and_random_ones_half_the_time() {
        assert_eq!(missed(|_| true), 0);
        assert!(missed(|at| at % 7 < 3) < 5);
        assert!(missed(|at| at % 60 == 0) < 8, "a loop of sixty rounds");
        assert!((400..600).contains(&missed(|at| random(at).is_multiple_of(2))));
        assert!((50..130).contains(&missed(|at| random(at).is_multiple_of(16))), "rare ones");
    }

    #[test]
    fn thousands_of_random_branches_are_learnt_when_they_are_repeated() {
        let missed = |count: u64, rounds| {
            let mut predictor = Predictor::new(None);
            let mut round = || {
                let wrong = (0..count).filter(|at| {
                    let wrong = predictor.misses(0x1000, random(*at).is_multiple_of(2));
                    predictor.misses(0x1010, true);
                    wrong
                });
                100 * wrong.count() as u64 / count
            };
            (0..rounds).map(|_| round()).last().unwrap()
        };
        let (few, many) = (missed(8_000, 12), missed(60_000, 4));
        assert!(few < 8 && many > 40, "{few} % and {many} %");
    }

    #[test]
    fn a_branch_correlated_with_an_earlier_one_is_predicted() {
        let mut predictor = Predictor::new(None);
        let mut wrong = 0;
        for at in 0..20_000 {
            let taken = random(at).is_multiple_of(2);
            predictor.misses(0x1000, taken);
            wrong += u32::from(predictor.misses(0x2000, taken) && at >= 19_000);
        }
        assert!(wrong < 30, "{wrong}");
    }

    #[test]
    fn targets_that_repeat_after_a_history_are_known_and_known_late_if_they_vary() {
        let of = |family, target: &dyn Fn(u64) -> u64| {
            let mut predictor = Predictor::new(family);
            let all: Vec<Prediction> =
                (0..40_000).map(|at| predictor.target(0x1000, target(at))).collect();
            let count = |one| all[39_000..].iter().filter(|other| **other == one).count();
            [Prediction::Known, Prediction::Late, Prediction::Wrong].map(count)
        };
        assert_eq!(of(None, &|_| 0x5000), [1000, 0, 0]);
        assert!(of(None, &|at| 0x5000 + at % 5 * 64)[1] > 980);
        assert!(of(None, &|at| 0x5000 + random(at) % 8 * 64)[2] > 700);
    }

    #[test]
    fn zen_tells_long_code_apart_by_fewer_branches() {
        let wrong = |family| {
            let mut predictor = Predictor::new(family);
            let mut wrong = |at: u64| {
                predictor.misses(0x10, true);
                predictor.misses(0x20, false);
                let target = 0x5000 + random(at % 200) % 2 * 48;
                predictor.target(0x1000, target) == Prediction::Wrong
            };
            (0..20_000).filter(|at| wrong(*at) && *at >= 19_000).count()
        };
        let [other, zen] = [None, Some(Family::Zen3)].map(wrong);
        assert!(other < 150 && zen > 200, "{other} and {zen}");
    }
}
