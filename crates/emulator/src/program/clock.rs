//! When what happens in a program: threads have times of their own, and who waits for another one
//! goes on at that one's time.
//!
//! Threads meet where they are made, where one wakes another (futex(2)), and where one waits for
//! another's end. What they wait for by looking again and again is not seen.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::lock;

/// `CLONE_CHILD_CLEARTID`: the thread's end is told at an address.
const TELLS_END: u64 = 0x20_0000;
/// `CLONE_THREAD`
const THREAD: u64 = 0x1_0000;
/// A thread that was made begins when the host has a cpu for it; nobody waits for that longer, on
/// the host's clock.
const LONGEST_BIRTH: Duration = Duration::from_secs(2);

/// What futex(2) does, by its command's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Futex {
    /// Waits to be woken.
    Wait,
    /// Wakes others at one address, and perhaps at a second one.
    Wake,
    /// Anything else.
    Other,
}

impl Futex {
    /// Of the second argument of the call.
    pub fn of(operation: u64) -> Self {
        match operation & 0x7f {
            0 | 9 => Self::Wait,
            1 | 3 | 4 | 5 | 10 => Self::Wake,
            _ => Self::Other,
        }
    }
}

/// The times of all threads.
#[derive(Debug)]
pub struct Clock {
    /// What each place's time is beyond what its threads were busy, in ps.
    skew_ps: Vec<AtomicI64>,
    /// Where the end of the thread at each place is told.
    tells_at: Vec<AtomicU64>,
    latest_ps: AtomicU64,
    meetings: Mutex<Meetings>,
}

#[derive(Debug, Default)]
struct Meetings {
    /// When somebody was last woken, by address.
    woken: HashMap<u64, u64>,
    /// When a thread was last made, and where its end is told.
    made: Option<(u64, u64)>,
    /// Addresses at which ends were told, and the latest end.
    ends: HashMap<u64, u64>,
    latest_end_ps: u64,
}

impl Clock {
    /// All of so many places begin together.
    pub fn new(places: usize) -> Self {
        Self {
            skew_ps: (0..places).map(|_| AtomicI64::new(0)).collect(),
            tells_at: (0..places).map(|_| AtomicU64::new(0)).collect(),
            latest_ps: AtomicU64::new(0),
            meetings: Mutex::default(),
        }
    }

    /// The time of the thread at a place that has been busy for so long.
    pub fn now_ps(&self, place: usize, busy_ps: u64) -> u64 {
        let now_ps = busy_ps.saturating_add_signed(self.skew_ps[place].load(Relaxed));
        self.latest_ps.fetch_max(now_ps, Relaxed);
        now_ps
    }

    /// A thread waits for others that run on its cpu.
    pub fn waits_for_cpu(&self, place: usize, ps: u64) {
        self.skew_ps[place].fetch_add(ps.cast_signed(), Relaxed);
    }

    /// A thread begins at a place, when the one that made it did so.
    pub fn begins(&self, place: usize, busy_ps: u64) {
        // Held to the end: who made it goes on once it has its time.
        let mut meetings = lock(&self.meetings);
        let Some((made_ps, tells_at)) = meetings.made.take() else { return };
        self.skew_ps[place].store(made_ps.cast_signed() - busy_ps.cast_signed(), Relaxed);
        self.tells_at[place].store(tells_at, Relaxed);
    }

    /// A thread moves to another place with its time.
    pub fn moves(&self, from: (usize, u64), to: (usize, u64)) {
        let now_ps = self.now_ps(from.0, from.1);
        self.skew_ps[to.0].store(now_ps.cast_signed() - to.1.cast_signed(), Relaxed);
        self.tells_at[to.0].store(self.tells_at[from.0].load(Relaxed), Relaxed);
    }

    /// A thread makes another one, by clone(2) with these flags, as soon as none is being made.
    pub fn makes(&self, place: usize, busy_ps: u64, flags: u64, tells_at: u64) {
        if flags & THREAD != 0 {
            let tells_at = if flags & TELLS_END != 0 { tells_at } else { 0 };
            let now_ps = self.now_ps(place, busy_ps);
            self.await_begin();
            lock(&self.meetings).made = Some((now_ps, tells_at));
        }
    }

