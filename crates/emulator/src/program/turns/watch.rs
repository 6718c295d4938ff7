//! Keeps the turn moving: the holder may wait in the kernel for a thread that waits for the turn.

use std::fs;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::{LONGEST_BIRTH, NOBODY, Turns};

/// Interval between checks, in host time.
const LOOK: Duration = Duration::from_millis(1);
/// A holder that sleeps in the kernel for this long is waiting for another thread.
const LONGEST_CALL: Duration = Duration::from_millis(10);
/// Maximum wait for a thread that got the turn but does not take it.
const LONGEST_WAY: Duration = Duration::from_secs(1);
/// Longest time for a thread to fall asleep, even on a busy host.
const LONGEST_FALL: Duration = Duration::from_secs(2);

/// The state of the holder's host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Runs,
    Sleeps,
    Gone,
    /// The host does not know: the program may have used up its descriptors.
    Unknown,
}

impl Turns {
    /// Starts a thread that watches the turn, once.
    pub(super) fn watch(&'static self) {
        if self.watched.swap(true, Relaxed) {
            return;
        }
        // A thread inherits its creator's mask: handlers of the program must not run in the watch.
        let blocked = BlockedSignals::all();
        let spawned = thread::Builder::new().name("numalab".to_owned()).spawn(|| self.look());
        drop(blocked);
        // The next thread to arrive tries again.
        if spawned.is_err() {
            self.watched.store(false, Relaxed);
        }
    }

    fn look(&self) {
        let mut slept = Slept::default();
        loop {
            thread::sleep(LOOK);
            self.look_at_holder(&mut slept, Instant::now());
        }
    }

    /// Checks the holder. Only its sleep counts: on a busy host it may have had the turn for long
    /// without having run.
    fn look_at_holder(&self, slept: &mut Slept, now: Instant) {
        let given = self.given.load(Relaxed);
        let seat = self.holder.load(Relaxed);
        let tid = self.order().hosts.get(seat).and_then(Option::as_ref).map(|host| host.tid);
        // Not under the lock: the holder may need it, and would then appear to be waiting for us.
        let doing = tid.map_or(Doing::Unknown, doing);
        let asleep = tid.filter(|_| seat != NOBODY).and_then(|tid| asleep(tid, doing));
        let Some(lasts) = slept.lasts(asleep.map(|sleep| (given, sleep)), now) else { return };
        let mut order = self.order();
        let Some(host) = order.hosts.get(seat).and_then(Option::as_ref) else { return };
        if self.given.load(Relaxed) != given || !order.schedule.is_ready(seat) {
            return;
        }
        // QEMU makes the creator of a thread wait until the host has started it.
        if !order.births.is_empty() && lasts < LONGEST_BIRTH {
            return;
        }
        // The host may be waiting for all threads to leave translated code.
        self.let_go.fetch_add(1, Relaxed);
        order.hosts.iter().flatten().for_each(|host| host.thread.unpark());
        let most = if host.in_call { LONGEST_CALL } else { LONGEST_WAY };
        // Otherwise the holder may be changing shared state, for example while the host makes it
        // wait for memory.
        let is_elsewhere = host.in_call || !self.taken.load(Relaxed) || doing == Doing::Gone;
        if lasts > most && is_elsewhere {
            let now_ps = order.turn.map_or(0, |turn| turn.now_ps);
            order.schedule.waits(seat, now_ps);
            self.give(&mut order);
        }
    }
}

/// One sleep of a thread: its id, and the time for which it had run before.
type Sleep = (i32, u64);

/// The holder's sleep so far, as seen from one look to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Slept {
    /// The turn and the sleep, with the time at which they were first seen.
    first: Option<((u64, Sleep), Instant)>,
}

impl Slept {
    /// Returns the length of this sleep so far; `None` if it was not seen at the last check.
    fn lasts(&mut self, asleep: Option<(u64, Sleep)>, now: Instant) -> Option<Duration> {
        let Some(asleep) = asleep else {
            self.first = None;
            return None;
        };
        match self.first {
            Some((first, since)) if first == asleep => Some(now.saturating_duration_since(since)),
            _ => {
                self.first = Some((asleep, now));
                None
            }
        }
    }
}

/// Returns the sleep of a thread that sleeps or is gone.
fn asleep(tid: i32, doing: Doing) -> Option<Sleep> {
    match doing {
        Doing::Sleeps => Some((tid, ran_ns(tid))),
        Doing::Gone => Some((tid, 0)),
        Doing::Runs | Doing::Unknown => None,
    }
}

/// Returns the time for which a thread has run (proc_pid_schedstat(5), the first field); 0 if the
/// kernel does not count it.
fn ran_ns(tid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/schedstat"));
    let first = |text: String| text.split_whitespace().next()?.parse().ok();
    text.ok().and_then(first).unwrap_or(0)
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
    parsed(fs::read_to_string(format!("/proc/self/task/{tid}/stat")))
}

