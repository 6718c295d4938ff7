//! Translations that a TLB holds, with LRU replacement.
//!
//! A captured TLB is fully associative, and searching 1024 entries takes longer than the rest of an
//! access, so sets of many entries have an index.

use alloc::vec::Vec;

use crate::cache::Cache;
use crate::counters::Figure;

/// Number of entries up to which a single set is searched in order.
const SEARCHED: u32 = 16;

/// One array of a TLB, used by one thread at a time.
#[derive(Debug)]
pub(crate) enum Translations {
    /// Several sets of few entries each.
    Sets(Cache),
    /// A single set of many entries.
    Indexed(Indexed),
}

impl Translations {
    /// Creates an empty array.
    pub fn new(entries: u32, ways: u32) -> Self {
        if entries <= ways && ways > SEARCHED {
            return Self::Indexed(Indexed::new(entries));
        }
        Self::Sets(Cache::of_lines(u64::from(entries), ways, 0))
    }

    /// Looks up a key and makes it the most recent one; returns whether it was present.
    #[inline]
    pub fn access(&self, key: u64) -> bool {
        match self {
            Self::Sets(cache) => cache.access(key),
            Self::Indexed(all) => all.access_held(key) || all.insert(key),
        }
    }

    /// Looks up a key and makes it the most recent one only if it is present.
    #[inline]
    pub fn access_held(&self, key: u64) -> bool {
        match self {
            Self::Sets(cache) => cache.access_held(key),
            Self::Indexed(all) => all.access_held(key),
        }
    }

    /// Reports whether the array has a key, without changing its age.
    #[inline]
    pub fn holds(&self, key: u64) -> bool {
        match self {
            Self::Sets(cache) => cache.holds(key),
            Self::Indexed(all) => all.find(key).is_some(),
        }
    }

    /// Removes all keys.
    pub fn clear(&self) {
        match self {
            Self::Sets(cache) => cache.clear(),
            Self::Indexed(all) => all.clear(),
        }
    }
}

/// Keys by age, in a list through all entries, and by value, in a hash table with linear probing.
#[derive(Debug)]
pub(crate) struct Indexed {
    entries: Vec<Entry>,
    /// Numbers of entries plus one; 0 for an empty slot.
    places: Vec<Figure>,
    newest: Figure,
    oldest: Figure,
}

#[derive(Debug)]
struct Entry {
    /// The key plus one; 0 if the entry has none.
    tag: Figure,
    newer: Figure,
    older: Figure,
}

impl Indexed {
    fn new(count: u32) -> Self {
        let entry = |_| Entry {
            tag: Figure::default(),
            newer: Figure::default(),
            older: Figure::default(),
        };
        let entries = (0..count).map(entry).collect();
        let places = Figure::zeros(4 * count.next_power_of_two() as usize);
        let all = Self { entries, places, newest: Figure::default(), oldest: Figure::default() };
        all.clear();
        all
    }

    fn access_held(&self, key: u64) -> bool {
        let newest = &self.entries[index(self.newest.get())];
        if newest.tag.get() == key + 1 {
            return true;
        }
        let Some(at) = self.find(key) else { return false };
        self.renew(at);
        true
    }

    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let mut place = self.place(key + 1);
        loop {
            let at = index(self.places[place].get().checked_sub(1)?);
            if self.entries[at].tag.get() == key + 1 {
                return Some(at);
            }
            place = self.after(place);
        }
    }

    /// Inserts a key that is not present, in place of the oldest one; returns false.
    fn insert(&self, key: u64) -> bool {
        let at = index(self.oldest.get());
        self.remove(at);
        self.entries[at].tag.set(key + 1);
        let mut place = self.place(key + 1);
        while self.places[place].get() != 0 {
            place = self.after(place);
        }
        self.places[place].set(at as u64 + 1);
        self.renew(at);
        false
    }

    /// Removes an entry's key from the hash table, and closes the gap.
    fn remove(&self, at: usize) {
        let tag = self.entries[at].tag.get();
        if tag == 0 {
            return;
        }
        let mut gap = self.place(tag);
        while self.places[gap].get() != at as u64 + 1 {
            gap = self.after(gap);
        }
        let mut next = self.after(gap);
        while let Some(other) = self.places[next].get().checked_sub(1) {
            // An entry may move into the gap only if its own slot is not behind the gap.
            let wanted = self.place(self.entries[index(other)].tag.get());
            let mask = self.places.len() - 1;
            if next.wrapping_sub(wanted) & mask >= next.wrapping_sub(gap) & mask {
                self.places[gap].set(other + 1);
                gap = next;
            }
            next = self.after(next);
        }
        self.places[gap].set(0);
    }

    /// Makes an entry the newest one.
    fn renew(&self, at: usize) {
        let number = at as u64;
        if self.newest.get() == number {
            return;
        }
        let entry = &self.entries[at];
        let (newer, older) = (entry.newer.get(), entry.older.get());
        if self.oldest.get() == number {
            self.oldest.set(newer);
        } else {
            self.entries[index(older)].newer.set(newer);
        }
        self.entries[index(newer)].older.set(older);
        entry.older.set(self.newest.get());
        self.entries[index(self.newest.get())].newer.set(number);
        self.newest.set(number);
    }

    fn clear(&self) {
        self.places.iter().for_each(|place| place.set(0));
        for (at, entry) in self.entries.iter().enumerate() {
            entry.tag.set(0);
            entry.newer.set((at as u64).saturating_sub(1));
            entry.older.set(at as u64 + 1);
        }
        self.newest.set(0);
        self.oldest.set(self.entries.len() as u64 - 1);
    }

    /// Returns the place at which the search for a tag begins: its hash by the golden ratio (D. Knuth,
    /// "The Art of Computer Programming", 6.4).
    #[inline]
    fn place(&self, tag: u64) -> usize {
        index(tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) & (self.places.len() - 1)
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
}

#[inline]
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Access(u64),
        AccessHeld(u64),
        Holds(u64),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        // Some keys differ in the upper bits alone.
        let key = || (0_u64..60, 0_u64..3).prop_map(|(low, high)| low | high << 40);
        prop_oneof![
            6 => key().prop_map(Step::Access),
            3 => key().prop_map(Step::AccessHeld),
            3 => key().prop_map(Step::Holds),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn an_indexed_set_holds_the_keys_of_one_that_is_searched(
            entries in 17_u32..80,
            steps in prop::collection::vec(step(), 1..900),
        ) {
            let indexed = Translations::new(entries, entries);
            prop_assert!(matches!(indexed, Translations::Indexed(_)));
            let searched = Translations::Sets(Cache::of_lines(u64::from(entries), entries, 0));
            for step in steps {
                let [found, expected] = [&indexed, &searched].map(|all| match step {
                    Step::Access(key) => all.access(key),
                    Step::AccessHeld(key) => all.access_held(key),
                    Step::Holds(key) => all.holds(key),
                    Step::Clear => {
                        all.clear();
                        false
                    }
                });
                prop_assert_eq!(found, expected, "{:?}", step);
            }
        }
    }

    #[test]
    fn sets_of_few_entries_are_searched() {
        assert!(matches!(Translations::new(64, 4), Translations::Sets(_)));
        assert!(matches!(Translations::new(16, 16), Translations::Sets(_)));
    }
}
