//! The time of the machine's cpus: what one thread has of it, no other one can have.
//!
//! The host runs threads in an order of its own, and one may have done all its work before another
//! one of the same cpu begins. So each cpu has a diary of virtual time in windows, in which threads
//! book their time as they come. Who finds a window full takes what another cpu of its node has left
//! of it, as a scheduler moves threads to idle cpus, or else goes on in a later one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::lock;

/// Length of a window, in ps.
const WINDOW_PS: u64 = 20_000_000;

/// All cpus' diaries.
#[derive(Debug)]
pub struct Cpus {
    /// Of each cpu, what is taken of each window.
    taken: Vec<Mutex<HashMap<u64, u64>>>,
    /// How long the thread at each place had been busy when it booked last.
    booked_ps: Vec<AtomicU64>,
}

impl Cpus {
    /// So many cpus, and places of threads.
    pub fn new(cpus: usize, places: usize) -> Self {
        Self {
            taken: (0..cpus).map(|_| Mutex::default()).collect(),
            booked_ps: (0..places).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A thread comes to a place, whose threads before it were busy for so long.
    pub fn comes(&self, place: usize, busy_ps: u64) {
        self.booked_ps[place].store(busy_ps, Relaxed);
    }

    /// The thread at a place has been busy until now on any of these cpus, the first one if it can; how
    /// long it waited for that.
    pub fn book(&self, place: usize, cpus: &[usize], busy_ps: u64, now_ps: u64) -> u64 {
        let before_ps = self.booked_ps[place].swap(busy_ps, Relaxed);
        let mut left_ps = busy_ps.saturating_sub(before_ps);
        if left_ps == 0 {
            return 0;
        }
        let mut window = now_ps.saturating_sub(left_ps) / WINDOW_PS;
        loop {
            // It runs on one cpu at a time.
            let mut own_ps = left_ps.min(WINDOW_PS);
            while own_ps > 0 {
                let ends_ps = |taken: u64| window * WINDOW_PS + taken + own_ps;
                let taken = cpus.iter().map(|cpu| (self.taken_ps(*cpu, window), *cpu));
                let idle = taken.clone().find(|(taken, _)| ends_ps(*taken) <= now_ps);
                let Some((_, cpu)) = idle.or_else(|| taken.min_by_key(|(taken, _)| *taken)) else {
                    return 0;
                };
                let mut taken = lock(&self.taken[cpu]);
                let used_ps = taken.entry(window).or_default();
                let here_ps = own_ps.min(WINDOW_PS - *used_ps);
                if here_ps == 0 {
                    break;
                }
                *used_ps += here_ps;
                own_ps -= here_ps;
                left_ps -= here_ps;
                if left_ps == 0 {
                    return (window * WINDOW_PS + *used_ps).saturating_sub(now_ps);
                }
            }
            window += 1;
        }
    }

    /// What is taken of a cpu's window.
    fn taken_ps(&self, cpu: usize, window: u64) -> u64 {
        lock(&self.taken[cpu]).get(&window).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u64 = WINDOW_PS / 2;

    #[test]
    fn a_thread_that_has_its_cpu_alone_waits_for_nobody() {
        let cpus = Cpus::new(2, 4);
        for turn in 1..100 {
            assert_eq!(cpus.book(0, &[0], turn * HALF / 3, turn * HALF / 3), 0);
            assert_eq!(cpus.book(1, &[1], turn * HALF / 3, turn * HALF / 3), 0);
        }
    }

    #[test]
    fn two_threads_of_a_cpu_take_twice_as_long_in_whatever_order_they_come() {
        let one_after_the_other = Cpus::new(1, 2);
        let alone =
            (1..=10).map(|turn| one_after_the_other.book(0, &[0], turn * HALF, turn * HALF));
        assert_eq!(alone.sum::<u64>(), 0);
        assert_eq!(one_after_the_other.book(1, &[0], 10 * HALF, 10 * HALF), 10 * HALF);
        let in_turn = Cpus::new(1, 2);
        let mut waited = [0, 0];
        for turn in 1..=10 {
            for (place, waited_ps) in waited.iter_mut().enumerate() {
                let now_ps = turn * HALF + *waited_ps;
                *waited_ps += in_turn.book(place, &[0], turn * HALF, now_ps);
            }
        }
        assert!(waited.iter().all(|ps| (9 * HALF..=10 * HALF).contains(ps)), "{waited:?}");
    }

    #[test]
    fn four_threads_that_may_run_on_three_cpus_take_a_third_longer() {
        let cpus = Cpus::new(3, 4);
        let mut waited = [0; 4];
        for turn in 1..=60 {
            for (place, waited_ps) in waited.iter_mut().enumerate() {
                let own = place % 3;
                let order = [own, (own + 1) % 3, (own + 2) % 3];
                let now_ps = turn * HALF + *waited_ps;
                *waited_ps += cpus.book(place, &order, turn * HALF, now_ps);
            }
        }
        let third = 20 * HALF;
        assert!(waited.iter().all(|ps| ps.abs_diff(third) <= 3 * HALF), "{waited:?}");
    }

    #[test]
    fn who_comes_to_a_place_books_its_own_time_alone() {
        let cpus = Cpus::new(1, 1);
        cpus.comes(0, 30 * WINDOW_PS);
        assert_eq!(cpus.book(0, &[0], 30 * WINDOW_PS + HALF, HALF), 0);
        assert_eq!(cpus.book(0, &[0], 30 * WINDOW_PS + HALF, HALF), 0, "nothing more");
    }
}