    /// Waits until the thread that was made last has begun. Threads take places in the order in which
    /// they begin: if the one that makes them went on at once, that would be up to the host, and so
    /// would be which of them works beside its memory.
    pub fn await_begin(&self) {
        let asked = Instant::now();
        while lock(&self.meetings).made.is_some() && asked.elapsed() < LONGEST_BIRTH {
            std::thread::yield_now();
        }
    }

    /// The thread that was to be made was not.
    pub fn makes_none(&self) {
        lock(&self.meetings).made = None;
    }

    /// A thread ends.
    pub fn ends(&self, place: usize, busy_ps: u64) {
        let now_ps = self.now_ps(place, busy_ps);
        let tells_at = self.tells_at[place].swap(0, Relaxed);
        let mut meetings = lock(&self.meetings);
        meetings.latest_end_ps = meetings.latest_end_ps.max(now_ps);
        if tells_at != 0 {
            meetings.ends.insert(tells_at, now_ps);
        }
    }

    /// A thread wakes those that wait at an address.
    pub fn wakes(&self, place: usize, busy_ps: u64, address: u64) {
        let now_ps = self.now_ps(place, busy_ps);
        let mut meetings = lock(&self.meetings);
        let woken_ps = meetings.woken.entry(address).or_default();
        *woken_ps = now_ps.max(*woken_ps);
    }

    /// A thread goes on that waited at an address.
    pub fn woken(&self, place: usize, busy_ps: u64, address: u64) {
        let now_ps = self.now_ps(place, busy_ps);
        let met_ps = {
            let meetings = lock(&self.meetings);
            // Who waits for one thread's end mostly waits for all of them, some of which had ended.
            let ended = meetings.ends.contains_key(&address).then_some(meetings.latest_end_ps);
            ended.or_else(|| meetings.woken.get(&address).copied()).unwrap_or(0)
        };
        if met_ps > now_ps {
            self.skew_ps[place].fetch_add((met_ps - now_ps).cast_signed(), Relaxed);
        }
    }

    /// From the program's beginning to the latest that any thread has come to.
    pub fn elapsed_ps(&self) -> u64 {
        self.latest_ps.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_begins_when_it_is_made_and_who_waits_for_its_end_goes_on_then() {
        let clock = Clock::new(2);
        clock.makes(0, 100, THREAD | TELLS_END, 0x40);
        clock.begins(1, 7);
        assert_eq!(clock.now_ps(1, 7), 100);
        clock.ends(1, 57);
        clock.woken(0, 110, 0x40);
        assert_eq!(clock.now_ps(0, 115), 155);
        assert_eq!(clock.elapsed_ps(), 155);
    }

    #[test]
    fn who_makes_a_thread_goes_on_when_that_has_begun() {
        let clock = Clock::new(3);
        clock.makes(0, 100, THREAD, 0);
        std::thread::scope(|scope| {
            let begins = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                clock.begins(1, 0);
            });
            clock.await_begin();
            assert_eq!(clock.now_ps(1, 0), 100, "it has its time");
            begins.join().expect("it begins");
        });
        clock.makes(0, 300, THREAD, 0);
        clock.makes_none();
        clock.await_begin();
        clock.begins(2, 0);
        assert_eq!(clock.now_ps(2, 0), 0, "nobody made it");
    }

    #[test]
    fn who_is_woken_goes_on_at_the_time_of_who_wakes_and_never_earlier() {
        let clock = Clock::new(2);
        clock.wakes(0, 500, 0x8);
        clock.woken(1, 20, 0x8);
        assert_eq!(clock.now_ps(1, 30), 510);
        clock.woken(1, 600, 0x8);
        assert_eq!(clock.now_ps(1, 600), 1080);
        clock.woken(1, 600, 0x10);
        assert_eq!(clock.now_ps(1, 600), 1080, "nobody woke it");
    }

    #[test]
    fn processes_that_fork_makes_are_no_threads() {
        let clock = Clock::new(2);
        clock.makes(0, 100, TELLS_END, 0x40);
        clock.begins(1, 0);
        assert_eq!(clock.now_ps(1, 0), 0);
        assert_eq!(
            (Futex::of(0x189), Futex::of(0x81), Futex::of(6)),
            (Futex::Wait, Futex::Wake, Futex::Other)
        );
    }
}
