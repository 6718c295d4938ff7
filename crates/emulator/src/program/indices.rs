//! Who is behind QEMU's index of a thread. QEMU gives a thread the index behind the highest one there
//! is: where each thread makes the next one before it ends, indices go on without bound, however few
//! threads there are at a time.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::thread::Thread;

/// Threads that there are at a time, at most.
pub const MOST: usize = 4096;

/// What is known of one index.
#[derive(Debug, Default)]
struct Place {
    /// The index and 1; 0 if the place is free.
    owner: AtomicUsize,
    seat: AtomicUsize,
    /// Its thread, while that has its turn.
    here: AtomicPtr<Thread>,
}

impl Place {
    fn is_of(&self, index: usize) -> bool {
        self.owner.load(Relaxed) == index + 1
    }
}

/// The places of all indices whose threads live. But for its owner, a place is used by the thread of
/// its index alone.
#[derive(Debug)]
pub struct Indices(Box<[Place]>);

impl Indices {
    /// Nobody is there yet.
    pub fn new() -> Self {
        Self((0..MOST).map(|_| Place::default()).collect())
    }

    /// The seat of an index, if its thread has one.
    #[inline]
    pub fn seat(&self, index: usize) -> Option<usize> {
        Some(self.of(index)?.seat.load(Relaxed))
    }

    /// The thread of an index, while that has its turn; else null.
    #[inline]
    pub fn here(&self, index: usize) -> *mut Thread {
        self.of(index).map_or(ptr::null_mut(), |place| place.here.load(Relaxed))
    }

    /// The thread of an index takes a seat; false if there are too many.
    pub fn sits(&self, index: usize, seat: usize) -> bool {
        let free = self
            .from(index)
            .find(|place| place.owner.compare_exchange(0, index + 1, Acquire, Relaxed).is_ok());
        if let Some(place) = free {
            place.seat.store(seat, Relaxed);
        }
        free.is_some()
    }

    /// The thread of an index takes its turn, or gives it away (null).
    pub fn is_here(&self, index: usize, thread: *mut Thread) {
        if let Some(place) = self.of(index) {
            place.here.store(thread, Relaxed);
        }
    }

    /// The thread of an index ends: the index may be another one's now.
    pub fn ends(&self, index: usize) {
        if let Some(place) = self.of(index) {
            place.here.store(ptr::null_mut(), Relaxed);
            place.owner.store(0, Release);
        }
    }

    #[inline]
    fn of(&self, index: usize) -> Option<&Place> {
        let first = &self.0[index % MOST];
        if first.is_of(index) { Some(first) } else { self.elsewhere(index) }
    }

    #[cold]
    fn elsewhere(&self, index: usize) -> Option<&Place> {
        self.from(index).find(|place| place.is_of(index))
    }

    /// All places, that of an index first.
    fn from(&self, index: usize) -> impl Iterator<Item = &Place> {
        let (before, behind) = self.0.split_at(index % MOST);
        behind.iter().chain(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_that_go_on_without_bound_are_those_of_different_threads() {
        let indices = Indices::new();
        assert!(indices.sits(0, 7));
        let mut thread = 5_usize;
        indices.is_here(0, ptr::from_mut(&mut thread).cast());
        for index in 1..=3 * MOST {
            assert_eq!(indices.seat(index), None, "of nobody yet");
            assert!(indices.here(index).is_null());
            assert!(indices.sits(index, index + 100));
            // Each one makes the next one and ends then.
            indices.ends(index - 1 + usize::from(index == 1));
            assert_eq!(indices.seat(0), Some(7));
        }
        assert!(!indices.here(0).is_null());
        assert_eq!(indices.seat(3 * MOST), Some(3 * MOST + 100));
    }

    #[test]
    fn more_threads_at_a_time_than_places_are_refused() {
        let indices = Indices::new();
        assert!((0..MOST).all(|index| indices.sits(3 * index, index)));
        assert!((0..MOST).all(|index| indices.seat(3 * index) == Some(index)));
        assert!(!indices.sits(1, 0));
        indices.ends(3);
        assert!(indices.sits(1, 0));
    }
}
