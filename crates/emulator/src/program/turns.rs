//! Runs one thread of the program at a time: the turn passes between host threads in the order of
//! the machine's time, whatever the host does. The holder of the turn may touch the shared state
//! ([`super::world`]); the others wait in one of the plugin's callbacks or in the kernel. QEMU
//! sometimes waits until all threads have left translated code (`start_exclusive`), for fork(2) and
//! for atomic operations that the host lacks. The [`watch`] notices this and releases the waiting
//! threads, which replay what they did without the turn once they have it again.

mod fork;
mod waking;
mod watch;

use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::futexes::Futexes;
use super::schedule::{Schedule, Turn};
use super::{guest_memory, lock};

/// No thread holds the turn: all are in the kernel.
const NOBODY: usize = usize::MAX;
/// Time for which a thread polls for its turn before it sleeps, in host time.
const LOOKS: Duration = Duration::from_micros(20);
/// A sleeping thread polls at this interval, in case it missed a wakeup.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Longest wait, in host time, for a new thread to start: it needs a free cpu of the host.
const LONGEST_BIRTH: Duration = Duration::from_secs(2);

/// State of a thread after it has given its turn away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// The thread could continue.
    Yields,
    /// The thread can continue, after the others of its cpu.
    GivesWay,
    /// The thread spins on an address until another one changes it, or until this time in ps.
    Spins(u64),
    /// The thread waits for something without a known time.
    Waits,
    /// The thread resumes at this time, in ps.
    Sleeps(u64),
}

/// The limit of a thread's wait for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until the thread has the turn.
    Endless,
    /// Until the thread has the turn or is released: it waits inside translated code, which QEMU
    /// may need it to leave.
    InCode,
}

/// A thread of the program that starts.
#[derive(Clone, Copy, Debug)]
pub struct Born {
    /// QEMU's index of the thread.
    pub index: usize,
    /// The address to clear at its end; 0 for none.
    pub clear_at: u64,
}

/// A host thread that runs one of the program's threads.
#[derive(Debug)]
struct Host {
    thread: Thread,
    /// Thread id (gettid(2)).
    tid: i32,
    /// Present until its first turn.
    born: Option<Born>,
    /// True if the thread is in a system call of the program.
    in_call: bool,
    /// The address that the thread waits at (futex(2)), and whether the host thread is asleep
    /// there.
    futex: Option<(u64, bool)>,
}

/// The order of turns; changed only under the lock.
#[derive(Debug)]
pub struct Order {
    pub schedule: Schedule,
    pub futexes: Futexes,
    hosts: Vec<Option<Host>>,
    /// Threads that are in the kernel to wake others.
    waking: usize,
    /// Seats of threads that the host woke before their waker was known.
    early: Vec<usize>,
    /// Threads that timed out in host time but not in the machine's: the address that they wait at,
    /// and the seat.
    out: Vec<(u64, usize)>,
    /// Threads being created: the time, and the address to clear at their end.
    births: VecDeque<(u64, u64)>,
    /// Threads that end: the seat, and the address to clear.
    ends: Vec<(usize, u64)>,
    turn: Option<Turn>,
}

/// The turn and its holder.
#[derive(Debug)]
pub struct Turns {
    order: Mutex<Order>,
    holder: AtomicUsize,
    /// True if the holder has taken the turn, and may be using the shared state; changed under the
    /// lock.
    taken: AtomicBool,
    /// Number of times that the turn was given.
    given: AtomicU64,
    /// Number of times that threads waiting in translated code were released.
    let_go: AtomicU64,
    /// Set when a thread has come back from the kernel and the holder has not noticed yet.
    news: AtomicBool,
    /// Set while threads end.
    any_ends: AtomicBool,
    ending: AtomicBool,
    watched: AtomicBool,
}

impl Turns {
    pub fn new(schedule: Schedule) -> Self {
        let order = Order {
            schedule,
            futexes: Futexes::default(),
            hosts: Vec::new(),
            waking: 0,
            early: Vec::new(),
            out: Vec::new(),
            births: VecDeque::new(),
            ends: Vec::new(),
            turn: None,
        };
        Self {
            order: Mutex::new(order),
            holder: AtomicUsize::new(NOBODY),
            taken: AtomicBool::new(false),
            given: AtomicU64::new(0),
            let_go: AtomicU64::new(0),
            news: AtomicBool::new(false),
            any_ends: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            watched: AtomicBool::new(false),
        }
    }

