//! Predicts branches.
//!
//! Directions are predicted by a small TAGE (A. Seznec and P. Michaud, "A case for (partially)
//! TAgged GEometric history length branch prediction", Journal of Instruction-Level Parallelism 8,
//! 2006): a table of counters by address, and tables by address and increasingly long histories,
//! with tagged entries; the table with the longest history that knows the branch decides. Indirect
//! branches are predicted to go to their last target, after the same history if that is known.
//! Returns count as predicted correctly, as by a return stack.

mod history;
mod steady;

use alloc::boxed::Box;
use alloc::vec;
use core::array;

use crate::machine::Family;
use history::{History, Lanes};
use steady::Steady;

const TABLES: usize = 6;
/// The size of a table, as a power of two. The model then learns about as many repeated random
/// branches as a Zen 3: most of 16,000 and a third of 32,000.
const TABLE_BITS: u32 = 12;
/// A Zen 1 learnt most of 2,000 branches, and half of 6,000.
const EARLY_TABLE_BITS: u32 = 10;
/// A Zen 4 learnt 32,000 branches, and a third of 64,000, and the branches of a search in a text of
/// 30,000 random letters in four rounds. The two tables that learn most of them are twice as large
/// as the others.
const LARGE_TABLE_BITS: u32 = 13;
const LARGEST_TABLES: [usize; 2] = [2, 3];
/// Width to which histories are folded for an index. It is odd, so that if two branches alternate
/// and one is always taken, as in loops, the other one reaches all bits.
const INDEX_BITS: u32 = 13;
const TARGET_BITS: u32 = 11;
const TAG_BITS: u32 = 10;
const BASE_BITS: u32 = 13;
/// Number of tables with histories that distinguish cases of indirect branches.
const TARGET_TABLES: usize = 2;
/// Mispredictions between two agings of entries; more for the larger tables of a Zen 4, which learns the
/// branches of a search in 60,000 random letters in 16 rounds.
const AGES: u32 = 1 << 10;
const LARGE_AGES: u32 = 1 << 12;

/// The learnt behaviour of a branch after a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    tag: u16,
    /// The branch is predicted taken if this is 0 or more; -4 to 3.
    counter: i8,
    /// Number of times that this entry was right and the next best was wrong; 0 to 3.
    useful: u8,
}

/// The prediction of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prediction {
    /// Right, and at once.
    #[default]
    Known,
    /// Predicted correctly, but only with the history, because the branch has had several targets.
    Late,
    /// Wrong.
    Wrong,
}

/// The last target of an indirect branch.
#[derive(Clone, Copy, Debug)]
struct Target {
    tag: u64,
    address: u64,
    /// True if the branch has had other targets.
    varies: bool,
}

/// A core's branch predictor.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// Counters from -2 to 1; 0 or more predicts taken.
    base: Box<[i8]>,
    /// Entries after histories of increasing length.
    tables: [Box<[Entry]>; TABLES],
    history: History,
    steady: Steady,
    mispredictions: u32,
    /// True if two entries are allocated for a misprediction, and useful ones are kept longer.
    learns_soon: bool,
    /// 0 or more if entries that have not decided yet are less reliable than those of shorter
    /// histories; -8 to 7. `None` if that is assumed.
    doubts: Option<i8>,
    /// True if the targets of calls are no part of the history.
    forgets_calls: bool,
    /// Targets, by address, and by address and history.
    targets: [Box<[Target]>; 1 + TARGET_TABLES],
    /// Tables whose histories distinguish cases of indirect branches.
    target_tables: [usize; TARGET_TABLES],
}

