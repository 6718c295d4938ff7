//! A program instead of a machine: QEMU's user mode runs it on the host's kernel, and the plugin
//! keeps its page tables and its time as Linux would on the emulated machine.

mod account;
mod cached_files;
mod calls;
mod clocks;
mod code;
mod contention;
mod exec;
mod family;
mod faults;
mod file_numbers;
mod futexes;
mod guest_memory;
mod huge;
mod indices;
mod memory;
mod pace;
mod page_use;
mod pages;
mod pipes;
mod policy;
mod policy_calls;
mod regions;
mod repeatable;
mod schedule;
mod seats;
mod stack;
mod summary;
pub mod syscalls;
mod thread;
mod time_line;
mod turns;
mod world;

use std::cell::{RefCell, UnsafeCell};
use std::collections::BTreeSet;
use std::ffi::c_uint;
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Engine, Place};
use numalab_memory_model::gate::Change;
use numalab_memory_model::machine::SystemCall;
use numalab_memory_model::marker::Marker;
use numalab_memory_model::space::PAGE_BYTES;

use clocks::Clocks;
pub use code::{Block, Calling, Instruction, Kept, Made, is_cpuid, is_pause};
pub use family::{Began, has_come_to};
use indices::Indices;
pub use schedule::Schedule;
pub use stack::{is_call, is_return};
pub use summary::program_memory;
use syscalls::Numbers;
use thread::{Goes, Thread};
use turns::{Leave, Patience, Turns};
use world::World;

use crate::qemu::refuse;
use crate::target::Target;

#[derive(Debug)]
pub struct Program {
    pub target: &'static Target,
    /// Instructions that access memory.
    pub instructions: Kept<Instruction>,
    pub blocks: Kept<Block>,
    /// Pages with translated code, by number.
    code_pages: Mutex<BTreeSet<u64>>,
    numbers: Numbers,
    clocks: Clocks,
    turns: Turns,
    engine: OnceLock<&'static Engine>,
    /// Maps QEMU's indices to seats, and to threads while they hold the turn.
    indices: Indices,
    world: UnsafeCell<Option<World>>,
}

// SAFETY: `world` is touched only by the thread that holds the turn (`in_turn`, `takes_turn`,
// `seen`), and passes to the next one by a release and an acquire of `Turns::holder`; all else is
// `Sync` itself.
unsafe impl Sync for Program {}

