//! Tracks the owners of lines: the lines that a load or store must take from another vCPU's caches.
//!
//! A directory of lines as in MESI: a line was read by one vCPU or several, or written by one. The
//! directory has a fixed number of entries and forgets a line when another one takes its entry, as
//! inclusive directories do. The caches of a vCPU decide whether it still has a line that the
//! directory attributes to it.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of entries for each line that the caches hold.
const PLACES_PER_LINE: u64 = 4;
const MOST_PLACES: u64 = 1 << 22;
const PAGE_LINES: u64 = 64;
/// 2^64 divided by the golden ratio, for multiplicative hashing (D. E. Knuth, The Art of Computer
/// Programming 3, 6.4).
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
const STATE_SHIFT: u32 = 16;
const LINE_SHIFT: u32 = 18;
const READ: u64 = 1;
const SHARED: u64 = 2;
const WRITTEN: u64 = 3;

/// The owner of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Number of the vCPU.
    pub vcpu: u8,
    /// The lowest bits of the number of the thread that ran on it, if threads are tracked.
    pub thread: u8,
}

impl Who {
    fn bits(self) -> u64 {
        u64::from(u16::from_le_bytes([self.vcpu, self.thread]))
    }

    fn of(entry: u64) -> Self {
        let [vcpu, thread, ..] = entry.to_le_bytes();
        Self { vcpu, thread }
    }
}

/// The result of a directory lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No other vCPU is involved.
    Free,
    /// The vCPU that wrote the line last, and the time.
    WrittenBy(Who, u64),
    /// Other vCPUs have read the line, which is about to be written; the time at which it was last taken
    /// from another one.
    Read(u64),
}

/// The directory, indexed by hashed line number.
#[derive(Debug)]
pub struct Owners {
    /// A line's number plus one, its state, the vCPU; 0 for an empty entry.
    entries: Vec<AtomicU64>,
    /// Time of the last store, or at which the line then reached another vCPU.
    written_ps: Vec<AtomicU64>,
}

impl Owners {
    /// Creates a directory for caches of this number of lines.
    pub fn new(lines: u64) -> Self {
        let places = (PLACES_PER_LINE * lines).clamp(1, MOST_PLACES).next_power_of_two();
        // A zeroed block of memory: the host provides pages only as they are used.
        let count = usize::try_from(places).unwrap_or(usize::MAX);
        let figures = || vec![0; count].into_iter().map(AtomicU64::new).collect();
        Self { entries: figures(), written_ps: figures() }
    }

    /// Records a load of a line that none of the vCPU's own caches has.
    pub fn load(&self, line: u64, by: Who) -> Found {
        let (place, known) = self.place(line);
        let tag = (line + 1) << LINE_SHIFT;
        let (state, who) = known.unwrap_or((0, by));
        let next = match state {
            0 => READ << STATE_SHIFT | by.bits(),
            _ if who.vcpu == by.vcpu && state != SHARED => return Found::Free,
            _ => SHARED << STATE_SHIFT,
        };
        self.entries[place].store(tag | next, Relaxed);
        if state == WRITTEN {
            Found::WrittenBy(who, self.written_ps[place].load(Relaxed))
        } else {
            Found::Free
        }
    }

    /// Records a store to a line at the vCPU's own time.
    #[inline]
    pub fn store(&self, line: u64, by: Who, time_ps: u64) -> Found {
        let (place, known) = self.place(line);
        let own = written(line, by);
        let found = match known {
            None => Found::Free,
            Some((state, who)) if state != SHARED && who.vcpu == by.vcpu => Found::Free,
            Some((READ | SHARED, _)) => Found::Read(self.written_ps[place].load(Relaxed)),
            Some((_, who)) => Found::WrittenBy(who, self.written_ps[place].load(Relaxed)),
        };
        self.entries[place].store(own, Relaxed);
        self.written_ps[place].store(time_ps, Relaxed);
        found
    }

    /// Returns the index of a line's entry.
    pub(crate) fn place_number(&self, line: u64) -> u32 {
        u32::try_from(self.place_of(line)).unwrap_or(u32::MAX)
    }

    /// Records another store to a line with a known entry, if the vCPU stored to it last; returns
    /// whether it did.
    #[inline]
    pub(crate) fn store_at(&self, place: u32, line: u64, by: Who, time_ps: u64) -> bool {
        let place = place as usize;
        let is_own = self.entries[place].load(Relaxed) == written(line, by);
        if is_own {
            self.written_ps[place].store(time_ps, Relaxed);
        }
        is_own
    }

    /// Records the time at which a line reaches the vCPU that has taken it from another one.
    pub fn taken(&self, line: u64, time_ps: u64) {
        self.written_ps[self.place_of(line)].store(time_ps, Relaxed);
    }

