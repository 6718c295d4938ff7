//! Keeps the turn moving: its holder may wait in the kernel for a thread that waits for the turn.

use std::fs;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::{NOBODY, Turns};

/// Interval between checks, in host time.
const LOOK: Duration = Duration::from_millis(1);
/// A holder that sleeps in the kernel for this long waits for another thread.
const LONGEST_CALL: Duration = Duration::from_millis(10);
/// The longest wait for a thread that got the turn and does not take it.
const LONGEST_WAY: Duration = Duration::from_secs(1);
/// Longest time for a thread to fall asleep, even on a busy host.
const LONGEST_FALL: Duration = Duration::from_secs(2);

/// The state of the holder's host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Runs,
    Sleeps,
    Gone,
    /// The host cannot say: the program may have used up its descriptors.
    Unknown,
}

impl Turns {
    /// Starts a thread that watches the turn, once.
    pub(super) fn watch(&'static self) {
        if self.watched.swap(true, Relaxed) {
            return;
        }
        let blocked = BlockedSignals::all();
        let spawned = thread::Builder::new().name("numalab".to_owned()).spawn(|| self.look());
        drop(blocked);
        // The next thread to arrive tries again.
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

    /// Checks a holder that has had the turn for this long.
    fn look_at_holder(&self, held: Duration) {
        let given = self.given.load(Relaxed);
        let seat = self.holder.load(Relaxed);
        let tid = self.order().hosts.get(seat).and_then(Option::as_ref).map(|host| host.tid);
        // Not under the lock: the holder may want it, and would be seen to wait for us.
        let does = tid.map_or(Doing::Unknown, doing);
        if seat == NOBODY || matches!(does, Doing::Runs | Doing::Unknown) {
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
        // Otherwise it may be changing shared state, for example while the host has it wait for
        // memory.
        let is_elsewhere = host.in_call || !order.taken || does == Doing::Gone;
        if held > most && is_elsewhere {
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

/// Returns the state of a thread of this process (proc_pid_stat(5), the field after its name).
fn doing(tid: i32) -> Doing {
    said(fs::read_to_string(format!("/proc/self/task/{tid}/stat")))
}

fn said(of_thread: io::Result<String>) -> Doing {
    let text = match of_thread {
        Ok(text) => text,
        // A thread that ends between open and read gives ESRCH.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Doing::Gone,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Doing::Gone,
        Err(_) => return Doing::Unknown,
    };
    match text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        Some('R') | None => Doing::Runs,
        Some('X' | 'Z') => Doing::Gone,
        Some(_) => Doing::Sleeps,
    }
}

/// Blocks signals in the calling thread and those that it creates, until dropped: the program's
/// signals are for its own threads.
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
    use super::super::{Patience, Schedule, own_tid};
    use super::*;

    #[test]
    fn distinguishes_a_sleeping_thread_from_a_running_one() {
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

    /// Starts a thread that takes its turn and sleeps until it loses it; returns its id.
    fn sleeper(turns: &'static Turns) -> (i32, thread::JoinHandle<()>) {
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = thread::spawn(move || {
            let seat = turns.arrives(0);
            assert!(turns.take(seat, Patience::Endless).is_some());
            tell.send(own_tid()).unwrap();
            while turns.is_holder(seat) {
                thread::park();
            }
        });
        (told.recv().unwrap(), sleeper)
    }

    #[test]
    fn a_thread_that_took_its_turn_loses_it_only_in_the_kernel() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let (tid, sleeper) = sleeper(turns);
        let loses = |_| {
            await_sleep(tid);
            turns.look_at_holder(LONGEST_WAY * 2);
            !turns.is_holder(0)
        };
        // It may be about to use shared state when the host puts it to sleep.
        assert!(!(0..9).any(loses), "it does not know that it lost its turn");
        turns.order().is_in_call(0, true);
        assert!((0..99).any(loses));
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }

    #[test]
    fn a_thread_in_an_unknown_state_does_not_count_as_ended() {
        let failed = |error| said(Err(io::Error::from_raw_os_error(error)));
        assert_eq!([libc::ENOENT, libc::ESRCH].map(failed), [Doing::Gone; 2]);
        assert_eq!([libc::EMFILE, libc::ENFILE, libc::ENOMEM].map(failed), [Doing::Unknown; 3]);
        assert_eq!(said(Ok("7 (a) b) S 1".to_owned())), Doing::Sleeps);
    }

    #[test]
    fn no_thread_takes_a_turn_after_the_program_has_ended() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let seat = turns.arrives(0);
        assert!(turns.is_holder(seat));
        turns.end();
        assert_eq!(turns.take(seat, Patience::Endless), None);
    }
}
