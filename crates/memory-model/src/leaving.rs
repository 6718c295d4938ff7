//! Lines that other vCPUs are taking from a vCPU. Until such a line leaves for the other vCPU,
//! stores of its old owner still hit. Cores that contend for a line therefore transfer it every few
//! stores, not with each store.

use crate::counters::Figure;

/// Number of lines that a vCPU can be losing at a time; if there are more, the oldest are
/// forgotten.
const PLACES: usize = 16;

/// The departing lines of a vCPU.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// A line's number plus one, and the time at which it leaves for another vCPU.
    places: [(Figure, Figure); PLACES],
}

impl Leaving {
    /// Records that another vCPU takes a line, which leaves at this time.
    pub fn until(&self, line: u64, leaves_ps: u64) {
        let (number, until_ps) = self.place(line);
        number.set(line + 1);
        until_ps.set(leaves_ps);
    }

    /// Reports whether a line that was taken is still in this vCPU's caches.
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
    fn a_line_is_here_until_it_leaves() {
        let leaving = Leaving::default();
        assert!(!leaving.has(0, 0));
        leaving.until(7, 100);
        assert!(leaving.has(7, 99) && !leaving.has(7, 100) && !leaving.has(7 + 16, 99));
        leaving.until(7 + 16, 200);
        assert!(!leaving.has(7, 99), "its place is taken");
    }
}