    /// Removes a line that leaves all caches; returns whether other vCPUs may have it.
    pub fn forget(&self, line: u64, vcpu: usize) -> bool {
        let (place, known) = self.place(line);
        let Some((state, who)) = known else { return false };
        self.entries[place].store(0, Relaxed);
        state == SHARED || usize::from(who.vcpu) != vcpu
    }

    /// Removes all lines.
    pub fn clear(&self) {
        self.entries.iter().for_each(|entry| entry.store(0, Relaxed));
    }

    #[inline]
    fn place_of(&self, line: u64) -> usize {
        usize::try_from(scattered(line)).unwrap_or(0) & (self.entries.len() - 1)
    }

    /// Returns the index of a line's entry, and its state and owner if the entry is the line's.
    #[inline]
    fn place(&self, line: u64) -> (usize, Option<(u64, Who)>) {
        let place = self.place_of(line);
        let entry = self.entries[place].load(Relaxed);
        let known = entry >> LINE_SHIFT == line + 1;
        let known = known.then(|| (entry >> STATE_SHIFT & 3, Who::of(entry)));
        (place, known)
    }
}

/// Returns the entry of a line that this vCPU stored to last.
#[inline]
fn written(line: u64, by: Who) -> u64 {
    (line + 1) << LINE_SHIFT | WRITTEN << STATE_SHIFT | by.bits()
}

/// Hashes a line number. Lines of a page are adjacent and pages are scattered, so that equal pages
/// of several nodes, each of which begins at a power of two, get different entries.
#[inline]
fn scattered(line: u64) -> u64 {
    let (page, line) = (line / PAGE_LINES, line % PAGE_LINES);
    (page.wrapping_mul(GOLDEN_RATIO) >> 32) * PAGE_LINES + line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(vcpu: u8) -> Who {
        Who { vcpu, thread: 9 }
    }

    #[test]
    fn a_line_goes_from_writer_to_writer_and_from_writer_to_readers() {
        let owners = Owners::new(64);
        assert_eq!(owners.store(7, who(0), 100), Found::Free);
        let place = owners.place_number(7);
        assert!(owners.store_at(place, 7, who(0), 110) && !owners.store_at(place, 7, who(1), 120));
        assert_eq!(owners.store(7, who(1), 200), Found::WrittenBy(who(0), 110));
        assert!(!owners.store_at(place, 7, who(0), 210), "it is another one's");
        assert_eq!(owners.load(7, who(2)), Found::WrittenBy(who(1), 200));
        assert_eq!(owners.load(7, who(3)), Found::Free, "memory has it now");
        owners.taken(7, 240);
        assert_eq!(owners.store(7, who(1), 300), Found::Read(240));
        owners.taken(7, 340);
        assert_eq!(owners.load(7, who(0)), Found::WrittenBy(who(1), 340));
    }

    #[test]
    fn the_thread_that_wrote_a_line_is_known_after_a_switch() {
        let owners = Owners::new(64);
        let [wrote, runs] = [3, 255].map(|thread| Who { vcpu: 1, thread });
        owners.store(7, wrote, 100);
        assert_eq!(owners.load(7, who(0)), Found::WrittenBy(wrote, 100));
        owners.store(7, wrote, 200);
        assert!(!owners.store_at(owners.place_number(7), 7, runs, 300));
        assert_eq!(owners.store(7, runs, 300), Found::Free, "it is in the vCPU's cache");
        assert_eq!(owners.store(7, who(2), 400), Found::WrittenBy(runs, 300));
    }

    #[test]
    fn the_only_reader_of_a_line_writes_it_at_no_cost() {
        let owners = Owners::new(64);
        assert_eq!(owners.load(9, who(5)), Found::Free);
        assert_eq!(owners.store(9, who(5), 1), Found::Free);
        assert_eq!(owners.load(10, who(5)), Found::Free);
        assert_eq!(owners.store(10, who(6), 1), Found::Read(0));
    }

    #[test]
    fn a_line_with_a_reused_entry_is_forgotten() {
        let owners = Owners::new(1);
        assert_eq!(owners.store(1, who(0), 1), Found::Free);
        assert_eq!(owners.store(5, who(0), 1), Found::Free);
        assert_eq!(owners.store(1, who(1), 1), Found::Free);
        owners.clear();
        assert_eq!(owners.store(1, who(0), 1), Found::Free);
    }

    #[test]
    fn pages_of_several_nodes_at_the_same_offset_are_all_known() {
        let owners = Owners::new(4096);
        let lines = || (0..4_u64).flat_map(|node| (0..1024).map(move |line| (node << 24) + line));
        lines().for_each(|line| assert_eq!(owners.store(line, who(1), 0), Found::Free));
        let known = lines()
            .filter(|line| owners.load(*line, who(0)) == Found::WrittenBy(who(1), 0))
            .count();
        assert!(known > 3500, "{known} of 4096 in four places for each");
    }
}
