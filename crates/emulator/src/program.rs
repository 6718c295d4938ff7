//! A program instead of a machine: QEMU's user mode runs it on this host's kernel, and we keep
//! its page tables, as Linux would on the machine that is emulated.

mod accesses;
mod calls;
mod clock;
mod code;
mod contention;
mod cpus;
mod exec;
mod guest_memory;
mod huge;
mod pace;
mod page_use;
mod pages;
mod regions;
mod stack;
mod summary;
mod syscalls;
mod threads;

use std::cell::{Cell, RefCell};
use std::ffi::c_uint;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use numalab_memory_model::arguments::{Arguments, Beside, MOST_BESIDE, Policy};
use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Access, Effect, Engine, There};
use numalab_memory_model::space::{PAGE_BYTES, Page, Placement, Space};

use accesses::{Accesses, Touch, Waits};
use clock::Clock;
pub use code::{Flow, Instruction, Instructions};
use contention::{Contention, Use};
use cpus::Cpus;
use pace::Pace;
use page_use::{Line, PageUse};
use pages::Pages;
use regions::{MOST, Regions};
pub use stack::{called, is_call, is_return, returned};
pub use summary::program_memory;
use syscalls::{Call, Numbers};
use threads::Threads;
pub use threads::with_places;

/// Translations that a thread remembers; a power of two.
const REMEMBERED: usize = 1024;
/// A page goes to another node when that waits for it longer than its own by a quarter and by this,
/// in ps: pages that all use stay.
const SETTLES_PS: u64 = 500_000;
/// Calls that are told of a place in the code.
const MOST_CALLERS: usize = 12;

/// What is known of the program that runs.
#[derive(Debug)]
pub struct Program {
    target: String,
    /// Its instructions that access memory.
    pub instructions: Instructions,
    numbers: Numbers,
    threads: Threads,
    clock: Clock,
    pace: Pace,
    cpus: Cpus,
    space: Mutex<Space>,
    pages: Mutex<Pages>,
    contention: Mutex<Contention>,
    /// Counted on when pages go or move: what threads remember is old then.
    generation: AtomicU64,
    regions: Mutex<Regions>,
    /// Its first address, and the one behind it.
    heap: Mutex<Option<(u64, u64)>>,
    accesses: Vec<Accesses>,
    nodes: usize,
    /// What else might be.
    beside: Vec<Beside>,
    huge_always: bool,
    follows_users: bool,
    /// Pages for which the machine had no memory left.
    unplaced: AtomicU64,
    /// The program that this process is about to become, outside of the emulation.
    becomes: Mutex<Option<String>>,
}

/// An access of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// The first address.
    pub address: u64,
    /// So many bytes.
    pub bytes: u64,
    /// Load or store.
    pub kind: Kind,
    /// By which instruction.
    pub by: &'static Instruction,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    number: u64,
    page: Page,
    region: usize,
    used: &'static PageUse,
    /// Where it would be by the placements that are watched.
    elsewhere: [There; MOST_BESIDE],
}

thread_local! {
    static REMEMBERS: RefCell<(u64, Vec<Option<Remembered>>)> = const { RefCell::new((0, Vec::new())) };
    static PENDING: Cell<Option<(Call, [u64; 6])>> = const { Cell::new(None) };
}

impl Program {
    /// A program on a machine made by [`with_places`] with this order of cpus; `None` for an
    /// architecture whose system calls we do not know.
    pub fn new(arguments: &Arguments, order: &[usize], target: &str) -> Option<Self> {
        let machine = &arguments.machine;
        let first = match &arguments.policy {
            Policy::Stay(placement) => placement.clone(),
            Policy::Users => Placement::Local,
        };
        Some(Self {
            target: target.to_owned(),
            instructions: Instructions::default(),
            numbers: Numbers::of(target)?,
            threads: Threads::new(machine, order),
            clock: Clock::new(machine.cpus.len()),
            pace: Pace::new(machine.cpus.len()),
            cpus: Cpus::new(machine.cpus.len(), machine.cpus.len()),
            space: Mutex::new(Space::new(machine, first)),
            beside: arguments.beside.clone(),
            huge_always: arguments.huge_always,
            pages: Mutex::default(),
            contention: Mutex::default(),
            generation: AtomicU64::new(1),
            regions: Mutex::default(),
            heap: Mutex::default(),
            accesses: machine.cpus.iter().map(|_| Accesses::default()).collect(),
            nodes: machine.nodes.len(),
            follows_users: arguments.policy == Policy::Users,
            unplaced: AtomicU64::new(0),
            becomes: Mutex::default(),
        })
    }