    /// Locks the order of turns.
    pub fn order(&self) -> MutexGuard<'_, Order> {
        lock(&self.order)
    }

    /// Adds the calling thread, which is at this QEMU index; returns its seat.
    pub fn arrives(&'static self, index: usize) -> usize {
        let mut order = self.order();
        self.remove_ended(&mut order);
        let birth = order.births.pop_front();
        let (made_ps, clear_at) = birth.unwrap_or_default();
        let seat = order.schedule.begins(made_ps);
        if order.hosts.len() <= seat {
            order.hosts.resize_with(seat + 1, || None);
        }
        let thread = thread::current();
        let born = Some(Born { index, clear_at });
        order.hosts[seat] =
            Some(Host { thread, tid: own_tid(), born, in_call: false, futex: None });
        // A lone thread cannot wait for another one's turn.
        if order.schedule.seats() > 1 {
            self.watch();
        }
        match birth {
            // The creator holds the turn, and will let others run when it has left the kernel.
            Some(_) if !self.is_holder(NOBODY) => self.news.store(true, Relaxed),
            _ => self.notify_holder(&mut order),
        }
        seat
    }

    /// Waits until all threads being created have started: seats are taken in that order, and the
    /// host must not decide who created which.
    pub fn await_births(&self) {
        let asked = Instant::now();
        while !self.order().births.is_empty() && asked.elapsed() < LONGEST_BIRTH {
            // Not under the lock, which the new threads need to arrive.
            thread::yield_now();
        }
        self.order().births.clear();
        self.news.store(true, Relaxed);
    }

    /// Waits for the seat's turn; returns `None` if the thread must continue without it.
    pub fn take(&self, seat: usize, patience: Patience) -> Option<Turn> {
        // The relaxed loads below only end the wait; what follows from them is read again under the
        // lock.
        let let_go = self.let_go.load(Relaxed);
        let begun = Instant::now();
        // Pairs with the store in `give`: makes visible what others did in their turns.
        while self.holder.load(Acquire) != seat {
            let is_let_go = patience == Patience::InCode && self.let_go.load(Relaxed) != let_go;
            if is_let_go || self.ending.load(Relaxed) {
                return None;
            }
            // A thread that ends keeps the turn until QEMU has cleared its address, and has then
            // left these functions: its waiters must look for that.
            if self.any_ends.load(Relaxed) {
                self.remove_ended(&mut self.order());
                thread::yield_now();
                continue;
            }
            match begun.elapsed() < LOOKS {
                true => thread::yield_now(),
                false => thread::park_timeout(LONGEST_SLEEP),
            }
            if patience == Patience::InCode && begun.elapsed() > LONGEST_SLEEP {
                self.is_in_code(seat);
            }
        }
        let mut order = self.order();
        // Otherwise this thread could store to a futex at which others are about to wait.
        order.settle();
        order.is_back(seat);
        // The turn may have been given to another seat before the lock was taken.
        let turn = order.turn.filter(|turn| turn.seat == seat && !self.ending.load(Relaxed))?;
        self.taken.store(true, Relaxed);
        Some(turn)
    }

    /// Marks the seat's thread as waiting in translated code and ready: if the host kept it asleep
    /// for long, it was mistaken for a waiting thread.
    fn is_in_code(&self, seat: usize) {
        let mut order = self.order();
        if !order.schedule.is_ready(seat) {
            order.schedule.goes_on(seat, 0);
            self.notify_holder(&mut order);
        }
    }

    /// Ends the turn of the seat's thread at this time; the thread may get the next turn too.
    pub fn leave(&self, seat: usize, now_ps: u64, how: Leave) {
        let mut order = self.order();
        let schedule = &mut order.schedule;
        match how {
            Leave::Yields => schedule.yields(seat, now_ps),
            Leave::GivesWay => schedule.gives_way(seat, now_ps),
            Leave::Spins(until_ps) => schedule.yields(seat, until_ps),
            Leave::Waits => schedule.waits(seat, now_ps),
            Leave::Sleeps(until_ps) => schedule.sleeps(seat, now_ps, until_ps),
        }
        if self.is_holder(seat) {
            self.give(&mut order);
        }
    }

    /// Ends the seat's thread. QEMU clears the address only after the thread has left the turns: it
    /// keeps the turn until then, since others may look there.
    pub fn ends(&self, seat: usize, clear_at: u64) {
        let mut order = self.order();
        order.ends.push((seat, clear_at));
        // The thread no longer touches the shared state, and only the kernel can end it.
        order.is_in_call(seat, true);
        self.any_ends.store(true, Relaxed);
        self.remove_ended(&mut order);
        order.hosts.iter().flatten().for_each(|host| host.thread.unpark());
    }

    /// Removes ended threads with addresses that the kernel has cleared.
    pub fn remove_ended(&self, order: &mut Order) {
        // Memory that cannot be read counts as cleared: it may be unmapped, or there is no address
        // (0).
        let is_cleared = |address: u64| guest_memory::word(address).is_none_or(|word| word == 0);
        while let Some(at) = order.ends.iter().position(|(_, address)| is_cleared(*address)) {
            let (seat, _) = order.ends.swap_remove(at);
            order.schedule.ends(seat);
            order.hosts[seat] = None;
            if self.is_holder(seat) {
                self.give(order);
            }
        }
        self.any_ends.store(!order.ends.is_empty(), Relaxed);
    }

    /// Returns true if a thread came back and the holder has not noticed.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.news.load(Relaxed)
    }

    /// Returns true if the calling thread, which is the seat's, has taken the turn and still holds
    /// it.
    #[inline]
    pub fn has_taken(&self, seat: usize) -> bool {
        // Relaxed: a thread that sees the store of the holder in `give` also sees the one before
        // it, and only the seat's own thread sets it again.
        self.is_holder(seat) && self.taken.load(Relaxed)
    }

    /// Returns true if the seat holds the turn.
    pub fn is_holder(&self, seat: usize) -> bool {
        self.holder.load(Acquire) == seat
    }

    /// Returns true if the calling thread has taken the turn and still holds it: all others stay
    /// out until it gives the turn away.
    pub fn is_own(&self) -> bool {
        // Under the lock, so that the turn cannot pass between the two checks.
        let order = self.order();
        let holder = order.hosts.get(self.holder.load(Relaxed)).and_then(Option::as_ref);
        self.taken.load(Relaxed)
            && holder.is_some_and(|host| host.tid == own_tid() && !host.in_call)
    }

    /// Ends the program: releases all that wait.
    pub fn end(&self) {
        let order = self.order();
        // Under the lock: no thread takes a turn from here on (`take`).
        self.ending.store(true, Relaxed);
        order.hosts.iter().flatten().for_each(|host| host.thread.unpark());
    }

    /// Reports that another thread has become ready: the holder lets others run soon, or loses the
    /// turn if it is in the kernel.
    pub fn notify_holder(&self, order: &mut Order) {
        let holder = order.hosts.get(self.holder.load(Relaxed));
        match holder.and_then(Option::as_ref) {
            Some(host) if !host.in_call => self.news.store(true, Relaxed),
            _ => self.give(order),
        }
    }

    /// Gives the turn to the next thread.
    pub fn give(&self, order: &mut Order) {
        self.news.store(false, Relaxed);
        // The watch looks only at a holder that keeps one turn for long.
        self.given.fetch_add(1, Relaxed);
        self.taken.store(false, Relaxed);
        order.turn = order.schedule.next();
        let seat = order.turn.map_or(NOBODY, |turn| turn.seat);
        // Pairs with the load in `take`.
        self.holder.store(seat, Release);
        if let Some(host) = order.hosts.get(seat).and_then(Option::as_ref) {
            host.thread.unpark();
        }
    }
}