/// An action of a thread that did not hold the turn.
#[derive(Clone, Copy, Debug)]
enum Event {
    Block(&'static Block),
    Access(Made),
}

thread_local! {
    static DEFERRED: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

impl Program {
    /// Prepares to follow a program with this schedule; returns `None` for an architecture with unknown
    /// system calls.
    pub fn new(schedule: Schedule, target: &'static Target) -> Option<Self> {
        Some(Self {
            target,
            instructions: Kept::default(),
            blocks: Kept::default(),
            code_pages: Mutex::default(),
            numbers: target.calls?,
            clocks: Clocks::new(),
            turns: Turns::new(schedule),
            engine: OnceLock::new(),
            indices: Indices::new(),
            world: UnsafeCell::new(None),
        })
    }

    /// Follows the thread at this QEMU index into a block.
    #[inline]
    pub fn block(&'static self, engine: &'static Engine, index: c_uint, block: &'static Block) {
        let Some(thread) = self.here(index) else { return self.begins(engine, index, block) };
        match thread.block(block) {
            Goes::On if !self.turns.has_news() => {}
            goes => self.turn_over(index, goes),
        }
    }

    /// Returns true the first time that code on this page is translated.
    pub fn is_new_code(&self, place: Place) -> bool {
        lock(&self.code_pages).insert(place.address / PAGE_BYTES)
    }

    /// Lets the thread at this QEMU index wait for what the kernel or a hypervisor does for a block that
    /// it has entered.
    pub fn is_served(&self, index: c_uint, block: &Block) {
        let Some(seat) = self.seat(index) else { return };
        let Some(world) = self.in_turn(seat) else { return };
        world.runs_code(seat, block.place.address);
        if block.cpuids > 0 {
            let kind = SystemCall::Cpuid(block.cpuids);
            world.in_kernel(seat, |active, shadow| active.calls(kind, shadow));
        }
    }

    /// Begins a block like [`Self::block`], for a thread that does not hold the turn.
    #[cold]
    fn begins(&'static self, engine: &'static Engine, index: c_uint, block: &'static Block) {
        let seat = self.seat(index).unwrap_or_else(|| self.arrives(engine, index));
        if self.takes_turn(seat, Patience::InCode) {
            self.catch_up(engine, index);
            self.block(engine, index, block);
        } else {
            DEFERRED.with_borrow_mut(|events| events.push(Event::Block(block)));
        }
    }

    /// Replays what the thread at this QEMU index did without the turn; the thread has the turn
    /// again.
    fn catch_up(&'static self, engine: &'static Engine, index: c_uint) {
        for event in DEFERRED.take() {
            match event {
                Event::Block(block) => self.block(engine, index, block),
                Event::Access(made) => {
                    if !self.access(index, &made) {
                        self.access_farther(index, &made);
                    }
                }
            }
        }
    }

    /// Ends the turn of the thread at this QEMU index.
    #[cold]
    fn turn_over(&'static self, index: c_uint, goes: Goes) {
        let Some(seat) = self.seat(index) else { return };
        let Some(world) = self.in_turn(seat) else { return };
        let now_ps = world.threads[seat].time_ps();
        let spins = goes == Goes::Spins;
        let until_ps = spins.then(|| self.turns.order().schedule.spins_until_ps(seat, now_ps));
        self.lets_others(seat, until_ps.map_or(Leave::Yields, Leave::Spins));
    }

    /// Repeats an access by the thread at this QEMU index while its blocks pass at their mean pace;
    /// returns false unless the thread has made such an access recently.
    #[inline]
    pub fn again(&self, index: c_uint, address: u64, kind: Kind) -> bool {
        self.here(index).is_some_and(|thread| thread.again(address, kind))
    }

    /// Takes the fast path for an access by the thread at this QEMU index; returns false if it
    /// needs [`Self::access_farther`], which is for lines that the thread did not use recently or
    /// that others have changed.
    #[inline]
    pub fn access(&self, index: c_uint, made: &Made) -> bool {
        let Some(thread) = self.here(index) else {
            // The thread was released only to leave translated code, without the turn.
            DEFERRED.with_borrow_mut(|events| events.push(Event::Access(*made)));
            return true;
        };
        if made.by.calls != Calling::Nothing {
            thread.follow_calls(made.address, made.kind, made.by);
            if thread.again(made.address, made.kind) {
                return true;
            }
        }
        thread.access(made)
    }

    /// Follows an access that the fast path cannot handle. If threads contend for the line,
    /// accesses happen in order of time.
    #[inline(never)]
    pub fn access_farther(&'static self, index: c_uint, made: &Made) {
        let Some(seat) = self.seat(index) else { return };
        let Some(world) = self.in_turn(seat) else { return };
        if world.is_contended(seat, made) {
            self.comes_in_order(seat);
        }
        if let Some(world) = self.in_turn(seat) {
            world.access(seat, made);
        }
    }

    /// Applies a marker of the thread at this QEMU index; returns what changed.
    pub fn mark(&'static self, engine: &'static Engine, index: c_uint, marker: Marker) -> Change {
        let seat = self.seat(index);
        let Some((seat, world)) = seat.and_then(|seat| Some((seat, self.in_turn(seat)?))) else {
            return Change::None;
        };
        self.leaves(world, seat);
        world.settle_all();
        // All accesses so far were counted above: they belong to the phase that the marker ends.
        let (change, _) = engine.mark(world.threads[seat].cpu, marker);
        self.lets_others(seat, Leave::Yields);
        change
    }

    /// Called when the thread at this QEMU index has ended.
    pub fn thread_ends(&self, index: c_uint) {
        let Some(seat) = self.seat(index) else { return };
        let mut clear_at = 0;
        if let Some(world) = self.in_turn(seat) {
            let now_ps = self.leaves(world, seat);
            self.turns.order().schedule.comes_to(seat, now_ps);
            clear_at = world.threads[seat].clear_at;
        }
        self.indices.ends(index as usize);
        self.turns.ends(seat, clear_at);
    }

    /// Returns the seat of QEMU's index, if its thread has one.
    #[inline]
    fn seat(&self, index: c_uint) -> Option<usize> {
        self.indices.seat(index as usize)
    }

    /// Seats the new thread at this QEMU index.
    #[cold]
    fn arrives(&'static self, engine: &'static Engine, index: c_uint) -> usize {
        self.turns.follow_forks();
        self.engine.get_or_init(|| engine);
        let seat = self.turns.arrives(index as usize);
        if !self.indices.sits(index as usize, seat) {
            refuse(&format!("the program has more than {} threads at a time", indices::MOST));
        }
        seat
    }

    /// Returns the calling thread, which has QEMU's index, if it holds the turn.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the turn is the lock")]
    fn here(&self, index: c_uint) -> Option<&mut Thread> {
        let thread = self.indices.here(index as usize);
        // SAFETY: 1. Threads stay in place (`Seats::place`), and this one is registered under its own
        // index only from when it takes the turn until it gives it away, both of which it does
        // itself (`takes_turn`, `leaves`).
        // 2. The callers use no reference after a call that gives the turn away, nor together with
        //    one to the world.
        unsafe { thread.as_mut() }
    }

    /// Returns the shared state if the calling thread, which has this seat, holds the turn. A
    /// caller that lets others run must ask again.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the turn is the lock")]
    fn in_turn(&self, seat: usize) -> Option<&mut World> {
        if !self.turns.has_taken(seat) {
            return None;
        }
        // SAFETY: 1. One thread holds the turn at a time, and its predecessor gave it away after
        // its last use of the world (`Turns::give` and `is_holder` are a release and an acquire).
        // This one has taken it, so that it loses it only by its own doing, or in the kernel.
        // 2. The callers are the functions of this file and of `calls`, none of which uses a
        //    reference after a call that asks again.
        unsafe { &mut *self.world.get() }.as_mut()
    }

    /// Returns the shared state, without waiting, if the calling thread holds the turn. A thread in
    /// exit_group(2) or execve(2) does, and no other gets it meanwhile (`begins_call`). Work of
    /// others between exit_group(2) and the end is not counted.
    fn seen(&self) -> Option<&World> {
        if !self.turns.is_own() {
            return None;
        }
        // SAFETY: 1. By `is_own` this thread holds the turn, which no other can take from it
        // (`Turns::is_own`).
        // 2. The callers hold no other reference to the world, and use this one before they return
        //    to where the turn may be given away.
        let world = unsafe { &mut *self.world.get() }.as_mut()?;
        world.ends_stretch(world.elapsed_ps());
        Some(world)
    }

    /// Waits until the seat has the turn; returns false if patience ran out or the program ends.
    fn takes_turn(&'static self, seat: usize, patience: Patience) -> bool {
        let (Some(turn), Some(engine)) = (self.turns.take(seat, patience), self.engine.get())
        else {
            return false;
        };
        let born = self.turns.order().born(seat);
        // SAFETY: this thread holds the turn (see `in_turn`), and its callers use no earlier
        // reference to the world.
        let world = unsafe { &mut *self.world.get() }.get_or_insert_with(|| World::new(engine));
        world.hides_stores = self.target.hides_stores;
        if let Some(born) = born {
            world.begins(seat, born);
        }
        let thread = &mut world.threads[seat];
        thread.takes(engine, seat, turn);
        let index = thread.index;
        self.indices.is_here(index, world.threads.place(seat));
        true
    }

    /// Prepares the seat's thread to give its turn away; returns its time in ps.
    fn leaves(&self, world: &mut World, seat: usize) -> u64 {
        let thread = &mut world.threads[seat];
        self.indices.is_here(thread.index, ptr::null_mut());
        let now_ps = thread.leaves();
        world.comes_to(now_ps);
        now_ps
    }

    /// Gives the turn away and waits for the next one.
    #[cold]
    fn lets_others(&'static self, seat: usize, how: Leave) {
        let Some(world) = self.in_turn(seat) else { return };
        let now_ps = self.leaves(world, seat);
        if let Leave::Spins(until_ps) = how {
            world.threads[seat].spins(until_ps);
        }
        self.turns.leave(seat, now_ps, how);
        self.takes_turn(seat, Patience::InCode);
    }

    /// Lets all other running threads reach this thread's time before it continues.
    #[cold]
    fn comes_in_order(&'static self, seat: usize) {
        let Some(world) = self.in_turn(seat) else { return };
        let now_ps = world.threads[seat].time_ps();
        // Without this order, threads ran as the host scheduled them and caught up with each other
        // later: contended lines and queues differed between runs by tens of percent.
        if self.turns.order().schedule.is_ahead(seat, now_ps) {
            self.lets_others(seat, Leave::Yields);
        }
    }
}

/// Returns this process's report file: `FILE.PID`, or `FILE.1.PID` and so on if it was another
/// program before execve(2), which left its report there.
pub fn report_file(file: &str) -> String {
    // Per process, as fork(2) copies the parent's choice.
    static CHOSEN: Mutex<Option<(u32, String)>> = Mutex::new(None);
    let process = std::process::id();
    let mut chosen = lock(&CHOSEN);
    if let Some((_, name)) = chosen.as_ref().filter(|(of, _)| *of == process) {
        return name.clone();
    }
    let later = (1..).map(|number: u64| format!("{file}.{number}.{process}"));
    let mut names = std::iter::once(format!("{file}.{process}")).chain(later);
    let name = names.find(|name| !std::path::Path::new(name).exists()).unwrap_or_default();
    chosen.insert((process, name)).1.clone()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