    /// Whether calls store their return addresses, by which they are followed.
    pub fn pushes_calls(&self) -> bool {
        self.target == "x86_64"
    }

    /// The place of a thread, by QEMU's index.
    #[inline]
    pub fn place(&self, engine: &Engine, index: c_uint) -> usize {
        self.threads.known(index as usize).unwrap_or_else(|| {
            let place = self.threads.place(index as usize);
            self.clock.begins(place, engine.busy_ps(place));
            self.cpus.comes(place, engine.busy_ps(place));
            place
        })
    }

    /// A thread accesses memory: what must be done for it.
    #[inline]
    pub fn access(&self, engine: &Engine, place: usize, made: Made) -> Effect {
        let Some(found) = self.locate(engine, place, made) else { return Effect::None };
        let Made { address: virtual_address, kind, .. } = made;
        let address = found.page.frame + virtual_address % PAGE_BYTES;
        let home = engine.arguments.machine.cpus[place];
        let line = found.used.access(place, home, virtual_address, kind);
        let before = Waits::of(engine, place, found.page.node);
        let came = engine.outcome(place);
        let access =
            Access { vcpu: place, address, virtual_address, kind, position: made.by.position };
        let effect = engine.access_beside(access, &found.elsewhere[..self.beside.len()]);
        let behind = Waits::of(engine, place, found.page.node);
        let slot = found.region * self.nodes + found.page.node;
        let touch = Touch { slot, kind, used: found.used, home };
        let outcomes = [came, engine.outcome(place)];
        self.accesses[place].add(touch, MOST * self.nodes, [before, behind], outcomes);
        if let Line::Contended(changed) = line {
            let waited_ps = behind.waited_ps.saturating_sub(before.waited_ps);
            let Made { address, bytes, by, .. } = made;
            let instruction = by.address;
            let used = Use { place, address, bytes, kind, changed, waited_ps, instruction };
            lock(&self.contention).add(used, found.region, || stack::callers(MOST_CALLERS));
        }
        if self.follows_users && behind.reached.misses > before.reached.misses {
            self.settle(found, home);
        }
        effect
    }

    /// Holds a thread up that is ahead of the others.
    #[inline]
    pub fn pace(&self, engine: &Engine, place: usize) {
        let phase_ps = engine.phase_ps(place);
        if self.pace.is_due(place, phase_ps) {
            self.take_time(engine, place);
            self.pace.keep(place, self.clock.now_ps(place, engine.busy_ps(place)), phase_ps);
        }
    }

    /// The thread at a place has been busy until now: it waits for others of its cpu.
    fn take_time(&self, engine: &Engine, place: usize) {
        let busy_ps = engine.busy_ps(place);
        let now_ps = self.clock.now_ps(place, busy_ps);
        let cpus = self.threads.cpus(place);
        self.clock.waits_for_cpu(place, self.cpus.book(place, &cpus, busy_ps, now_ps));
    }

    /// A thread has ended, by QEMU's index.
    pub fn thread_ends(&self, engine: &Engine, index: c_uint) {
        if let Some(place) = self.threads.known(index as usize) {
            self.take_time(engine, place);
            self.clock.ends(place, engine.busy_ps(place));
            self.pace.stops(place);
            self.threads.leave(index as usize);
        }
    }

    /// Moves a page to the node of a thread that has waited for it, if that waits for it most.
    fn settle(&self, found: Remembered, home: usize) {
        let own = found.page.node;
        if own == home || found.page.bound {
            return;
        }
        let waits_ps = found.used.seen().memory_ps;
        let longest = waits_ps[own] + waits_ps[own] / 4 + SETTLES_PS;
        if waits_ps[home] <= longest {
            return;
        }
        if let Some(page) = lock(&self.space).move_page(found.number, home) {
            found.used.moved(page);
            self.forget();
        }
    }