/// Returns the calling thread's id (gettid(2)).
pub fn own_tid() -> i32 {
    // SAFETY: takes no arguments, and never fails.
    unsafe { libc::gettid() }
}

impl Order {
    /// Records that a thread is being created, at its creator's time.
    pub fn makes(&mut self, now_ps: u64, clear_at: u64) {
        self.births.push_back((now_ps, clear_at));
    }

    /// Records that creating a thread failed.
    pub fn makes_none(&mut self) {
        self.births.pop_back();
    }

    /// Returns the seat of the thread with this id (gettid(2)).
    pub fn seat_of(&self, thread: u64) -> Option<usize> {
        let is_it = |host: &Host| u64::try_from(host.tid) == Ok(thread);
        self.hosts.iter().position(|host| host.as_ref().is_some_and(is_it))
    }

    /// Returns the new thread of a seat at its first turn, `None` later.
    pub fn born(&mut self, seat: usize) -> Option<Born> {
        self.hosts[seat].as_mut()?.born.take()
    }

    /// Sets whether the seat's thread is in a system call of the program.
    pub fn is_in_call(&mut self, seat: usize, in_call: bool) {
        if let Some(host) = &mut self.hosts[seat] {
            host.in_call = in_call;
        }
    }

    /// Removes all other threads.
    fn forget_others(&mut self) {
        self.futexes.clear();
        self.waking = 0;
        self.early.clear();
        self.out.clear();
        self.births.clear();
        self.ends.clear();
    }
}
