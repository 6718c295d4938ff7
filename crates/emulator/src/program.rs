//! A program instead of a machine: QEMU's user mode runs it on this host's kernel, and we keep
//! its page tables, as Linux would on the machine that is emulated.

mod guest_memory;
mod regions;
mod summary;
mod syscalls;
mod threads;

use std::cell::{Cell, RefCell};
use std::ffi::c_uint;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Access, Effect, Engine};
use numalab_memory_model::machine::Machine;
use numalab_memory_model::space::{PAGE_BYTES, Page, Placement, Space};

use guest_memory::mask;
use regions::{Accesses, MOST, Regions};
pub use summary::Summary;
use syscalls::{Call, Numbers};
use threads::Threads;
pub use threads::with_places;

/// Translations that a thread remembers; a power of two.
const REMEMBERED: usize = 1024;
/// `MPOL_MF_MOVE`, `MPOL_MF_MOVE_ALL`.
const MOVES: u64 = 2 | 4;
/// `MADV_DONTNEED`, `MADV_FREE`, `MADV_REMOVE`.
const DISCARDS: [u64; 3] = [4, 8, 9];
/// `MAP_ANONYMOUS`
const ANONYMOUS: u64 = 0x20;

/// What is known of the program that runs.
#[derive(Debug)]
pub struct Program {
    numbers: Numbers,
    threads: Threads,
    space: Mutex<Space>,
    /// Counted on when pages go or move: what threads remember is old then.
    generation: AtomicU64,
    regions: Mutex<Regions>,
    heap: Mutex<Option<u64>>,
    accesses: Vec<Accesses>,
    nodes: usize,
    /// Pages for which the machine had no memory left.
    unplaced: AtomicU64,
    /// The program that this process is about to become, outside of the emulation.
    becomes: Mutex<Option<String>>,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    number: u64,
    page: Page,
    region: usize,
}

thread_local! {
    static REMEMBERS: RefCell<(u64, Vec<Option<Remembered>>)> = const { RefCell::new((0, Vec::new())) };
    static PENDING: Cell<Option<(Call, [u64; 6])>> = const { Cell::new(None) };
}

impl Program {
    /// A program on a machine made by [`with_places`] with this order of cpus; `None` for an
    /// architecture whose system calls we do not know.
    pub fn new(machine: &Machine, order: &[usize], target: &str) -> Option<Self> {
        Some(Self {
            numbers: Numbers::of(target)?,
            threads: Threads::new(machine.cpus.len(), order.to_vec()),
            space: Mutex::new(Space::new(machine)),
            generation: AtomicU64::new(1),
            regions: Mutex::default(),
            heap: Mutex::default(),
            accesses: machine.cpus.iter().map(|_| Accesses::default()).collect(),
            nodes: machine.nodes.len(),
            unplaced: AtomicU64::new(0),
            becomes: Mutex::default(),
        })
    }

    /// The place of a thread, by QEMU's index.
    #[inline]
    pub fn place(&self, index: c_uint) -> usize {
        self.threads.place(index as usize)
    }

    /// A thread accesses memory: what must be done for it.
    #[inline]
    pub fn access(
        &self,
        engine: &Engine,
        place: usize,
        address: u64,
        kind: Kind,
        position: u32,
    ) -> Effect {
        let Some(found) = self.locate(engine, place, address, kind == Kind::Store) else {
            return Effect::None;
        };
        let virtual_address = address;
        let address = found.page.frame + address % PAGE_BYTES;
        let before_ps = engine.waited_ps(place);
        let effect =
            engine.access(Access { vcpu: place, address, virtual_address, kind, position });
        let waited_ps = [before_ps, engine.waited_ps(place)];
        let slot = found.region * self.nodes + found.page.node;
        self.accesses[place].add(slot, MOST * self.nodes, kind, waited_ps);
        effect
    }

    /// A thread has ended, by QEMU's index.
    pub fn thread_ends(&self, index: c_uint) {
        self.threads.leave(index as usize);
    }

    /// The thread that calls us begins a system call; whether this process goes on as another
    /// program if it succeeds.
    pub fn begins_call(&self, number: i64, arguments: [u64; 6]) -> bool {
        let call = self.numbers.call(number);
        PENDING.set(call.map(|call| (call, arguments)));
        let becomes = call == Some(Call::Execute);
        if becomes {
            *lock(&self.becomes) = Some(guest_memory::path(arguments[0]));
        }
        becomes
    }

    /// The system call that it began gave this.
    pub fn returns_from_call(&self, engine: &Engine, index: c_uint, value: i64) {
        if let Some((call, arguments)) = PENDING.take() {
            self.returned(engine, index as usize, call, arguments, value);
        }
    }

    /// Where an address lies, for a thread on a node that touches it.
    #[inline]
    fn locate(
        &self,
        engine: &Engine,
        place: usize,
        address: u64,
        store: bool,
    ) -> Option<Remembered> {
        let (number, generation) = (address / PAGE_BYTES, self.generation.load(Relaxed));
        REMEMBERS.with_borrow_mut(|(known, entries)| {
            if *known != generation || entries.is_empty() {
                *known = generation;
                entries.clear();
                entries.resize(REMEMBERED, None);
            }
            #[expect(clippy::cast_possible_truncation, reason = "below REMEMBERED")]
            let entry = &mut entries[(number % REMEMBERED as u64) as usize];
            if entry.is_none_or(|entry| entry.number != number) {
                *entry = self.look_up(engine, place, address, store);
            }
            *entry
        })
    }

