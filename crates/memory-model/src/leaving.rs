//! Lines that other vCPUs are taking from one.
//!
//! Until such a line is with the other vCPU, its old owner goes on storing to it: these are hits. Cores
//! that contend for a line so hand it over every few stores, and not at each one.

use crate::counters::Figure;

/// Lines that one vCPU is losing at a time, of which more are not known.
const PLACES: usize = 16;

/// Where a vCPU's lines go.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// A line's number plus one, and when another vCPU has it.
    places: [(Figure, Figure); PLACES],
}

impl Leaving {
    /// Another vCPU takes a line, and has it at this time.
    pub fn until(&self, line: u64, there_ps: u64) {
        let (number, until_ps) = self.place(line);
        number.set(line + 1);
        until_ps.set(there_ps);
    }

    /// Whether a line that was taken is still here.
    #[inline]
    pub fn has(&self, line: u64, now_ps: u64) -> bool {
        let (number, until_ps) = self.place(line);
        number.get() == line + 1 && now_ps < until_ps.get()
    }

    #[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
    #[inline]
    fn place(&self, line: u64) -> &(Figure, Figure) {
        &self.places[(line % PLACES as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_here_until_it_is_there() {
        let leaving = Leaving::default();
        assert!(!leaving.has(0, 0));
        leaving.until(7, 100);
        assert!(leaving.has(7, 99) && !leaving.has(7, 100) && !leaving.has(7 + 16, 99));
        leaving.until(7 + 16, 200);
        assert!(!leaving.has(7, 99), "its place is taken");
    }
}
