//! The schedulers of a core: entries of instructions that wait for their operands.
//!
//! The reorder buffer holds more instructions than the schedulers, so a long chain fills these
//! first, and later instructions begin no earlier than the chain's next entry leaves.

use alloc::collections::VecDeque;

/// The schedulers, by the instructions they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Arithmetic of general registers, until its operands are known.
    Integer,
    /// Arithmetic of vector registers, until its operands are known.
    Vector,
    /// Loads, until their addresses are known.
    Load,
}

/// Waiting instructions.
#[derive(Clone, Debug, Default)]
struct Scheduler {
    taken: u64,
    /// The times at which they leave, in order, and how many then do. Most of them leave last of all, so
    /// that they are added at the end.
    leave: VecDeque<(u64, u64)>,
}

/// The schedulers of a core.
#[derive(Clone, Debug)]
pub struct Schedulers {
    /// Entries; `None` if they are not limited.
    sizes: Option<[u64; 2]>,
    /// The scheduler of each [`Pool`].
    places: [usize; 3],
    /// Shorter waits than this cannot fill a scheduler.
    least_ps: u64,
    all: [Scheduler; 2],
}

impl Schedulers {
    /// Creates empty schedulers of these sizes, given the scheduler of each pool, for a core that
    /// begins `width` instructions per cycle.
    pub fn new(of: Option<([u64; 2], [usize; 3])>, (width, cycle_ps): (u32, u64)) -> Self {
        let (sizes, places) = (of.map(|of| of.0), of.map_or([0; 3], |of| of.1));
        let least = sizes.map_or(0, |sizes| sizes[0].min(sizes[1]));
        let least_ps = least * cycle_ps / u64::from(width.max(1));
        Self { sizes, places, least_ps, all: Default::default() }
    }

    /// Returns the minimum time by which operands of an instruction issued at `now_ps` must be late
    /// for the instruction to count; `None` without limits.
    #[inline]
    pub fn least_ps(&self, now_ps: u64) -> Option<u64> {
        self.sizes.map(|_| now_ps + self.least_ps)
    }

    /// Adds instructions that wait until a time.
    #[inline]
    pub fn add(&mut self, pool: Pool, count: u64, until_ps: u64) {
        let scheduler = &mut self.all[self.places[pool as usize]];
        scheduler.taken += count;
        let behind = scheduler.leave.iter().rposition(|of| *of <= (until_ps, count));
        scheduler.leave.insert(behind.map_or(0, |of| of + 1), (until_ps, count));
    }

    /// Returns true if this number of additional instructions could fill a scheduler.
    #[inline]
    pub fn may_fill(&self, further: u64) -> bool {
        let Some(sizes) = self.sizes else { return false };
        self.all.iter().zip(sizes).any(|(of, size)| of.taken + further > size)
    }

    /// Returns the time from `now_ps` on at which an instruction finds entries in all schedulers.
    #[inline]
    pub fn room_ps(&mut self, now_ps: u64) -> u64 {
        let Some(sizes) = self.sizes else { return now_ps };
        let mut at_ps = now_ps;
        for (scheduler, size) in self.all.iter_mut().zip(sizes) {
            while scheduler.taken > size
                && let Some((until_ps, count)) = scheduler.leave.pop_front()
            {
                scheduler.taken -= count;
                at_ps = at_ps.max(until_ps);
            }
        }
        at_ps
    }

    /// Removes all instructions.
    pub fn clear(&mut self) {
        for scheduler in &mut self.all {
            scheduler.taken = 0;
            scheduler.leave.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_waits_for_those_that_leave_a_full_scheduler_first() {
        let mut schedulers = Schedulers::new(Some(([10, 4], [0, 0, 1])), (4, 100));
        assert_eq!(schedulers.least_ps(1000), Some(1100));
        schedulers.add(Pool::Integer, 6, 5000);
        schedulers.add(Pool::Vector, 4, 3000);
        assert_eq!(schedulers.room_ps(1000), 1000);
        assert!(schedulers.may_fill(1));
        schedulers.add(Pool::Integer, 1, 9000);
        assert_eq!(schedulers.room_ps(1000), 3000);
        schedulers.add(Pool::Load, 5, 4000);
        assert_eq!(schedulers.room_ps(1000), 4000);
        let mut unlimited = Schedulers::new(None, (4, 100));
        unlimited.add(Pool::Load, 500, 4000);
        assert_eq!((unlimited.room_ps(7), unlimited.may_fill(1000)), (7, false));
        assert_eq!(unlimited.least_ps(7), None);
    }
}
