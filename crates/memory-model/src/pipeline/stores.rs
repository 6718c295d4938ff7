//! Recent stores of a core: a load of what one of them writes gets it from there, and waits for it.
//!
//! As in the store buffers that Intel describes ("Intel 64 and IA-32 Architectures Optimization
//! Reference Manual", 3.6.4 "Store Forwarding"). Words of 8 bytes share places by their numbers, so that
//! the table is bounded and a place is all that a load looks at; a store that lost its place to
//! another one is not waited for.

use alloc::boxed::Box;

/// Places for words: a power of two, and as many as stores that cores of today have under way.
const PLACES: usize = 128;
const WORD_BYTES: u64 = 8;

/// Bytes that an access is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    address: u64,
    count: u64,
}

impl Bytes {
    /// So many from an address on, at most a line.
    #[inline]
    pub fn new(address: u64, count: u8) -> Self {
        Self { address, count: u64::from(count).clamp(1, 64) }
    }

    /// The first one's address.
    #[inline]
    pub fn address(self) -> u64 {
        self.address
    }

    /// The first of the words that they lie in by its number, and a bit for each byte of it; those that
    /// are left behind it.
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

/// A word of which bytes were stored.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    word: u64,
    /// When what was stored last to each half is known.
    ready_ps: [u64; 2],
    /// Number of the last instruction that stored to it.
    instruction: u64,
    /// A bit for each of its bytes; none at a place that was never used.
    bytes: u8,
}

/// What a load gets from stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// When all of it is known that comes from them; 0 if nothing does.
    pub ready_ps: u64,
    /// Whether they have all of it.
    pub whole: bool,
}

impl Forwarded {
    /// What a load takes that begins at `now_ps`, if its line is in the nearest cache, where a hit
    /// takes `nearest_ps`, or on its way there until a time.
    #[inline]
    pub fn takes_ps(self, now_ps: u64, nearest_ps: u64, line_ps: Option<u64>) -> u64 {
        let line_ps = line_ps.filter(|_| !self.whole).map_or(0, |ps| ps.saturating_sub(now_ps));
        line_ps.max(self.ready_ps.saturating_sub(now_ps) + nearest_ps)
    }
}

/// The stores that a core remembers.
#[derive(Debug)]
pub struct Stores {
    /// Instructions behind a store from which on it has left for the cache.
    window: u64,
    recent: Box<[Stored; PLACES]>,
}

impl Stores {
    /// None yet, of a core that has so many instructions under way.
    pub fn new(window: u32) -> Self {
        Self { window: u64::from(window), recent: Box::new([Stored::default(); PLACES]) }
    }

    /// An instruction stores what is known at a time.
    #[inline]
    pub fn store(&mut self, bytes: Bytes, ready_ps: u64, instruction: u64) {
        let ((word, mask), mut rest) = bytes.split();
        self.store_word((word, mask), ready_ps, instruction);
        while let Some(bytes) = rest {
            let (word, left) = bytes.split();
            self.store_word(word, ready_ps, instruction);
            rest = left;
        }
    }

    #[inline]
    fn store_word(&mut self, (word, mask): (u64, u8), ready_ps: u64, instruction: u64) {
        let stored = &mut self.recent[place(word)];
        if stored.word != word || stored.instruction + self.window < instruction {
            *stored = Stored { word, ..Stored::default() };
        }
        stored.instruction = instruction;
        stored.bytes |= mask;
        for (half, of_half) in stored.ready_ps.iter_mut().zip(HALVES) {
            *half = if mask & of_half != 0 { ready_ps } else { *half };
        }
    }

    /// What an instruction that loads these bytes gets.
    #[inline]
    pub fn forwarded(&self, bytes: Bytes, instruction: u64) -> Forwarded {
        let (word, mut rest) = bytes.split();
        let mut all = self.forwarded_word(word, instruction);
        while let Some(bytes) = rest {
            let (word, left) = bytes.split();
            let more = self.forwarded_word(word, instruction);
            all.ready_ps = all.ready_ps.max(more.ready_ps);
            all.whole &= more.whole;
            rest = left;
        }
        all
    }

