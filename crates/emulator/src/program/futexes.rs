//! Tracks the waiters of each futex (futex(2)): waiters at an address resume in the order of their
//! arrival.

use std::collections::{HashMap, VecDeque};

/// An operation of futex(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Futex {
    Wait,
    /// Wakes waiters at one address, and perhaps at a second one.
    Wake,
    /// Wakes some waiters at one address, and moves the others to a second one.
    Requeue,
    Other,
}

impl Futex {
    /// Decodes the second argument of the call.
    pub fn of(operation: u64) -> Self {
        // `linux/futex.h`, without the flags for private futexes (0x80) and the clock (0x100): 0
        // and 9 are `FUTEX_WAIT` and `_WAIT_BITSET`; 1, 5 and 10 `FUTEX_WAKE`, `_WAKE_OP` and
        // `_WAKE_BITSET`; 3 and 4 `FUTEX_REQUEUE` and `_CMP_REQUEUE`.
        match operation & 0x7f {
            0 | 9 => Self::Wait,
            1 | 5 | 10 => Self::Wake,
            3 | 4 => Self::Requeue,
            _ => Self::Other,
        }
    }

    /// Returns true if the operation wakes others.
    pub fn wakes(self) -> bool {
        matches!(self, Self::Wake | Self::Requeue)
    }
}

/// Seats of waiters by address, in order of arrival.
#[derive(Debug, Default)]
pub struct Futexes(HashMap<u64, VecDeque<usize>>);

impl Futexes {
    /// Adds a waiter at an address.
    pub fn waits(&mut self, seat: usize, address: u64) {
        self.0.entry(address).or_default().push_back(seat);
    }

    /// Removes a waiter from an address.
    pub fn leaves(&mut self, seat: usize, address: u64) {
        if let Some(waiting) = self.0.get_mut(&address) {
            waiting.retain(|of| *of != seat);
            if waiting.is_empty() {
                self.0.remove(&address);
            }
        }
    }

    /// Removes and returns the first `count` waiters at an address.
    pub fn take(&mut self, address: u64, count: usize) -> Vec<usize> {
        let Some(waiting) = self.0.get_mut(&address) else { return Vec::new() };
        let taken = waiting.drain(..count.min(waiting.len())).collect();
        if waiting.is_empty() {
            self.0.remove(&address);
        }
        taken
    }

    /// Moves the first `count` waiters at an address to another one.
    pub fn requeue(&mut self, from: u64, to: u64, count: usize) {
        let moved = self.take(from, count);
        if !moved.is_empty() {
            self.0.entry(to).or_default().extend(moved);
        }
    }

    /// Removes all waiters.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_go_on_in_order_of_arrival() {
        let mut futexes = Futexes::default();
        [3, 1, 2].into_iter().for_each(|seat| futexes.waits(seat, 0x40));
        futexes.leaves(1, 0x40);
        futexes.leaves(1, 0x80);
        assert_eq!(futexes.take(0x40, 1), [3]);
        assert_eq!(futexes.take(0x40, usize::MAX), [2]);
        assert!(futexes.take(0x40, 1).is_empty() && futexes.0.is_empty());
    }

    #[test]
    fn requeued_waiters_go_to_the_end_of_the_queue() {
        let mut futexes = Futexes::default();
        [1, 2, 3].into_iter().for_each(|seat| futexes.waits(seat, 0x40));
        futexes.waits(9, 0x80);
        futexes.requeue(0x40, 0x80, 2);
        futexes.requeue(0x99, 0x80, 2);
        assert_eq!(futexes.take(0x80, 8), [9, 1, 2]);
        assert_eq!(futexes.take(0x40, 8), [3]);
    }

    #[test]
    fn decodes_commands_with_flags() {
        let known = [0x189, 0x81, 0x84, 6].map(Futex::of);
        assert_eq!(known, [Futex::Wait, Futex::Wake, Futex::Requeue, Futex::Other]);
    }
}