impl Predictor {
    /// Creates an empty predictor. Zen 3 remembers targets by a short history: of random code of eight
    /// instructions, interpreted in a loop, it knew 64 but not 256; a Zen 4 knew 560.
    pub fn new(family: Option<Family>) -> Self {
        let none = Target { tag: u64::MAX, address: 0, varies: false };
        let targets = || vec![none; 1 << TARGET_BITS].into_boxed_slice();
        let is_early = family.is_some_and(Family::is_early_zen);
        let is_large = family == Some(Family::Zen4);
        let bits = |at: usize| match (is_early, is_large) {
            (true, _) => EARLY_TABLE_BITS,
            (_, true) if LARGEST_TABLES.contains(&at) => LARGE_TABLE_BITS + 1,
            (_, true) => LARGE_TABLE_BITS,
            _ => TABLE_BITS,
        };
        Self {
            target_tables: match family {
                Some(Family::Zen4) => [1, 4],
                Some(family) if family.is_zen() => [1, 3],
                _ => [1, 4],
            },
            base: vec![0; 1 << BASE_BITS].into_boxed_slice(),
            tables: array::from_fn(|at| vec![Entry::default(); 1 << bits(at)].into()),
            history: History::default(),
            steady: Steady::default(),
            mispredictions: 0,
            learns_soon: is_large,
            doubts: is_large.then_some(0),
            forgets_calls: is_large,
            targets: [targets(), targets(), targets()],
        }
    }
}

