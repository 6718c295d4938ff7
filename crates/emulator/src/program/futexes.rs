//! Who waits for whom (futex(2)): threads that wait at an address go on in the order in which they
//! began to, when another one wakes them.

use std::collections::{HashMap, VecDeque};

/// What futex(2) does, by its command's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Futex {
    /// Waits to be woken.
    Wait,
    /// Wakes others at one address, and perhaps at a second one.
    Wake,
    /// Wakes some at one address, and has the others wait at a second one.
    Requeue,
    /// Anything else.
    Other,
}

impl Futex {
    /// Of the second argument of the call.
    pub fn of(operation: u64) -> Self {
        match operation & 0x7f {
            0 | 9 => Self::Wait,
            1 | 5 | 10 => Self::Wake,
            3 | 4 => Self::Requeue,
            _ => Self::Other,
        }
    }

    /// Whether it wakes others.
    pub fn wakes(self) -> bool {
        matches!(self, Self::Wake | Self::Requeue)
    }
}

/// Seats of those who wait, by address, the first one first.
#[derive(Debug, Default)]
pub struct Futexes(HashMap<u64, VecDeque<usize>>);

impl Futexes {
    /// A thread waits at an address.
    pub fn waits(&mut self, seat: usize, address: u64) {
        self.0.entry(address).or_default().push_back(seat);
    }

    /// A thread no longer waits at an address, whatever the reason.
    pub fn leaves(&mut self, seat: usize, address: u64) {
        if let Some(waiting) = self.0.get_mut(&address) {
            waiting.retain(|of| *of != seat);
            if waiting.is_empty() {
                self.0.remove(&address);
            }
        }
    }

    /// Takes the first so many who wait at an address.
    pub fn take(&mut self, address: u64, count: usize) -> Vec<usize> {
        let Some(waiting) = self.0.get_mut(&address) else { return Vec::new() };
        let taken = waiting.drain(..count.min(waiting.len())).collect();
        if waiting.is_empty() {
            self.0.remove(&address);
        }
        taken
    }

    /// The first so many who wait at an address wait at another one.
    pub fn requeue(&mut self, from: u64, to: u64, count: usize) {
        let moved = self.take(from, count);
        if !moved.is_empty() {
            self.0.entry(to).or_default().extend(moved);
        }
    }

    /// Nobody waits any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_first_goes_on_first() {
        let mut futexes = Futexes::default();
        [3, 1, 2].into_iter().for_each(|seat| futexes.waits(seat, 0x40));
        futexes.leaves(1, 0x40);
        futexes.leaves(1, 0x80);
        assert_eq!(futexes.take(0x40, 1), [3]);
        assert_eq!(futexes.take(0x40, usize::MAX), [2]);
        assert!(futexes.take(0x40, 1).is_empty() && futexes.0.is_empty());
    }

    #[test]
    fn who_is_requeued_waits_behind_those_who_are_there() {
        let mut futexes = Futexes::default();
        [1, 2, 3].into_iter().for_each(|seat| futexes.waits(seat, 0x40));
        futexes.waits(9, 0x80);
        futexes.requeue(0x40, 0x80, 2);
        futexes.requeue(0x99, 0x80, 2);
        assert_eq!(futexes.take(0x80, 8), [9, 1, 2]);
        assert_eq!(futexes.take(0x40, 8), [3]);
    }

    #[test]
    fn commands_are_told_with_their_flags() {
        let known = [0x189, 0x81, 0x84, 6].map(Futex::of);
        assert_eq!(known, [Futex::Wait, Futex::Wake, Futex::Requeue, Futex::Other]);
    }
}
