//! One thread of the program runs at a time: the turn goes from host thread to host thread in the
//! order of the machine's time, whatever the host does.
//!
//! Who has the turn may touch what all threads share ([`super::world`]); the others stand in one of
//! our callbacks, or in the kernel. QEMU sometimes waits until all threads have left translated code
//! (`start_exclusive`), for fork(2) and for atomic operations that the host does not have. The
//! [`watch`] sees that and lets them go; what they do without the turn they make up for when they have it
//! again.

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

/// Nobody has the turn: all wait for the kernel.
const NOBODY: usize = usize::MAX;
/// How long a thread looks for its turn before it sleeps, on the host's clock.
const LOOKS: Duration = Duration::from_micros(20);
/// A thread that sleeps looks again after so long, in case it was not woken.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// A thread that was made begins when the host has a cpu for it; nobody waits for that longer, on
/// the host's clock.
const LONGEST_BIRTH: Duration = Duration::from_secs(2);

/// How a thread gives its turn away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It would go on.
    Yields,
    /// It would go on behind the others of its cpu.
    GivesWay,
    /// It looks at one address until another thread changes it: until this time, in ps.
    Spins(u64),
    /// It waits for something.
    Waits,
    /// It goes on at this time, in ps.
    Sleeps(u64),
}

/// How long a thread waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until it has it.
    Endless,
    /// It stands in translated code, which it leaves if all must.
    InCode,
}

/// A thread of the program that begins.
#[derive(Clone, Copy, Debug)]
pub struct Born {
    /// QEMU's index of it.
    pub index: usize,
    /// The address at which its end is to be told; 0 for none.
    pub tells_at: u64,
}

/// A thread of the host that runs one of the program.
#[derive(Debug)]
struct Host {
    thread: Thread,
    /// Its number (gettid(2)).
    tid: i32,
    /// It has not had its first turn.
    born: Option<Born>,
    /// It is in the kernel for the program.
    in_call: bool,
    /// The address that it waits at (futex(2)), and whether the host has it asleep there.
    futex: Option<(u64, bool)>,
}

/// Whoever holds the lock may change the order of turns.
#[derive(Debug)]
pub struct Order {
    /// Who runs when.
    pub schedule: Schedule,
    /// Who waits for whom.
    pub futexes: Futexes,
    hosts: Vec<Option<Host>>,
    /// Threads that are in the kernel to wake others.
    waking: usize,
    /// Seats of threads that the host woke before it was known who did.
    early: Vec<usize>,
    /// Seats of threads for which the host's time ran out and not the machine's, and where they wait.
    out: Vec<(u64, usize)>,
    /// Threads that are being made: when, and where their end is told.
    births: VecDeque<(u64, u64)>,
    /// Seats of threads that end, and where that is told.
    ends: Vec<(usize, u64)>,
    turn: Option<Turn>,
    /// Whether the one who has the turn has come for it, and so may be where only that one is to be.
    taken: bool,
}

/// The turn, and who has it.
#[derive(Debug)]
pub struct Turns {
    order: Mutex<Order>,
    holder: AtomicUsize,
    /// How often the turn was given.
    given: AtomicU64,
    /// How often those who stand in translated code were let go.
    let_go: AtomicU64,
    /// Somebody came back whom the holder does not know of.
    news: AtomicBool,
    /// Threads end.
    any_ends: AtomicBool,
    ending: AtomicBool,
    watched: AtomicBool,
}