fn parsed(of_thread: io::Result<String>) -> Doing {
    let text = match of_thread {
        Ok(text) => text,
        // A thread that ends between open and read gives ESRCH.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Doing::Gone,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Doing::Gone,
        Err(_) => return Doing::Unknown,
    };
    match text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        // D waits for a device or for memory, not for another thread.
        Some('R' | 'D') | None => Doing::Runs,
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
        let (sender, receiver) = std::sync::mpsc::channel();
        let sleeper = thread::spawn(move || {
            sender.send(own_tid()).unwrap();
            thread::park();
        });
        let tid = receiver.recv().unwrap();
        await_sleep(tid);
        assert_eq!(doing(tid), Doing::Sleeps);
        sleeper.thread().unpark();
        sleeper.join().unwrap();
        assert_ne!(doing(tid), Doing::Sleeps);
    }

    /// Starts a thread that takes its turn and sleeps until it loses it; returns its id.
    fn sleeper(turns: &'static Turns) -> (i32, thread::JoinHandle<()>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let sleeper = thread::spawn(move || {
            let seat = turns.arrives(0);
            assert!(turns.take(seat, Patience::Endless).is_some());
            sender.send(own_tid()).unwrap();
            while turns.is_holder(seat) {
                thread::park();
            }
        });
        (receiver.recv().unwrap(), sleeper)
    }

    #[test]
    fn a_thread_that_took_its_turn_loses_it_only_in_the_kernel() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let (tid, sleeper) = sleeper(turns);
        let (mut slept, begun) = (Slept::default(), Instant::now());
        let mut loses = |look: u32| {
            await_sleep(tid);
            turns.look_at_holder(&mut slept, begun + LONGEST_WAY * 2 * look);
            !turns.is_holder(0)
        };
        // The thread may be about to use shared state when the host puts it to sleep.
        assert!(!(0..9).any(&mut loses), "it does not know that it lost its turn");
        turns.order().is_in_call(0, true);
        assert!((10..99).any(&mut loses));
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }

    #[test]
    fn a_thread_keeps_its_turn_while_the_host_starts_the_one_that_it_creates() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let (tid, sleeper) = sleeper(turns);
        turns.order().is_in_call(0, true);
        turns.order().makes(0, 0);
        let (mut slept, begun) = (Slept::default(), Instant::now());
        let mut loses = |after: Duration| {
            await_sleep(tid);
            turns.look_at_holder(&mut slept, begun + after);
            !turns.is_holder(0)
        };
        assert!(!(1..10).any(|look| loses(LONGEST_CALL * 2 * look)), "it creates a thread");
        turns.order().makes_none();
        assert!((1..99).any(|look| loses(LONGEST_BIRTH + LONGEST_CALL * 2 * look)));
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }

    #[test]
    fn only_a_sleep_without_a_break_counts_however_long_the_turn_is_held() {
        let begun = Instant::now();
        let at = |look| begun + LOOK * look;
        let mut slept = Slept::default();
        let sleep = Some((7, (1, 500)));
        assert_eq!(slept.lasts(sleep, at(0)), None, "it may be about to run");
        assert_eq!(slept.lasts(sleep, at(1)), Some(LOOK));
        assert_eq!(slept.lasts(None, at(2)), None, "it runs");
        assert_eq!(slept.lasts(Some((7, (1, 600))), at(30)), None, "it has run since");
        assert_eq!(slept.lasts(Some((8, (1, 600))), at(31)), None, "another turn");
        assert_eq!(slept.lasts(Some((8, (1, 600))), at(33)), Some(LOOK * 2));
        let tid = own_tid();
        assert_eq!(asleep(tid, Doing::Runs), None);
        // The kernel counts the time of a running thread at ticks and switches.
        while ran_ns(tid) == 0 {
            thread::yield_now();
        }
        assert!(asleep(tid, Doing::Sleeps).is_some_and(|(of, ran)| of == tid && ran > 0));
    }

    #[test]
    fn a_thread_in_an_unknown_state_does_not_count_as_ended() {
        let failed = |error| parsed(Err(io::Error::from_raw_os_error(error)));
        assert_eq!([libc::ENOENT, libc::ESRCH].map(failed), [Doing::Gone; 2]);
        assert_eq!([libc::EMFILE, libc::ENFILE, libc::ENOMEM].map(failed), [Doing::Unknown; 3]);
        assert_eq!(parsed(Ok("7 (a) b) S 1".to_owned())), Doing::Sleeps);
        assert_eq!(parsed(Ok("7 (a) D 1".to_owned())), Doing::Runs, "it waits for a device");
    }

    #[test]
    fn no_thread_takes_a_turn_after_the_program_has_ended() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let seat = turns.arrives(0);
        assert!(turns.is_holder(seat));
        turns.end();
        assert_eq!(turns.take(seat, Patience::Endless), None);
        assert!(!turns.has_taken(seat), "it must not touch the shared state");
    }

    #[test]
    fn a_thread_that_was_given_the_turn_has_it_only_once_it_takes_it() {
        let turns: &'static Turns = Box::leak(Box::new(Turns::new(Schedule::new(&[0], &[0]))));
        let seat = turns.arrives(0);
        assert!(turns.is_holder(seat) && !turns.has_taken(seat), "the watch may take it away");
        assert!(turns.take(seat, Patience::Endless).is_some());
        assert!(turns.has_taken(seat));
        let mut order = turns.order();
        turns.give(&mut order);
        assert!(turns.is_holder(seat) && !turns.has_taken(seat));
    }
}
