//! What is done once in a process, whichever of its threads comes to it first.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Release},
};
use std::thread;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(1);

/// Whether it was done. Unlike [`std::sync::Once`] it has not begun in a process that fork(2) makes
/// while another thread is at it.
#[derive(Debug)]
pub struct OncePerProcess {
    /// The process in which it began, and that in which it is done.
    began: AtomicU32,
    done: AtomicU32,
}

impl OncePerProcess {
    /// Nobody has come to it.
    pub const fn new() -> Self {
        Self { began: AtomicU32::new(0), done: AtomicU32::new(0) }
    }

    /// Does it, or waits until the thread that was first has done it.
    pub fn run(&self, does: impl FnOnce()) {
        let own = std::process::id();
        if self.began.swap(own, AcqRel) != own {
            does();
            self.done.store(own, Release);
        }
        while self.done.load(Acquire) != own {
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn one_thread_does_it_and_none_goes_on_before_it_is_done() {
        let (once, times, done) = (OncePerProcess::new(), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    once.run(|| {
                        times.fetch_add(1, Relaxed);
                        thread::sleep(Duration::from_millis(30));
                        done.fetch_add(1, Relaxed);
                    });
                    assert_eq!(done.load(Relaxed), 1);
                });
            }
        });
        assert_eq!(times.into_inner(), 1);
    }
}