    #[inline]
    fn forwarded_word(&self, (word, mask): (u64, u8), instruction: u64) -> Forwarded {
        let stored = &self.recent[place(word)];
        let there = stored.bytes & mask;
        if stored.word != word || there == 0 || stored.instruction + self.window < instruction {
            return Forwarded::default();
        }
        let of_half = |at: usize| if there & HALVES[at] == 0 { 0 } else { stored.ready_ps[at] };
        Forwarded { ready_ps: of_half(0).max(of_half(1)), whole: there == mask }
    }
}

/// The bytes of both halves of a word.
const HALVES: [u8; 2] = [0x0f, 0xf0];

/// Words of arrays that are a page apart have different places.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than PLACES")]
fn place(word: u64) -> usize {
    ((word ^ word >> 7 ^ word >> 14) % PLACES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Forwarded = Forwarded { ready_ps: 0, whole: false };

    fn stored(stores: &[(u64, u8, u64)]) -> Stores {
        let mut all = Stores::new(100);
        for (number, &(address, count, ready_ps)) in (1..).zip(stores) {
            all.store(Bytes::new(address, count), ready_ps, number);
        }
        all
    }

    fn of(stores: &Stores, address: u64, count: u8) -> Forwarded {
        stores.forwarded(Bytes::new(address, count), 10)
    }

    #[test]
    fn a_load_gets_what_was_stored_last_and_nothing_of_its_neighbours() {
        let stores = stored(&[(64, 8, 500), (72, 4, 700), (76, 4, 300), (64, 8, 600)]);
        assert_eq!(of(&stores, 64, 8), Forwarded { ready_ps: 600, whole: true });
        assert_eq!(of(&stores, 72, 4), Forwarded { ready_ps: 700, whole: true });
        assert_eq!(of(&stores, 76, 4), Forwarded { ready_ps: 300, whole: true });
        assert_eq!(of(&stores, 72, 8), Forwarded { ready_ps: 700, whole: true });
        assert_eq!(of(&stores, 80, 8), NOTHING);
        let bytes = stored(&[(64, 1, 500)]);
        assert_eq!(of(&bytes, 65, 1), NOTHING);
        assert_eq!(of(&bytes, 64, 2), Forwarded { ready_ps: 500, whole: false });
    }

    #[test]
    fn a_load_takes_a_hit_more_than_its_store_s_data_and_waits_for_no_line_if_that_is_all() {
        let takes = |ready_ps, whole| Forwarded { ready_ps, whole }.takes_ps(100, 5, Some(300));
        assert_eq!([takes(150, true), takes(50, true)], [55, 5]);
        assert_eq!([takes(150, false), takes(400, false)], [200, 305]);
        assert_eq!(NOTHING.takes_ps(100, 5, None), 5);
    }

    #[test]
    fn wide_and_unaligned_accesses_are_about_all_words_that_they_lie_in() {
        let stores = stored(&[(64, 32, 500), (88, 8, 900)]);
        assert_eq!(of(&stores, 68, 8), Forwarded { ready_ps: 500, whole: true });
        assert_eq!(of(&stores, 64, 32), Forwarded { ready_ps: 900, whole: true });
        assert_eq!(of(&stores, 92, 8), Forwarded { ready_ps: 900, whole: false });
    }

    #[test]
    fn a_store_is_forgotten_when_another_one_has_its_place_or_it_has_left() {
        let mut stores = stored(&[(64, 8, 500)]);
        assert_eq!(stores.forwarded(Bytes::new(64, 8), 101).ready_ps, 500);
        assert_eq!(stores.forwarded(Bytes::new(64, 8), 102), NOTHING);
        let other = (1..).find(|word| *word != 8 && place(*word) == place(8)).unwrap();
        stores.store(Bytes::new(other * 8, 8), 700, 2);
        assert_eq!(of(&stores, 64, 8), NOTHING);
    }
}
