//! The store queue: stores that wait for their lines after they have retired.
//!
//! A store leaves the reorder buffer when its address and data are known, and waits in the queue until
//! its line has arrived, in order with the others ("Intel 64 and IA-32 Architectures Software Developer's
//! Manual", volume 3, 9.2.2; AMD's guide for family 19h, 2.12). So a store that misses stops later
//! instructions only when the queue is full. Its line is requested at once: a Zen 4 stores to random lines
//! of memory 2.3 times as fast as it loads them.

use super::window::Window;

/// The store queue of a core.
#[derive(Clone, Debug)]
pub struct StoreQueue {
    /// The stores that wait for a line; `None` if the length of the queue is unknown.
    waiting: Option<Window>,
    /// Number of stores so far.
    stored: u64,
}

impl StoreQueue {
    /// Creates an empty queue of this length; 0 if the length is unknown.
    pub fn new(entries: u32) -> Self {
        Self { waiting: (entries > 0).then(|| Window::new(entries)), stored: 0 }
    }

    /// Records that the next store waits for its line until `done_ps`; returns false if it waits in the
    /// reorder buffer, because the queue is not known.
    pub fn waits(&mut self, done_ps: u64) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        waiting.add(self.stored, done_ps, true);
        true
    }

    /// Returns the time from `now_ps` on at which the next store finds an entry.
    #[inline]
    pub fn room_ps(&self, now_ps: u64) -> u64 {
        self.waiting.as_ref().map_or(now_ps, |waiting| waiting.comes_ps(self.stored, now_ps))
    }

    /// Returns the number of the next store, from 1 on.
    #[inline]
    pub fn next(&self) -> u64 {
        self.stored + 1
    }

    /// Adds the next store.
    #[inline]
    pub fn add(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.comes(self.stored, 0);
        }
        self.stored += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_waits_for_an_entry_only_behind_as_many_as_the_queue_holds() {
        let mut queue = StoreQueue::new(4);
        assert!(queue.waits(1000));
        let mut room_ps = || {
            let room_ps = queue.room_ps(10);
            queue.add();
            room_ps
        };
        assert_eq!([(); 6].map(|()| room_ps()), [10, 10, 10, 10, 1000, 10]);
        let mut unknown = StoreQueue::new(0);
        assert!(!unknown.waits(1000));
        assert_eq!(unknown.room_ps(10), 10);
    }
}
