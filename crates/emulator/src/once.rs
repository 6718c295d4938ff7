//! Runs an action once per process, on the first thread that requests it.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Release},
};
use std::thread;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(1);

/// A [`std::sync::Once`] that survives fork(2): in a child forked while another thread is running
/// it, it counts as not started.
#[derive(Debug)]
pub struct OncePerProcess {
    /// Process ids: of the process that started the action, and of the one that finished it.
    began: AtomicU32,
    done: AtomicU32,
}

impl OncePerProcess {
    pub const fn new() -> Self {
        Self { began: AtomicU32::new(0), done: AtomicU32::new(0) }
    }

    /// Runs `action`, or waits until the thread that came first has run it.
    pub fn run(&self, action: impl FnOnce()) {
        let own = std::process::id();
        // A child of fork(2) has another id, so it runs the action itself, even if its parent has
        // begun or finished.
        if self.began.swap(own, AcqRel) != own {
            action();
            self.done.store(own, Release);
        }
        // Pairs with the release above: those that waited see the effects of the action.
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
    fn runs_on_one_thread_and_holds_the_others_until_it_is_done() {
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
