//! Threads go on side by side: one that is ahead of others by its own time lets them catch up.
//!
//! The host runs as many threads at a time as it has cpus, each for milliseconds. If threads were let
//! run like that, one would have done all its work before the next one began, and they would never
//! meet in memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How far a thread may be ahead, in ps: two turns of those that vCPUs take.
const MOST_AHEAD_PS: u64 = 10_000_000;
/// Time between two looks at the others, in ps.
const LOOK_PS: u64 = 2_000_000;
/// Nobody waits longer at a time, on the host's clock: who holds it up may wait for it.
const LONGEST: Duration = Duration::from_millis(20);
/// A thread that does not run.
const STOPPED: u64 = u64::MAX;

/// Who runs, and how far each has come.
#[derive(Debug)]
pub struct Pace {
    came_to_ps: Vec<AtomicU64>,
    /// When each looks again, by its time in the present phase.
    looks_at: Vec<AtomicU64>,
}

impl Pace {
    /// Nobody runs yet of so many.
    pub fn new(places: usize) -> Self {
        Self {
            came_to_ps: (0..places).map(|_| AtomicU64::new(STOPPED)).collect(),
            looks_at: (0..places).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Whether the thread at a place, which has been busy for so long in this phase, is to look at
    /// the others.
    #[inline]
    pub fn is_due(&self, place: usize, phase_ps: u64) -> bool {
        let looks_at_ps = self.looks_at[place].load(Relaxed);
        phase_ps >= looks_at_ps || phase_ps + LOOK_PS < looks_at_ps
    }

    /// The thread at a place has come to this time: lets those catch up that are behind.
    #[cold]
    pub fn keep(&self, place: usize, now_ps: u64, phase_ps: u64) {
        self.looks_at[place].store(phase_ps + LOOK_PS, Relaxed);
        self.came_to_ps[place].store(now_ps, Relaxed);
        if self.is_ahead(place, now_ps) {
            let begun = Instant::now();
            while self.is_ahead(place, now_ps) && begun.elapsed() < LONGEST {
                std::thread::yield_now();
            }
        }
    }

    /// The thread at a place waits for the system, or has ended.
    pub fn stops(&self, place: usize) {
        self.came_to_ps[place].store(STOPPED, Relaxed);
        self.looks_at[place].store(0, Relaxed);
    }

    fn is_ahead(&self, place: usize, now_ps: u64) -> bool {
        let others = self.came_to_ps.iter().enumerate().filter(|(other, _)| *other != place);
        let slowest_ps = others.map(|(_, ps)| ps.load(Relaxed)).min().unwrap_or(STOPPED);
        slowest_ps.saturating_add(MOST_AHEAD_PS) < now_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ahead_waits_for_those_that_run_and_for_nobody_else() {
        let pace = Pace::new(3);
        pace.keep(0, 0, 0);
        assert!(pace.is_ahead(1, MOST_AHEAD_PS + 1));
        assert!(!pace.is_ahead(1, MOST_AHEAD_PS));
        pace.stops(0);
        assert!(!pace.is_ahead(1, MOST_AHEAD_PS + 1));
    }

    #[test]
    fn a_thread_looks_at_the_others_now_and_then_and_waits_for_a_while_only() {
        let pace = Pace::new(2);
        assert!(pace.is_due(0, 0));
        pace.keep(1, 0, 0);
        pace.keep(0, u64::MAX / 2, 7);
        assert!(!pace.is_due(0, 7) && pace.is_due(0, 7 + LOOK_PS));
    }
}