/// Returns the index of a place in a table, the size of which is a power of two.
#[inline]
fn place(table: &[Entry], place: u16) -> usize {
    usize::from(place) & (table.len() - 1)
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

/// Returns the last table of a set of tables with a bit for each.
#[inline]
fn last(tables: u32) -> Option<usize> {
    Some(tables.checked_ilog2()? as usize)
}

impl Predictor {
    /// Updates the prediction of the conditional branch at an address; returns whether the
    /// prediction was wrong.
    #[inline]
    pub fn misses(&mut self, address: u64, taken: bool) -> bool {
        if taken && self.steady.has(address) {
            return false;
        }
        let short_address = short(address);
        let places = self.history.places(short_address);
        let tags = self.history.tags(short_address);
        let mut known = 0;
        for (at, table) in self.tables.iter().enumerate() {
            known |= u32::from(table[place(table, places.of(at))].tag == tags.of(at)) << at;
        }
        let provider = last(known);
        let base = short_address as usize & ((1 << BASE_BITS) - 1);
        let (wrong, changed) = match provider {
            Some(at) => {
                let next = last(known & !(1 << at));
                self.decides(at, (next, base), places, taken)
            }
            None => {
                let counter = &mut self.base[base];
                let before = *counter;
                towards(counter, taken, -2, 1);
                (taken != (before >= 0), *counter != before)
            }
        };
        if wrong {
            self.allocate(provider.map_or(0, |at| at + 1), (places, tags), taken);
        }
        if changed || wrong || !taken || !self.history.is_all_taken() {
            self.steady.ends();
            self.history.push(taken);
        } else {
            self.steady.add(address);
        }
        wrong
    }

    /// Updates the entry of a table that decides a branch; `next` is the table that would decide
    /// otherwise, or the index of a counter. Returns whether the entry was wrong, and whether it
    /// changed.
    #[inline]
    fn decides(
        &mut self,
        at: usize,
        (next, base): (Option<usize>, usize),
        places: Lanes,
        taken: bool,
    ) -> (bool, bool) {
        let second = match next {
            Some(at) => self.tables[at][place(&self.tables[at], places.of(at))].counter >= 0,
            None => self.base[base] >= 0,
        };
        let own = place(&self.tables[at], places.of(at));
        let entry = &mut self.tables[at][own];
        let before = *entry;
        let first = before.counter >= 0;
        let mut is_new = before.useful == 0 && matches!(before.counter, -1 | 0);
        if let (true, Some(doubts)) = (is_new, &mut self.doubts) {
            is_new = *doubts >= 0;
            if first != second {
                towards(doubts, second == taken, -8, 7);
            }
        }
        if first != second {
            let merit = if self.learns_soon { 3 } else { 2 };
            let useful = before.useful + u8::from(first == taken) * merit;
            entry.useful = useful.saturating_sub(1).min(3);
        }
        towards(&mut entry.counter, taken, -4, 3);
        (taken != if is_new { second } else { first }, *entry != before)
    }

    /// Allocates an entry with a longer history after a misprediction, which may distinguish the
    /// branch's cases.
    #[inline(never)]
    fn allocate(&mut self, from: usize, (places, tags): (Lanes, Lanes), taken: bool) {
        self.mispredictions += 1;
        let ages = if self.learns_soon { LARGE_AGES } else { AGES };
        if self.mispredictions.is_multiple_of(ages) {
            let entries = self.tables.iter_mut().flatten();
            entries.for_each(|entry| entry.useful >>= 1);
        }
        let is_free =
            |at: &usize| self.tables[*at][place(&self.tables[*at], places.of(*at))].useful == 0;
        // Long histories are learnt slowly, so the next longer free table is taken; one time in
        // four, the one after it, or a longer one as well.
        let skip = usize::from(self.mispredictions % 4 == 3 && !self.learns_soon);
        let free = (from..TABLES).filter(is_free).nth(skip);
        let first = free.or_else(|| (from..TABLES).find(is_free));
        let second = first.filter(|_| self.learns_soon);
        let second = second.and_then(|at| (at + 2..TABLES).find(is_free));
        let counter = if taken { 0 } else { -1 };
        for at in first.into_iter().chain(second) {
            let own = place(&self.tables[at], places.of(at));
            self.tables[at][own] = Entry { tag: tags.of(at), counter, useful: 0 };
        }
        if first.is_some() {
            return;
        }
        for (at, table) in self.tables.iter_mut().enumerate().skip(from) {
            let entry = &mut table[place(table, places.of(at))];
            entry.useful = entry.useful.saturating_sub(1);
        }
    }

    /// Updates the prediction of the indirect jump at an address; returns the previous prediction.
    #[inline]
    pub fn target(&mut self, address: u64, target: u64) -> Prediction {
        let prediction = self.leads(address, target);
        self.steady.ends();
        for bit in 0..2 {
            self.history.push((target >> 2 ^ target >> (5 + bit)) >> bit & 1 == 1);
        }
        prediction
    }

    /// The same of an indirect call. A Zen 4 does not remember where calls have led: it predicts the last
    /// target of a call in a loop, even if two alternate, unless conditional branches tell the rounds apart;
    /// the targets of a jump in such a loop it knows.
    #[inline]
    pub fn called(&mut self, address: u64, target: u64) -> Prediction {
        if self.forgets_calls { self.leads(address, target) } else { self.target(address, target) }
    }

    fn leads(&mut self, address: u64, target: u64) -> Prediction {
        let short_address = short(address);
        let mask = (1 << TARGET_BITS) - 1;
        let mut places = [short_address as usize & mask; 1 + TARGET_TABLES];
        let mut tags = [address; 1 + TARGET_TABLES];
        let of_history = (self.history.places(short_address), self.history.tags(short_address));
        for (at, table) in self.target_tables.into_iter().enumerate() {
            places[at + 1] = usize::from(of_history.0.of(table)) & mask;
            tags[at + 1] = address ^ u64::from(of_history.1.of(table)) << 48;
        }
        let known = (0..places.len()).rev().map(|at| (at, self.targets[at][places[at]]));
        let mut known = known.filter(|(at, known)| known.tag == tags[*at]);
        let wrong = known.next().is_none_or(|(_, known)| known.address != target);
        let last = self.targets[0][places[0]];
        let varies = last.tag == address && (last.varies || last.address != target);
        for at in 0..places.len() {
            self.targets[at][places[at]] = Target { tag: tags[at], address: target, varies };
        }
        match (wrong, varies) {
            (true, _) => Prediction::Wrong,
            (false, true) => Prediction::Late,
            (false, false) => Prediction::Known,
        }
    }
}

#[cfg(test)]
mod tests;
