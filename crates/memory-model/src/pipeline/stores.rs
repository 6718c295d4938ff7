//! Recent stores of a core, which forward their data to later loads.
//!
//! As in the store buffers that Intel describes ("Intel 64 and IA-32 Architectures Optimization
//! Reference Manual", 3.6.4 "Store Forwarding"). Words of 8 bytes share entries by their numbers,
//! so the table is bounded and a load looks at one entry; if another store takes the entry, the
//! earlier one is forgotten.

use alloc::boxed::Box;

/// Number of entries for words: a power of two, and as large as the store buffers of current cores.
const PLACES: usize = 128;
const WORD_BYTES: u64 = 8;
/// Number of entries for instructions that store.
const SITES: usize = 256;

/// The bytes of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    address: u64,
    count: u64,
}

impl Bytes {
    /// Creates a range from an address on, of at most a line.
    #[inline]
    pub fn new(address: u64, count: u8) -> Self {
        Self { address, count: u64::from(count).clamp(1, 64) }
    }

    /// Returns the first address.
    #[inline]
    pub fn address(self) -> u64 {
        self.address
    }

    /// Splits off the first word: its number, with a bit for each of its bytes, and the remaining
    /// bytes.
    #[inline]
    fn split(self) -> ((u64, u8), Option<Self>) {
        let first = self.address % WORD_BYTES;
        let here = self.count.min(WORD_BYTES - first);
        let mask = (u8::MAX >> (WORD_BYTES - here)) << first;
        let left = self.count - here;
        let rest =
            (left > 0).then(|| Self { address: self.address.wrapping_add(here), count: left });
        ((self.address / WORD_BYTES, mask), rest)
    }
}

/// A word with bytes that were stored recently.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    word: u64,
    /// Time at which the last store to each half is known.
    ready_ps: [u64; 2],
    /// The number of the last instruction that stored to it, and its place in the code.
    instruction: u64,
    site: usize,
    /// A bit for each stored byte; 0 for an unused entry.
    bytes: u8,
    /// A bit for each byte of the last store to each half.
    last: [u8; 2],
    /// True if that store forwards its value at renaming.
    renames: [bool; 2],
    /// True if a load has got it.
    is_passed: bool,
}

/// The result of forwarding to a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Time at which all forwarded data are known; 0 if there are none.
    pub ready_ps: u64,
    /// True if stores cover all of the load.
    pub whole: bool,
    /// True if the load gets the value of a single store at renaming.
    pub renamed: bool,
}

impl Forwarded {
    /// Returns the latency of a load that begins at `now_ps`; a hit in the nearest cache takes
    /// `nearest_ps`, and a line that is not there arrives at `line_ps`.
    #[inline]
    pub fn takes_ps(self, now_ps: u64, nearest_ps: u64, line_ps: Option<u64>) -> u64 {
        if self.renamed {
            return self.ready_ps.saturating_sub(now_ps);
        }
        let line_ps = line_ps.filter(|_| !self.whole).map_or(0, |ps| ps.saturating_sub(now_ps));
        line_ps.max(self.ready_ps.saturating_sub(now_ps) + nearest_ps)
    }
}

/// The recent stores of a core.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Number of instructions after which a store has left for the cache.
    window: u64,
    /// Extra time of a load that no store covers entirely: it waits until the stores are in the
    /// cache.
    blocked_ps: u64,
    /// Extra time of forwarding over a hit in the nearest cache.
    forward_ps: u64,
    recent: Box<[Stored; PLACES]>,
    /// The number of the last execution of each instruction that stores, by its place in the code, if
    /// only that one forwards at renaming: the core finds the store by its instruction. On a Zen 4 sums
    /// from one word to the next take a cycle each, and those to the second next one 7.8: two executions of
    /// the store before. So do counters that one instruction increments in turn.
    executed: Option<Box<[u64; SITES]>>,
}

impl Stores {
    /// Creates an empty table for a core with this number of instructions in its window, and these
    /// extra times of a load that no store covers entirely, and of a load that a store does.
    pub fn new(window: u32, (blocked_ps, forward_ps): (u64, u64)) -> Self {
        let recent = Box::new([Stored::default(); PLACES]);
        Self { window: u64::from(window), blocked_ps, forward_ps, recent, executed: None }
    }

    /// Forwards at renaming only from the last execution of an instruction.
    pub fn by_instruction(self) -> Self {
        Self { executed: Some(Box::new([0; SITES])), ..self }
    }

    /// Records a store of data that are known at this time. `by` has the number of its instruction, and
    /// the address of what is known of it.
    #[inline]
    pub fn store(&mut self, bytes: Bytes, (ready_ps, renames): (u64, bool), by: (u64, usize)) {
        let site = (by.1 ^ by.1 >> 8) / size_of::<u64>() % SITES;
        let by = (by.0, site);
        if let Some(executed) = &mut self.executed {
            executed[site] = by.0;
        }
        let ((word, mask), mut rest) = bytes.split();
        self.store_word((word, mask), (ready_ps, renames && rest.is_none()), by);
        while let Some(bytes) = rest {
            let (word, left) = bytes.split();
            self.store_word(word, (ready_ps, false), by);
            rest = left;
        }
    }