    /// Where an address lies, for a thread on a node that touches it.
    #[inline]
    fn locate(&self, engine: &Engine, place: usize, made: Made) -> Option<Remembered> {
        let number = made.address / PAGE_BYTES;
        let generation = self.generation.load(Relaxed);
        REMEMBERS.with_borrow_mut(|(known, entries)| {
            if *known != generation || entries.is_empty() {
                *known = generation;
                entries.clear();
                entries.resize(REMEMBERED, None);
            }
            let entry = &mut entries[(number % REMEMBERED as u64) as usize];
            if entry.is_none_or(|entry| entry.number != number) {
                *entry = self.look_up(engine, place, made);
            }
            *entry
        })
    }

    #[cold]
    fn look_up(&self, engine: &Engine, place: usize, made: Made) -> Option<Remembered> {
        let number = made.address / PAGE_BYTES;
        let home = engine.arguments.machine.cpus[place];
        let store = made.kind == Kind::Store;
        let mut regions = lock(&self.regions);
        let region = regions.of(made.address, |known, path| match path {
            // A thread begins with its arguments on its stack.
            "" if store && known.iter().all(|region| region.name != STACK) => STACK.to_owned(),
            "" => ANONYMOUS_NAME.to_owned(),
            path => path.to_owned(),
        });
        let huge = regions.huge(made.address);
        let placement = self.threads.placement(place);
        let mut space = lock(&self.space);
        let asked = huge.is_given(self.huge_always);
        let Some(page) = space.touch(number, home, placement.as_ref(), asked) else {
            self.unplaced.fetch_add(1, Relaxed);
            return None;
        };
        let block = if huge.is_given(true) { space.node_of_block(number) } else { None };
        drop(space);
        let mut pages = lock(&self.pages);
        let used = pages.get(number).unwrap_or_else(|| {
            regions.touched(region, place, made.by.address, || stack::callers(MOST_CALLERS));
            pages.add(number, region, page, place)
        });
        used.moved(page);
        let packed = engine.packed_node(used.first_place());
        let elsewhere = self.elsewhere(number, page, block, packed);
        Some(Remembered { number, page, region, used, elsewhere })
    }

    /// Where a page would be by the placements that are watched: nowhere else if the program itself
    /// has said where. `block` is the node of what would be its huge page, `packed` that of who touched it
    /// first if threads are packed.
    fn elsewhere(
        &self,
        number: u64,
        page: Page,
        block: Option<usize>,
        packed: Option<usize>,
    ) -> [There; MOST_BESIDE] {
        let mut all = [There { node: page.node, huge: false }; MOST_BESIDE];
        for (there, beside) in all.iter_mut().zip(&self.beside) {
            match beside {
                Beside::Huge => {
                    *there = There { node: block.unwrap_or(page.node), huge: block.is_some() };
                }
                Beside::Placed(Placement::Bind(turns) | Placement::Interleave(turns))
                    if !page.bound =>
                {
                    let turn = usize::try_from(number % turns.len() as u64).unwrap_or(0);
                    there.node = turns[turn];
                }
                Beside::Packed if !page.bound => there.node = packed.unwrap_or(page.node),
                Beside::Placed(_) | Beside::Packed => {}
            }
        }
        all
    }

    /// What threads remember is old.
    fn forget(&self) {
        self.generation.fetch_add(1, Relaxed);
    }
}

const STACK: &str = "[stack]";
const HEAP: &str = "[heap]";
const ANONYMOUS_NAME: &str = "[anonymous]";

/// Where this process reports: `FILE.PID`, or if it was another program before, which left its own
/// report there, `FILE.1.PID` and so on.
pub fn report_file(file: &str) -> String {
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

/// The numbers of the pages that a range of addresses touches.
fn pages(start: u64, bytes: u64) -> Range<u64> {
    start / PAGE_BYTES..start.saturating_add(bytes).div_ceil(PAGE_BYTES)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
