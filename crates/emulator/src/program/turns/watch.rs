//! Sees to it that the turn goes on: what its holder waits for may be one of those who wait for it.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::{NOBODY, Turns};

/// Time between two looks, on the host's clock.
const LOOK: Duration = Duration::from_millis(1);
/// A thread that has the turn and sleeps in the kernel for so long waits for another one.
const LONGEST_CALL: Duration = Duration::from_millis(10);
/// A thread that was given the turn and does not come to take it, for which others do not wait longer.
const LONGEST_WAY: Duration = Duration::from_secs(1);
/// A thread that begins to wait is asleep sooner, even where many others want the host's cpus.
const LONGEST_FALL: Duration = Duration::from_secs(2);

/// What the holder of the turn does, on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Runs,
    Sleeps,
    Gone,
}

impl Turns {
    /// Has a thread of its own watch the turn, once.
    pub(super) fn watch(&'static self) {
        if self.watched.swap(true, Relaxed) {
            return;
        }
        let blocked = BlockedSignals::all();
        let spawned = thread::Builder::new().name("numalab".to_owned()).spawn(|| self.look());
        drop(blocked);
        if spawned.is_err() {
            self.watched.store(false, Relaxed);
        }
    }

    fn look(&self) {
        let mut last = (0, Instant::now());
        loop {
            thread::sleep(LOOK);
            let given = self.given.load(Relaxed);
            if given != last.0 {
                last = (given, Instant::now());
                continue;
            }
            self.look_at_holder(last.1.elapsed());
        }
    }

    /// The turn has been with its holder for so long.
    fn look_at_holder(&self, held: Duration) {
        let given = self.given.load(Relaxed);
        let seat = self.holder.load(Relaxed);
        let tid = self.order().hosts.get(seat).and_then(Option::as_ref).map(|host| host.tid);
        // The order is free meanwhile: the holder may ask for it, and would be seen to wait for us.
        if seat == NOBODY || tid.is_none_or(|tid| doing(tid) == Doing::Runs) {
            return;
        }
        let mut order = self.order();
        let Some(host) = order.hosts.get(seat).and_then(Option::as_ref) else { return };
        if self.given.load(Relaxed) != given || !order.schedule.is_ready(seat) {
            return;
        }
        // Perhaps for all threads to leave translated code.
        self.let_go.fetch_add(1, Relaxed);
        order.hosts.iter().flatten().for_each(|host| host.thread.unpark());
        let most = if host.in_call { LONGEST_CALL } else { LONGEST_WAY };
        if held > most {
            let now_ps = order.turn.map_or(0, |turn| turn.now_ps);
            order.schedule.waits(seat, now_ps);
            self.give(&mut order);
        }
    }
}

/// Waits until a thread sleeps.
pub(super) fn await_sleep(tid: i32) {
    let begun = Instant::now();
    while doing(tid) == Doing::Runs && begun.elapsed() < LONGEST_FALL {
        thread::yield_now();
    }
}

/// What a thread of this process does (proc_pid_stat(5), the word behind its name).
fn doing(tid: i32) -> Doing {
    let Ok(text) = fs::read_to_string(format!("/proc/self/task/{tid}/stat")) else {
        return Doing::Gone;
    };
    match text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        Some('R') | None => Doing::Runs,
        Some('X' | 'Z') => Doing::Gone,
        Some(_) => Doing::Sleeps,
    }
}

/// The calling thread, and those that it makes, receive no signals meanwhile: those of the program
/// are for its own threads.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn all() -> Self {
        // SAFETY: both sets are ours, and live during the calls, which fill the second one.
        unsafe {
            let mut all = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was in force before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::own_tid;
    use super::*;

    #[test]
    fn a_thread_that_sleeps_is_told_from_one_that_runs() {
        assert_eq!(doing(own_tid()), Doing::Runs);
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = thread::spawn(move || {
            tell.send(own_tid()).unwrap();
            thread::park();
        });
        let tid = told.recv().unwrap();
        await_sleep(tid);
        assert_eq!(doing(tid), Doing::Sleeps);
        sleeper.thread().unpark();
        sleeper.join().unwrap();
        assert_ne!(doing(tid), Doing::Sleeps);
    }
}
