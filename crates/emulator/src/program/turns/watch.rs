//! Sees to it that the turn goes on: what its holder waits for may be one of those who wait for it.

use std::fs;
use std::io;
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
    /// The host does not tell: the program may have used up its descriptors.
    Unknown,
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
        // Else it may be changing what all share: the host has it wait there for memory, say.
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

/// What a thread of this process does (proc_pid_stat(5), the word behind its name).
fn doing(tid: i32) -> Doing {
    said(fs::read_to_string(format!("/proc/self/task/{tid}/stat")))
}

fn said(of_thread: io::Result<String>) -> Doing {
    let text = match of_thread {
        Ok(text) => text,
        // Between opening and reading it ends with ESRCH.
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
    use super::super::{Patience, Schedule, own_tid};
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

    /// A thread that has come for its turn, and sleeps until it has it no more: its number.
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
    fn a_thread_that_has_come_for_its_turn_loses_it_in_the_kernel_alone() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let (tid, sleeper) = sleeper(turns);
        let loses = |_| {
            await_sleep(tid);
            turns.look_at_holder(LONGEST_WAY * 2);
            !turns.is_holder(0)
        };
        // It may be about to use what all share, and was put to sleep there by the host.
        assert!(!(0..9).any(loses), "it does not know that it lost its turn");
        turns.order().is_in_call(0, true);
        assert!((0..99).any(loses));
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }

    #[test]
    fn a_thread_of_which_the_host_does_not_tell_is_not_taken_for_one_that_is_gone() {
        let failed = |error| said(Err(io::Error::from_raw_os_error(error)));
        assert_eq!([libc::ENOENT, libc::ESRCH].map(failed), [Doing::Gone; 2]);
        assert_eq!([libc::EMFILE, libc::ENFILE, libc::ENOMEM].map(failed), [Doing::Unknown; 3]);
        assert_eq!(said(Ok("7 (a) b) S 1".to_owned())), Doing::Sleeps);
    }

    #[test]
    fn nobody_takes_a_turn_any_more_when_the_program_has_ended() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let seat = turns.arrives(0);
        assert!(turns.is_holder(seat));
        turns.end();
        assert_eq!(turns.take(seat, Patience::Endless), None);
    }
}