impl Turns {
    /// Nobody runs yet.
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
            taken: false,
        };
        Self {
            order: Mutex::new(order),
            holder: AtomicUsize::new(NOBODY),
            given: AtomicU64::new(0),
            let_go: AtomicU64::new(0),
            news: AtomicBool::new(false),
            any_ends: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            watched: AtomicBool::new(false),
        }
    }

    /// The order of turns.
    pub fn order(&self) -> MutexGuard<'_, Order> {
        lock(&self.order)
    }

    /// The calling thread begins, by QEMU's index: its seat.
    pub fn arrives(&'static self, index: usize) -> usize {
        let mut order = self.order();
        self.see_ends(&mut order);
        let birth = order.births.pop_front();
        let (made_ps, tells_at) = birth.unwrap_or_default();
        let seat = order.schedule.begins(made_ps);
        if order.hosts.len() <= seat {
            order.hosts.resize_with(seat + 1, || None);
        }
        let thread = thread::current();
        let born = Some(Born { index, tells_at });
        order.hosts[seat] =
            Some(Host { thread, tid: own_tid(), born, in_call: false, futex: None });
        if order.schedule.seats() > 1 {
            self.watch();
        }
        match birth {
            // Whoever made it has the turn, and lets others have theirs when it comes out of the kernel.
            Some(_) if !self.is_holder(NOBODY) => self.news.store(true, Relaxed),
            _ => self.tell(&mut order),
        }
        seat
    }

    /// Waits until the threads that are being made have begun: threads take seats in the order in
    /// which they begin, and whoever makes them is not to be up to the host.
    pub fn await_births(&self) {
        let asked = Instant::now();
        while !self.order().births.is_empty() && asked.elapsed() < LONGEST_BIRTH {
            thread::yield_now();
        }
        self.order().births.clear();
        self.news.store(true, Relaxed);
    }

    /// Waits for the turn of a seat.
    pub fn take(&self, seat: usize, patience: Patience) -> Option<Turn> {
        let let_go = self.let_go.load(Relaxed);
        let begun = Instant::now();
        // Pairs with the store in `give`: what others did in their turns is seen.
        while self.holder.load(Acquire) != seat {
            let is_let_go = patience == Patience::InCode && self.let_go.load(Relaxed) != let_go;
            if is_let_go || self.ending.load(Relaxed) {
                return None;
            }
            if self.any_ends.load(Relaxed) {
                self.see_ends(&mut self.order());
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
        order.settle();
        order.is_back(seat);
        // It may have been given to another one before the order was locked.
        let turn = order.turn.filter(|turn| turn.seat == seat && !self.ending.load(Relaxed))?;
        order.taken = true;
        Some(turn)
    }

    /// The thread of a seat waits for its turn in code, and can run: it was taken for one that waits
    /// for something if the host had it asleep for long.
    fn is_in_code(&self, seat: usize) {
        let mut order = self.order();
        if !order.schedule.is_ready(seat) {
            order.schedule.goes_on(seat, 0);
            self.tell(&mut order);
        }
    }

    /// The thread of a seat, which has the turn and has come to a time, gives it away, perhaps to
    /// itself.
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

    /// The thread of a seat ends. QEMU tells that at an address, when this thread has no part in the
    /// turns any more: until then the turn is its own, since others may look there.
    pub fn ends(&self, seat: usize, tells_at: u64) {
        let mut order = self.order();
        order.ends.push((seat, tells_at));
        // It is not where others may be any more, and nothing but the kernel ends it.
        order.is_in_call(seat, true);
        self.any_ends.store(true, Relaxed);
        self.see_ends(&mut order);
        order.hosts.iter().flatten().for_each(|host| host.thread.unpark());
    }

    /// Threads have ended of which that was told.
    pub fn see_ends(&self, order: &mut Order) {
        let is_told = |address: u64| guest_memory::word(address).is_none_or(|word| word == 0);
        while let Some(at) = order.ends.iter().position(|(_, address)| is_told(*address)) {
            let (seat, _) = order.ends.swap_remove(at);
            order.schedule.ends(seat);
            order.hosts[seat] = None;
            if self.is_holder(seat) {
                self.give(order);
            }
        }
        self.any_ends.store(!order.ends.is_empty(), Relaxed);
    }

    /// Whether somebody came back whom the holder of the turn does not know of.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.news.load(Relaxed)
    }

    /// Whether the seat has the turn.
    pub fn is_holder(&self, seat: usize) -> bool {
        self.holder.load(Acquire) == seat
    }

    /// Whether the calling thread has come for the turn and has it still: all others keep out then,
    /// until it gives the turn away.
    pub fn is_own(&self) -> bool {
        let order = self.order();
        let holder = order.hosts.get(self.holder.load(Relaxed)).and_then(Option::as_ref);
        order.taken && holder.is_some_and(|host| host.tid == own_tid() && !host.in_call)
    }

    /// The program ends: nobody waits any more.
    pub fn end(&self) {
        let order = self.order();
        // Under the lock: nobody takes a turn from here on (`take`).
        self.ending.store(true, Relaxed);
        order.hosts.iter().flatten().for_each(|host| host.thread.unpark());
    }

    /// Somebody can run who could not before: the one who has the turn lets others have theirs soon, or
    /// loses it if it is in the kernel.
    pub fn tell(&self, order: &mut Order) {
        let holder = order.hosts.get(self.holder.load(Relaxed));
        match holder.and_then(Option::as_ref) {
            Some(host) if !host.in_call => self.news.store(true, Relaxed),
            _ => self.give(order),
        }
    }

    /// Gives the turn to whoever is next.
    pub fn give(&self, order: &mut Order) {
        self.news.store(false, Relaxed);
        self.given.fetch_add(1, Relaxed);
        order.taken = false;
        order.turn = order.schedule.next();
        let seat = order.turn.map_or(NOBODY, |turn| turn.seat);
        // Pairs with the load in `take`.
        self.holder.store(seat, Release);
        if let Some(host) = order.hosts.get(seat).and_then(Option::as_ref) {
            host.thread.unpark();
        }
    }
}

/// The calling thread's number (gettid(2)).
pub fn own_tid() -> i32 {
    // SAFETY: takes nothing, and never fails.
    unsafe { libc::gettid() }
}

impl Order {
    /// A thread is being made, at a time of the one that makes it.
    pub fn makes(&mut self, now_ps: u64, tells_at: u64) {
        self.births.push_back((now_ps, tells_at));
    }

    /// The thread that was to be made was not.
    pub fn makes_none(&mut self) {
        self.births.pop_back();
    }

    /// The thread of a seat, if it has not had its first turn, which it has now.
    pub fn born(&mut self, seat: usize) -> Option<Born> {
        self.hosts[seat].as_mut()?.born.take()
    }

    /// The thread of a seat is in the kernel for the program, or no longer.
    pub fn is_in_call(&mut self, seat: usize, in_call: bool) {
        if let Some(host) = &mut self.hosts[seat] {
            host.in_call = in_call;
        }
    }

    /// No other thread is there any more.
    fn forget_others(&mut self) {
        self.futexes.clear();
        self.waking = 0;
        self.early.clear();
        self.out.clear();
        self.births.clear();
        self.ends.clear();
    }
}