    #[inline]
    fn store_word(
        &mut self,
        (word, mask): (u64, u8),
        (ready_ps, renames): (u64, bool),
        (instruction, site): (u64, usize),
    ) {
        let stored = &mut self.recent[place(word)];
        if stored.word != word || stored.instruction + self.window < instruction {
            *stored = Stored { word, ..Stored::default() };
        }
        (stored.instruction, stored.site, stored.is_passed) = (instruction, site, false);
        stored.bytes |= mask;
        for half in touched(mask) {
            stored.ready_ps[half] = ready_ps;
            (stored.last[half], stored.renames[half]) = (mask, renames);
        }
    }

    /// Records that a load got the value of the store of these bytes; returns true for the first one.
    #[inline]
    pub fn passes(&mut self, bytes: Bytes) -> bool {
        let stored = &mut self.recent[place(bytes.address / WORD_BYTES)];
        !core::mem::replace(&mut stored.is_passed, true)
    }

    /// Returns the data forwarded to a load of these bytes; `renames` is true if it may get them at
    /// renaming.
    #[inline]
    pub fn forwarded(&self, bytes: Bytes, (instruction, renames): (u64, bool)) -> Forwarded {
        let (word, rest) = bytes.split();
        let stored = self.found(word, instruction);
        let first = stored.map_or(Forwarded::default(), |stored| {
            let gets = |half: usize| stored.renames[half] && stored.last[half] == word.1;
            let renamed = renames && touched(word.1).all(gets) && self.is_last(stored);
            let ready_ps = self.ready_ps(stored, word.1);
            let ready_ps = if renamed { ready_ps } else { ready_ps + self.forward_ps };
            Forwarded { ready_ps, whole: stored.bytes & word.1 == word.1, renamed }
        });
        match rest {
            None => first,
            Some(rest) => self.over(rest, instruction, (first, stored.map(|of| of.instruction))),
        }
    }

    /// Extends the result to bytes in further words, given the result for the preceding words and
    /// the store that it came from.
    fn over(
        &self,
        bytes: Bytes,
        instruction: u64,
        (first, by): (Forwarded, Option<u64>),
    ) -> Forwarded {
        let mut all = Forwarded { renamed: false, ..first };
        let mut rest = Some(bytes);
        while let Some(bytes) = rest {
            let (word, left) = bytes.split();
            rest = left;
            let Some(stored) = self.found(word, instruction) else {
                all.whole = false;
                continue;
            };
            all.whole &= stored.bytes & word.1 == word.1 && by == Some(stored.instruction);
            all.ready_ps = all.ready_ps.max(self.ready_ps(stored, word.1) + self.forward_ps);
        }
        if !all.whole && all.ready_ps > 0 {
            all.ready_ps += self.blocked_ps;
        }
        all
    }

    /// Returns true if the store's instruction has not been executed again.
    #[inline]
    fn is_last(&self, stored: &Stored) -> bool {
        self.executed.as_ref().is_none_or(|of| of[stored.site] == stored.instruction)
    }

    /// Returns the recent store to bytes of a word.
    #[inline]
    fn found(&self, (word, mask): (u64, u8), instruction: u64) -> Option<&Stored> {
        let stored = &self.recent[place(word)];
        let is_there = stored.word == word
            && stored.bytes & mask != 0
            && stored.instruction + self.window >= instruction;
        is_there.then_some(stored)
    }

    /// Returns the time at which bytes of a word are known: later if the last store covers only
    /// some of them.
    #[inline]
    fn ready_ps(&self, stored: &Stored, mask: u8) -> u64 {
        let there = stored.bytes & mask;
        let ready_ps = touched(there).map(|half| stored.ready_ps[half]).max().unwrap_or(0);
        let is_part =
            |half: usize| !matches!(stored.last[half] & mask, last if last == 0 || last == mask);
        let is_blocked = there != mask || touched(there).any(is_part);
        if is_blocked { ready_ps + self.blocked_ps } else { ready_ps }
    }
}

/// The bytes of both halves of a word.
const HALVES: [u8; 2] = [0x0f, 0xf0];

/// Returns the halves of a word that have any of these bytes.
#[inline]
fn touched(mask: u8) -> impl Iterator<Item = usize> {
    (0..2).filter(move |half| mask & HALVES[*half] != 0)
}

