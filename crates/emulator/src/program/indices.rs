//! Maps QEMU's thread indices to threads. QEMU gives a new thread an index above the highest in
//! use. If each thread creates the next one before it ends, indices grow without bound, even if few
//! threads are alive.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::thread::Thread;

/// Maximum number of threads alive at a time.
pub const MOST: usize = 4096;

#[derive(Debug, Default)]
struct Place {
    /// The index plus 1; 0 if the entry is free.
    owner: AtomicUsize,
    seat: AtomicUsize,
    /// The thread, while it holds the turn.
    here: AtomicPtr<Thread>,
}

impl Place {
    fn is_of(&self, index: usize) -> bool {
        // Relaxed, as a thread looks up only its own index, which it entered itself.
        self.owner.load(Relaxed) == index + 1
    }
}

/// Entries of all indices with living threads. Apart from its owner field, an entry is used only by
/// its own thread.
#[derive(Debug)]
pub struct Indices(Box<[Place]>);

impl Indices {
    pub fn new() -> Self {
        Self((0..MOST).map(|_| Place::default()).collect())
    }

    /// Returns the seat of an index, if its thread has one.
    #[inline]
    pub fn seat(&self, index: usize) -> Option<usize> {
        Some(self.of(index)?.seat.load(Relaxed))
    }

    /// Returns the thread of an index while that holds the turn, or null.
    #[inline]
    pub fn here(&self, index: usize) -> *mut Thread {
        self.of(index).map_or(ptr::null_mut(), |place| place.here.load(Relaxed))
    }

    /// Gives the thread of an index a seat; returns false if the table is full.
    pub fn sits(&self, index: usize, seat: usize) -> bool {
        let free = self
            .from(index)
            // Pairs with the release in `ends`: a new owner's stores come after the previous
            // owner's.
            .find(|place| place.owner.compare_exchange(0, index + 1, Acquire, Relaxed).is_ok());
        if let Some(place) = free {
            place.seat.store(seat, Relaxed);
        }
        free.is_some()
    }

    /// Registers the thread that takes the turn, or null when it gives it away.
    pub fn is_here(&self, index: usize, thread: *mut Thread) {
        if let Some(place) = self.of(index) {
            place.here.store(thread, Relaxed);
        }
    }

    /// Frees the index of a thread that ends.
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

    /// Returns all entries, starting with the index's own.
    fn from(&self, index: usize) -> impl Iterator<Item = &Place> {
        let (before, behind) = self.0.split_at(index % MOST);
        behind.iter().chain(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_indices_belong_to_different_threads() {
        let indices = Indices::new();
        assert!(indices.sits(0, 7));
        let mut thread = 5_usize;
        indices.is_here(0, ptr::from_mut(&mut thread).cast());
        for index in 1..=3 * MOST {
            assert_eq!(indices.seat(index), None, "of nobody yet");
            assert!(indices.here(index).is_null());
            assert!(indices.sits(index, index + 100));
            // Each thread creates the next one, then ends.
            indices.ends(index - 1 + usize::from(index == 1));
            assert_eq!(indices.seat(0), Some(7));
        }
        assert!(!indices.here(0).is_null());
        assert_eq!(indices.seat(3 * MOST), Some(3 * MOST + 100));
    }

    #[test]
    fn refuses_more_threads_at_a_time_than_entries() {
        let indices = Indices::new();
        assert!((0..MOST).all(|index| indices.sits(3 * index, index)));
        assert!((0..MOST).all(|index| indices.seat(3 * index) == Some(index)));
        assert!(!indices.sits(1, 0));
        indices.ends(3);
        assert!(indices.sits(1, 0));
    }
}
