//! Who has a line: what a load or store of it must take from another vCPU's caches.
//!
//! A directory of lines as in MESI: one vCPU has read it, several have, or one has written it.
//! It has a place for each of many lines and forgets a line that another one takes the place
//! of, as inclusive directories do. Whether a vCPU still has the line that the directory says
//! is for its caches to tell.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Places for each line that the caches hold.
const PLACES_PER_LINE: u64 = 4;
const MOST_PLACES: u64 = 1 << 22;
/// Lines of a page.
const PAGE_LINES: u64 = 64;
/// Of 2^64, for multiplicative hashing (D. E. Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
const STATE_SHIFT: u32 = 8;
const LINE_SHIFT: u32 = 10;
const READ: u64 = 1;
const SHARED: u64 = 2;
const WRITTEN: u64 = 3;

/// What an access finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nobody else stands in its way.
    Free,
    /// This vCPU wrote the line last, and did so at this time.
    WrittenBy(usize, u64),
    /// Others have read the line, which is about to be written.
    Read,
}

#[derive(Debug, Default)]
struct Place {
    /// The line's number plus one, its state, the vCPU; 0 for none.
    entry: AtomicU64,
    /// When it was last written.
    written_ps: AtomicU64,
}

/// The directory.
#[derive(Debug)]
pub struct Owners {
    places: Vec<Place>,
}

impl Owners {
    /// A directory for caches of so many lines.
    pub fn new(lines: u64) -> Self {
        let places = (PLACES_PER_LINE * lines).clamp(1, MOST_PLACES).next_power_of_two();
        Self { places: (0..places).map(|_| Place::default()).collect() }
    }

    /// A vCPU loads a line that none of its own caches has.
    pub fn load(&self, line: u64, vcpu: usize) -> Found {
        let (place, known) = self.place(line);
        let tag = (line + 1) << LINE_SHIFT;
        let (state, who) = known.unwrap_or((0, vcpu));
        let next = match state {
            0 => READ << STATE_SHIFT | vcpu as u64,
            _ if who == vcpu && state != SHARED => return Found::Free,
            _ => SHARED << STATE_SHIFT,
        };
        place.entry.store(tag | next, Relaxed);
        if state == WRITTEN {
            Found::WrittenBy(who, place.written_ps.load(Relaxed))
        } else {
            Found::Free
        }
    }

    /// A vCPU stores to a line at a time of its own.
    #[inline]
    pub fn store(&self, line: u64, vcpu: usize, time_ps: u64) -> Found {
        let (place, known) = self.place(line);
        let own = (line + 1) << LINE_SHIFT | WRITTEN << STATE_SHIFT | vcpu as u64;
        let found = match known {
            None => Found::Free,
            Some((state, who)) if state != SHARED && who == vcpu => Found::Free,
            Some((READ | SHARED, _)) => Found::Read,
            Some((_, who)) => Found::WrittenBy(who, place.written_ps.load(Relaxed)),
        };
        place.entry.store(own, Relaxed);
        place.written_ps.store(time_ps, Relaxed);
        found
    }

    /// The line's last store ended at this time.
    pub fn stored(&self, line: u64, time_ps: u64) {
        self.place(line).0.written_ps.store(time_ps, Relaxed);
    }

    /// A line leaves all caches; whether others than this vCPU may have it.
    pub fn forget(&self, line: u64, vcpu: usize) -> bool {
        let (place, known) = self.place(line);
        let Some((state, who)) = known else { return false };
        place.entry.store(0, Relaxed);
        state == SHARED || who != vcpu
    }

    /// Forgets all lines.
    pub fn clear(&self) {
        self.places.iter().for_each(|place| place.entry.store(0, Relaxed));
    }

    /// A line's place, and its state and vCPU if it has it.
    #[inline]
    fn place(&self, line: u64) -> (&Place, Option<(u64, usize)>) {
        let at = scattered(line) & (self.places.len() as u64 - 1);
        let at = usize::try_from(at).unwrap_or(0);
        let place = &self.places[at];
        let entry = place.entry.load(Relaxed);
        let known = (entry >> LINE_SHIFT == line + 1).then(|| {
            let vcpu = usize::try_from(entry & 0xff).unwrap_or(0);
            (entry >> STATE_SHIFT & 3, vcpu)
        });
        (place, known)
    }
}

/// Where to look for a line: those of a page side by side, and pages anywhere, so that the same
/// page of several nodes, each of which begins at a power of two, does not have one place.
#[inline]
fn scattered(line: u64) -> u64 {
    let (page, line) = (line / PAGE_LINES, line % PAGE_LINES);
    (page.wrapping_mul(GOLDEN_RATIO) >> 32) * PAGE_LINES + line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_writer_to_writer_and_from_writer_to_readers() {
        let owners = Owners::new(64);
        assert_eq!(owners.store(7, 0, 100), Found::Free);
        assert_eq!(owners.store(7, 0, 110), Found::Free);
        assert_eq!(owners.store(7, 1, 200), Found::WrittenBy(0, 110));
        assert_eq!(owners.load(7, 2), Found::WrittenBy(1, 200));
        assert_eq!(owners.load(7, 3), Found::Free, "memory has it now");
        assert_eq!(owners.store(7, 1, 300), Found::Read);
        owners.stored(7, 340);
        assert_eq!(owners.load(7, 0), Found::WrittenBy(1, 340));
    }

    #[test]
    fn who_alone_has_read_a_line_writes_it_for_nothing() {
        let owners = Owners::new(64);
        assert_eq!(owners.load(9, 5), Found::Free);
        assert_eq!(owners.store(9, 5, 1), Found::Free);
        assert_eq!(owners.load(10, 5), Found::Free);
        assert_eq!(owners.store(10, 6, 1), Found::Read);
    }

    #[test]
    fn a_line_whose_place_is_taken_is_forgotten() {
        let owners = Owners::new(1);
        assert_eq!(owners.store(1, 0, 1), Found::Free);
        assert_eq!(owners.store(5, 0, 1), Found::Free);
        assert_eq!(owners.store(1, 1, 1), Found::Free);
        owners.clear();
        assert_eq!(owners.store(1, 0, 1), Found::Free);
    }

    #[test]
    fn pages_of_several_nodes_at_the_same_place_are_all_known() {
        let owners = Owners::new(4096);
        let lines = || (0..4_u64).flat_map(|node| (0..1024).map(move |line| (node << 24) + line));
        lines().for_each(|line| assert_eq!(owners.store(line, 1, 0), Found::Free));
        let known = lines().filter(|line| owners.load(*line, 0) == Found::WrittenBy(1, 0)).count();
        assert!(known > 3500, "{known} of 4096 in four places for each");
    }
}