/// Returns a word's entry; words of arrays that are a page apart have different ones.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than PLACES")]
fn place(word: u64) -> usize {
    ((word ^ word >> 7 ^ word >> 14) % PLACES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Forwarded = Forwarded { ready_ps: 0, whole: false, renamed: false };

    fn got(ready_ps: u64, whole: bool) -> Forwarded {
        Forwarded { ready_ps, whole, renamed: false }
    }

    fn stored(stores: &[(u64, u8, u64)]) -> Stores {
        let mut all = Stores::new(100, (50, 0));
        for (number, &(address, count, ready_ps)) in (1..).zip(stores) {
            all.store(Bytes::new(address, count), (ready_ps, true), (number, 0));
        }
        all
    }

    fn of(stores: &Stores, address: u64, count: u8) -> Forwarded {
        stores.forwarded(Bytes::new(address, count), (10, false))
    }

    #[test]
    fn a_load_gets_the_last_store_of_its_bytes_only() {
        let stores = stored(&[(64, 8, 500), (72, 4, 700), (76, 4, 300), (64, 8, 600)]);
        assert_eq!(of(&stores, 64, 8), got(600, true));
        assert_eq!(of(&stores, 72, 4), got(700, true));
        assert_eq!(of(&stores, 76, 4), got(300, true));
        assert_eq!(of(&stores, 72, 8), got(750, true));
        assert_eq!(of(&stores, 80, 8), NOTHING);
        let bytes = stored(&[(64, 1, 500)]);
        assert_eq!(of(&bytes, 65, 1), NOTHING);
        assert_eq!(of(&bytes, 64, 2), got(550, false));
    }

    #[test]
    fn a_load_takes_a_hit_more_than_its_store_s_data_and_waits_for_no_line_if_that_is_all() {
        let takes = |ready_ps, whole| got(ready_ps, whole).takes_ps(100, 5, Some(300));
        assert_eq!([takes(150, true), takes(50, true)], [55, 5]);
        assert_eq!([takes(150, false), takes(400, false)], [200, 305]);
        assert_eq!(NOTHING.takes_ps(100, 5, None), 5);
    }

    #[test]
    fn wide_and_unaligned_accesses_cover_all_the_words_they_touch() {
        let stores = stored(&[(64, 32, 500), (88, 8, 900)]);
        assert_eq!(of(&stores, 68, 8), got(500, true));
        assert_eq!(of(&stores, 64, 32), got(950, false), "of two stores");
        assert_eq!(of(&stores, 92, 8), got(950, false));
    }

    #[test]
    fn a_load_that_is_renamed_has_the_data_as_soon_as_its_store_does() {
        let stores = stored(&[(64, 8, 500)]);
        let renamed = |address, count| stores.forwarded(Bytes::new(address, count), (10, true));
        assert_eq!(renamed(64, 8), Forwarded { renamed: true, ..got(500, true) });
        assert_eq!([100, 600].map(|now_ps| renamed(64, 8).takes_ps(now_ps, 5, None)), [400, 0]);
        assert_eq!(renamed(64, 4), got(500, true), "not all of what was stored");
        assert_eq!(renamed(65, 8), got(550, false));
    }

    #[test]
    fn stores_to_the_other_half_of_a_word_change_nothing_for_a_load_that_is_renamed() {
        let stores = stored(&[(64, 4, 500), (68, 4, 700)]);
        let renamed = |address, count| stores.forwarded(Bytes::new(address, count), (10, true));
        assert_eq!(renamed(64, 4), Forwarded { renamed: true, ..got(500, true) });
        assert_eq!(renamed(68, 4), Forwarded { renamed: true, ..got(700, true) });
        assert_eq!(renamed(64, 8), got(750, true), "of two stores");
    }

    #[test]
    fn forwarding_takes_its_time_beyond_a_hit_except_at_renaming() {
        let mut stores = Stores::new(100, (50, 20));
        stores.store(Bytes::new(64, 8), (500, true), (1, 0));
        let ready_ps =
            |address, renames| stores.forwarded(Bytes::new(address, 8), (10, renames)).ready_ps;
        assert_eq!([ready_ps(64, false), ready_ps(64, true), ready_ps(72, false)], [520, 500, 0]);
        assert_eq!(ready_ps(68, false), 570, "two words, and only one of them stored");
    }

    #[test]
    fn only_the_last_execution_of_an_instruction_forwards_at_renaming_if_it_is_found_by_that() {
        let renamed = |stores: Stores, sites: [usize; 2]| {
            let mut stores = stores;
            for (number, site) in (1..).zip(sites) {
                stores.store(Bytes::new(64 * number, 8), (500, true), (number, site));
            }
            [64, 128].map(|at| stores.forwarded(Bytes::new(at, 8), (10, true)).renamed)
        };
        let any = || Stores::new(100, (50, 20));
        assert_eq!(renamed(any(), [0x1000, 0x1000]), [true, true]);
        assert_eq!(renamed(any().by_instruction(), [0x1000, 0x1000]), [false, true]);
        assert_eq!(renamed(any().by_instruction(), [0x1000, 0x1040]), [true, true]);
    }

    #[test]
    fn a_store_is_forgotten_when_another_one_has_its_place_or_it_has_left() {
        let mut stores = stored(&[(64, 8, 500)]);
        assert_eq!(stores.forwarded(Bytes::new(64, 8), (101, false)).ready_ps, 500);
        assert_eq!(stores.forwarded(Bytes::new(64, 8), (102, false)), NOTHING);
        let other = (1..).find(|word| *word != 8 && place(*word) == place(8)).unwrap();
        stores.store(Bytes::new(other * 8, 8), (700, false), (2, 0));
        assert_eq!(of(&stores, 64, 8), NOTHING);
    }
}
