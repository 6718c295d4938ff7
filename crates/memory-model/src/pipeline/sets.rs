//! The sets of the nearest cache, each of which takes one line at a time.
//!
//! Measured on a Zen 4: independent loads of lines in one set take 9.4 cycles each, in two sets 5, in
//! four 2.3, and in more sets as long as any lines from the L2, in any order, from the L2 and from
//! the L3. The lines of a column share a set if the rows of the matrix are 4 KiB long.

/// Sets of the nearest cache of the families for which this time is known: 32 KiB in eight ways.
const SETS: usize = 64;

/// The times at which sets can take their next line.
#[derive(Clone, Debug)]
pub struct Sets {
    each_ps: u64,
    next_ps: [u64; SETS],
}

impl Sets {
    /// Creates sets with this time between two lines.
    pub fn new(each_ps: u64) -> Self {
        Self { each_ps, next_ps: [0; SETS] }
    }

    /// Returns the time at which a line that could begin at `issue_ps` is taken; nothing begins before
    /// `now_ps` any more.
    #[inline]
    pub fn room_ps(&mut self, line: u64, (now_ps, issue_ps): (u64, u64)) -> u64 {
        let next_ps = &mut self.next_ps[usize::try_from(line % SETS as u64).unwrap_or(0)];
        // An access with a late address may take the slot of one that is made now.
        let begins_ps = issue_ps.max(*next_ps);
        *next_ps = (*next_ps).max(now_ps) + self.each_ps;
        begins_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_set_come_one_after_the_other_and_those_of_others_pass_them() {
        let mut sets = Sets::new(10);
        let mut room_ps = |line| sets.room_ps(line, (100, 100));
        assert_eq!([0, 64, 1, 128, 65].map(&mut room_ps), [100, 110, 100, 120, 110]);
        assert_eq!(sets.room_ps(0, (500, 600)), 600);
        assert_eq!(sets.room_ps(0, (500, 500)), 510, "the one before has a late address");
    }
}