    #[cold]
    fn look_up(
        &self,
        engine: &Engine,
        place: usize,
        address: u64,
        store: bool,
    ) -> Option<Remembered> {
        let number = address / PAGE_BYTES;
        let home = engine.arguments.machine.cpus[place];
        let placement = self.threads.placement(place);
        let Some(page) = lock(&self.space).touch(number, home, &placement) else {
            self.unplaced.fetch_add(1, Relaxed);
            return None;
        };
        let region = lock(&self.regions).of(address, |known, path| match path {
            // A thread begins with its arguments on its stack.
            "" if store && known.iter().all(|region| region.name != STACK) => STACK.to_owned(),
            "" => ANONYMOUS_NAME.to_owned(),
            path => path.to_owned(),
        });
        Some(Remembered { number, page, region })
    }

    fn returned(&self, engine: &Engine, index: usize, call: Call, arguments: [u64; 6], value: i64) {
        let [address, length, third, fourth, fifth, _] = arguments;
        let Ok(value) = u64::try_from(value) else {
            lock(&self.becomes).take_if(|_| call == Call::Execute);
            // The host has one node where the machine has several: what it refuses, the machine
            // would do.
            return self.policy(engine, index, call, arguments);
        };
        match call {
            Call::Map => {
                let end = value + length.next_multiple_of(PAGE_BYTES);
                lock(&self.space).unmap(pages(value, length));
                let file = (fourth & ANONYMOUS == 0).then(|| guest_memory::file(fifth)).flatten();
                lock(&self.regions).add(
                    value,
                    end,
                    file.unwrap_or_else(|| ANONYMOUS_NAME.to_owned()),
                );
                self.forget();
            }
            Call::Unmap => {
                lock(&self.space).unmap(pages(address, length));
                lock(&self.regions).remove(address, address + length);
                self.forget();
            }
            Call::Remap => {
                let from = pages(address, length.min(third));
                lock(&self.space).remap(from, value / PAGE_BYTES);
                if third < length {
                    lock(&self.space).unmap(pages(address + third, length - third));
                }
                let mut regions = lock(&self.regions);
                let number = regions.of(address, |_, _| ANONYMOUS_NAME.to_owned());
                let name = regions.all()[number].name.clone();
                regions.remove(address, address + length);
                regions.add(value, value + third, name);
                self.forget();
            }
            Call::Break => self.moved_break(value),
            Call::Advise if DISCARDS.contains(&third) => {
                lock(&self.space).discard(pages(address, length));
                self.forget();
            }
            Call::SetAffinity | Call::BindMemory | Call::SetPolicy => {
                self.policy(engine, index, call, arguments);
            }
            Call::Advise | Call::Execute => {}
        }
    }

    /// Sets what a thread says about its cpus and where its pages are to lie.
    fn policy(&self, engine: &Engine, index: usize, call: Call, arguments: [u64; 6]) {
        let place = self.threads.place(index);
        let [first, second, third, fourth, fifth, sixth] = arguments;
        let machine = &engine.arguments.machine;
        let nodes = |address: u64, bits: u64| -> Vec<usize> {
            let ids = mask(address, bits);
            let known = machine.nodes.iter().enumerate();
            known.filter(|(_, node)| ids.contains(&(node.id as usize))).map(|(at, _)| at).collect()
        };
        match call {
            Call::SetAffinity if first == 0 => {
                self.threads.allow(index, &mask(third, second * 8));
            }
            Call::SetPolicy => {
                let placement = placement(first, nodes(second, third)).unwrap_or_default();
                self.threads.set_placement(place, placement);
            }
            Call::BindMemory => {
                let own = placement(third, nodes(fourth, fifth));
                let home = machine.cpus[place];
                lock(&self.space).set_placement(
                    pages(first, second),
                    own,
                    sixth & MOVES != 0,
                    home,
                );
                self.forget();
            }
            _ => {}
        }
    }

    /// The heap ends there now.
    fn moved_break(&self, end: u64) {
        let mut heap = lock(&self.heap);
        let start = *heap.get_or_insert(end);
        let mut regions = lock(&self.regions);
        if end > start {
            match regions.is_living(start) {
                true => regions.resize(start, end),
                false => drop(regions.add(start, end, HEAP.to_owned())),
            }
        }
    }

    /// What threads remember is old.
    fn forget(&self) {
        self.generation.fetch_add(1, Relaxed);
    }
}

const STACK: &str = "[stack]";
const HEAP: &str = "[heap]";
const ANONYMOUS_NAME: &str = "[anonymous]";

/// The modes of set_mempolicy(2), their flags left out; `None` for the default.
fn placement(mode: u64, nodes: Vec<usize>) -> Option<Placement> {
    match (mode & 0xff, nodes.first()) {
        (0, _) | (_, None) => None,
        (1 | 5, Some(node)) => Some(Placement::Preferred(*node)),
        (2, _) => Some(Placement::Bind(nodes)),
        (3 | 6, _) => Some(Placement::Interleave(nodes)),
        _ => Some(Placement::Local),
    }
}

/// The numbers of the pages that a range of addresses touches.
fn pages(start: u64, bytes: u64) -> Range<u64> {
    start / PAGE_BYTES..start.saturating_add(bytes).div_ceil(PAGE_BYTES)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
