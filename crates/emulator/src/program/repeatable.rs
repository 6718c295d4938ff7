//! Lines that a thread accessed recently, between samples, when blocks take their mean time. A
//! repeated access to one of them is only counted: the line is in the nearest cache, and its page
//! in the TLB. The first access to a line in each round takes the full path, so that neither the
//! cache nor the TLB evicts it.

use numalab_memory_model::counters::Kind;

/// Number of lines that are distinguished; a power of two.
const PLACES: usize = 512;
/// Greater than any line number.
const NONE: u64 = u64::MAX;

/// A line, with the last round in which it was loaded and the last in which it was stored to, and
/// its uncounted accesses.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Place {
    line: u64,
    rounds: [u32; 2],
    accesses: [u32; 2],
}

const EMPTY: Place = Place { line: NONE, rounds: [0; 2], accesses: [0; 2] };

/// The accesses of a line that are not counted yet.
pub type Uncounted = (u64, [u32; 2]);

/// The latest lines.
#[derive(Debug)]
pub struct RepeatableLines {
    round: u32,
    places: Box<[Place; PLACES]>,
}

impl Default for RepeatableLines {
    fn default() -> Self {
        Self { round: 1, places: Box::new([EMPTY; PLACES]) }
    }
}

impl RepeatableLines {
    /// Counts an access to a line if the line had one of this kind in this round; returns false
    /// otherwise.
    #[inline]
    pub fn again(&mut self, line: u64, kind: Kind) -> bool {
        let place = &mut self.places[place(line)];
        let is_known = place.line == line && place.rounds[kind as usize] == self.round;
        place.accesses[kind as usize] += u32::from(is_known);
        is_known
    }

    /// Adds a line that was accessed; returns the accesses of the line that it displaces.
    #[inline]
    pub fn keep(&mut self, line: u64, kind: Kind) -> Option<Uncounted> {
        let place = &mut self.places[place(line)];
        let before = if place.line == line { EMPTY } else { std::mem::replace(place, EMPTY) };
        place.line = line;
        place.rounds[kind as usize] = self.round;
        before.uncounted()
    }

    /// Begins the next round: all lines take the full path once.
    pub fn ends_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Drops a line; returns its accesses.
    #[inline]
    pub fn take(&mut self, line: u64) -> Option<Uncounted> {
        let place = &mut self.places[place(line)];
        (place.line == line).then(|| std::mem::replace(place, EMPTY).uncounted()).flatten()
    }

    /// Drops all lines; returns their accesses.
    pub fn drain(&mut self) -> impl Iterator<Item = Uncounted> {
        self.places.iter_mut().filter_map(|place| std::mem::replace(place, EMPTY).uncounted())
    }
}

impl Place {
    #[inline]
    fn uncounted(self) -> Option<Uncounted> {
        (self.accesses != [0; 2]).then_some((self.line, self.accesses))
    }
}

#[inline]
fn place(line: u64) -> usize {
    usize::try_from(line % PLACES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Load, Store};

    #[test]
    fn an_access_is_repeated_within_a_round_by_its_kind_and_counted_once() {
        let mut repeatable = RepeatableLines::default();
        assert!(!repeatable.again(7, Load));
        assert_eq!(repeatable.keep(7, Load), None);
        assert!(
            repeatable.again(7, Load) && repeatable.again(7, Load) && !repeatable.again(7, Store)
        );
        repeatable.keep(7, Store);
        assert!(repeatable.again(7, Store));
        repeatable.ends_round();
        assert!(!repeatable.again(7, Load) && !repeatable.again(7, Store));
        repeatable.keep(7, Load);
        assert!(repeatable.again(7, Load) && !repeatable.again(7, Store));
        let other = 7 + PLACES as u64;
        assert_eq!(repeatable.keep(other, Load), Some((7, [3, 1])));
        assert!(repeatable.again(other, Load) && !repeatable.again(7, Load));
        assert_eq!((repeatable.take(7), repeatable.take(other)), (None, Some((other, [1, 0]))));
        repeatable.keep(9, Store);
        assert!(repeatable.again(9, Store));
        assert_eq!(repeatable.drain().collect::<Vec<_>>(), [(9, [0, 1])]);
        assert!(!repeatable.again(9, Store) && repeatable.drain().next().is_none());
    }
}
