//! State that all threads share: pages, mappings and their figures. Only the holder of the turn
//! touches it.

use std::collections::BTreeSet;

use numalab_memory_model::arguments::{Alternative, Arguments, MOST_ALTERNATIVES, Policy};
use numalab_memory_model::counters::{Kind, VcpuFigures};
use numalab_memory_model::engine::{Access, Engine, There};
use numalab_memory_model::machine::Fault;
use numalab_memory_model::outcome::Source;
use numalab_memory_model::space::{PAGE_BYTES, Page, Placement, Space, block};

use super::account::Touch;
use super::code::{Instruction, Made};
use super::contention::{Contention, Use};
use super::file_numbers::FileNumbers;
use super::memory::{Counts, Remembered};
use super::page_use::{LINE_BYTES, Line, PageUse};
use super::pages::Pages;
use super::regions::{ANONYMOUS, Regions, STACK};
use super::seats::Seats;
use super::thread::Thread;
use super::time_line::TimeLine;
use super::turns::Born;

/// Callers recorded for a place in the code.
pub const MOST_CALLERS: usize = 12;

#[derive(Debug)]
pub struct World {
    /// The model of the machine.
    pub engine: &'static Engine,
    /// The threads by seat; the address of the running one is known, too.
    pub threads: Seats<Thread>,
    /// The location of each page.
    pub space: Space,
    pub pages: Pages,
    /// True if QEMU does not show all stores.
    pub hides_stores: bool,
    /// Use of the page of zeros.
    pub zeros: Option<&'static PageUse>,
    /// Groups of pages of a file that were mapped when one of their pages was loaded.
    pub mapped: BTreeSet<u64>,
    /// True if processes may share pages with this one.
    pub has_children: bool,
    /// True if the parent's memory is used until the process becomes another program (vfork(2)).
    pub borrows_memory: bool,
    /// The address ranges that are mapped.
    pub regions: Regions,
    /// The files that calls read and write.
    pub files: FileNumbers,
    /// Lines that threads contend for.
    pub contention: Contention,
    /// The heap's first address, and the one after its end.
    pub heap: Option<(u64, u64)>,
    /// Accesses to pages for which the machine had no memory left.
    pub unplaced: u64,
    /// The program that this process will execute outside of the emulation.
    pub becomes: Option<String>,
    pub time_line: TimeLine,
    /// All threads' busy time when this process last reported while running, in ps.
    pub reported_ps: u64,
    /// The latest time of any thread, in ps.
    latest_ps: u64,
    /// Incremented when pages are freed or move, which invalidates the threads' caches.
    pub generation: u32,
    pub nodes: usize,
    follows_users: bool,
}

impl World {
    pub fn new(engine: &'static Engine) -> Self {
        let Arguments { machine, policy, .. } = &engine.arguments;
        let first = match policy {
            Policy::Stay(placement) => placement.clone(),
            Policy::Users => Placement::Local,
        };
        Self {
            engine,
            threads: Seats::default(),
            space: Space::new(machine, first),
            pages: Pages::default(),
            hides_stores: false,
            zeros: None,
            mapped: BTreeSet::new(),
            has_children: false,
            borrows_memory: false,
            regions: Regions::default(),
            files: FileNumbers::default(),
            contention: Contention::default(),
            heap: None,
            unplaced: 0,
            becomes: None,
            time_line: TimeLine::default(),
            reported_ps: 0,
            latest_ps: 0,
            generation: 1,
            nodes: machine.nodes.len(),
            follows_users: *policy == Policy::Users,
        }
    }

    /// Seats a new thread.
    pub fn begins(&mut self, seat: usize, born: Born) {
        while self.threads.len() <= seat {
            self.threads.push(Thread::new(self.engine, self.threads.len()));
        }
        self.threads[seat].renew(born);
    }

    /// Returns true if an access depends on earlier actions of other threads. A store of an
    /// instruction that also loads happens together with its load.
    pub fn is_contended(&mut self, seat: usize, made: &Made) -> bool {
        let thread = &mut self.threads[seat];
        let known = thread.pages.of(made.address, self.generation);
        if !known.is_some_and(|known| known.used.is_ordered(made.address)) {
            return false;
        }
        let goes_with = |(by, address): (&Instruction, u64)| {
            std::ptr::eq(by, made.by) && address == made.address
        };
        match made.kind {
            Kind::Load => {
                thread.loaded = Some((made.by, made.address));
                true
            }
            Kind::Store => !thread.loaded.take().is_some_and(goes_with),
        }
    }

    /// Follows an access of the seat's thread on the slow path.
    pub fn access(&mut self, seat: usize, made: &Made) {
        let generation = self.generation;
        let known = self.threads[seat].pages.of(made.address, generation);
        if known.is_none_or(|known| known.only_loads && made.kind == Kind::Store) {
            let Some(page) = self.look_up(seat, made) else { return };
            self.threads[seat].pages.remember(page);
        }
        self.threads[seat].catches_up();
        let Thread {
            active,
            shadow,
            is_followed,
            is_passing,
            meets,
            account,
            pages,
            lines,
            last_line,
            last_page,
            calls,
            cpu,
            home,
            ..
        } = &mut self.threads[seat];
        let (Some(found), Some(active)) = (pages.of(made.address, generation), active) else {
            return;
        };
        let Made { address: virtual_address, kind, by, bytes } = *made;
        let address = found.page.frame + virtual_address % PAGE_BYTES;
        let table = Some(found.page.table);
        let position = by.position;
        let access = Access { address, virtual_address, kind, bytes, position, table };
        let shadow = is_followed.then_some((&mut *shadow, found.elsewhere.as_slice()));
        let outcome = match is_passing {
            true => active.passes_access(found.page.node, access, by.by.accessor, shadow),
            false => active.access_on(found.page.node, access, shadow),
        };
        *meets |= *is_passing && matches!(outcome.source, Source::Near | Source::Far);
        found.used.count(*home, [Kind::Load, Kind::Store].map(|of| u64::from(of == kind)));
        let touch = Touch { slot: found.slot as usize, kind, used: found.used, home: *home };
        account.add(touch, &outcome);
        let now_ps = active.now_ps();
        let line = found.used.pass(seat, virtual_address, kind, now_ps);
        if let Line::Contended(changed) = line {
            let (address, bytes) = (made.address, u64::from(bytes));
            let (waited_ps, instruction) = (account.in_all_ps(outcome.waited_ps), by.address);
            let used = Use { seat, address, bytes, kind, changed, waited_ps, instruction };
            self.contention.add(used, found.region, || calls.callers(MOST_CALLERS));
        }
        // The first store to a line comes here, also in pages that may only be loaded from.
        let known = outcome.known.filter(|_| active.has_quick_way());
        let mut counts = Counts { engine: self.engine, account, cpu: *cpu, home: *home };
        lines.remember(virtual_address, found, known, &mut counts);
        (*last_line, *last_page) = (virtual_address / LINE_BYTES, virtual_address / PAGE_BYTES);
        if self.time_line.is_due(now_ps) {
            self.ends_stretch(now_ps);
        }
    }

    /// Records a page's second user, on a node.
    fn hand_over(&mut self, used: &PageUse, number: u64, home: usize) {
        used.hand_to(home);
        // The first user has cached the page without a second user's node.
        self.threads[used.first()].pages.forget(number);
        if self.follows_users {
            self.forget();
        }
    }

    /// Places the page of an access in a region, if it is not placed yet, and lets the seat's
    /// thread wait for the kernel; also returns the node of the huge page that could be around it.
    fn touches(
        &mut self,
        seat: usize,
        made: &Made,
        region: usize,
    ) -> Option<(Page, Option<usize>)> {
        let (number, store) = (made.address / PAGE_BYTES, made.kind == Kind::Store);
        let fault = self.fault_of(number, region, store);
        if matches!(fault, Some(Fault::Copy | Fault::Reuse)) {
            self.copies(number, region);
        }
        let huge = self.regions.huge(made.address);
        let asked = huge.is_given(self.engine.arguments.huge_always);
        let may_be_huge = huge.is_given(true);
        let is_first = self.space.node_of_block(number).is_none();
        let is_new = self.space.node_of(number).is_none();
        if is_new {
            self.forget_zeros(if asked { block(number) } else { number..number + 1 });
        }
        let Some((mut page, placed)) = self.places(seat, number, asked) else {
            self.unplaced += 1;
            return None;
        };
        if let Some(fault) = fault {
            let fault = if fault == Fault::Store { placed } else { fault };
            let if_huge = may_be_huge.then_some(is_first);
            self.faults(seat, fault, (number, page), if_huge);
        }
        let of = &self.regions.all()[region];
        if is_new && !store && of.is_file() && !of.shared {
            page.is_shared = true;
            self.space.shares(number, true);
        }
        let placement = self.threads[seat].placement.as_ref();
        let huge_node = may_be_huge.then(|| self.space.node_of_huge(number, placement));
        Some((page, huge_node.flatten()))
    }

    /// Looks up the page of an access that the seat's thread has not cached.
    #[cold]
    fn look_up(&mut self, seat: usize, made: &Made) -> Option<Remembered> {
        let number = made.address / PAGE_BYTES;
        // Handing the page over begins the next generation, in which the page is looked up again.
        let generation = self.generation;
        let store = made.kind == Kind::Store;
        let region = self.regions.of(made.address, |known, path| match path {
            // A thread's arguments are on its stack from the start.
            "" if store && known.iter().all(|region| region.name != STACK) => STACK.to_owned(),
            "" => ANONYMOUS.to_owned(),
            path => path.to_owned(),
        });
        if !store && self.reads_zeros(number, region) {
            return self.zeros(seat, number, region);
        }
        let (page, block) = self.touches(seat, made, region)?;
        let thread = &self.threads[seat];
        let callers = || thread.calls.callers(MOST_CALLERS);
        let used = self.pages.get(number).unwrap_or_else(|| {
            self.regions.touched(region, seat, made.by.address, callers);
            self.pages.add(number, region, page, seat)
        });
        let home = thread.home;
        if used.is_handed_to(seat) {
            self.hand_over(used, number, home);
        }
        // The page moves, but caches keep its lines.
        let heir = used.heir().filter(|_| self.follows_users && !page.bound);
        let page = Page { node: heir.unwrap_or(page.node), ..page };
        used.moved(page);
        used.uses(seat, home);
        let packed = self.engine.packed_node(used.first());
        let watched = &self.engine.arguments.alternatives;
        let elsewhere =
            elsewhere(watched, number, page, Homes { block, packed, users: used.heir() });
        let slot = u32::try_from(region * self.nodes + page.node).ok()?;
        let only_loads = page.is_shared && !self.regions.all()[region].shared;
        Some(Remembered { number, page, slot, region, used, elsewhere, only_loads, generation })
    }

    /// Invalidates the threads' caches.
    pub fn forget(&mut self) {
        self.settle_all();
        // Cached lines hold counts for the pages' present locations, and were counted first.
        self.generation += 1;
    }

    /// Counts all pending accesses of all threads.
    pub fn settle_all(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.settle(self.engine));
    }

    /// Resets all figures in a forked child, for its only thread; pages stay in place.
    pub fn starts_over(&mut self, seat: usize, borrows_memory: bool) {
        self.forget();
        let engine = self.engine;
        engine.counters.phases().flat_map(|(_, vcpus)| vcpus).for_each(clear);
        for (at, thread) in self.threads.iter_mut().enumerate() {
            thread.starts_over(engine, at);
        }
        let space = &mut self.space;
        // All of these pages were touched before: they are only looked up here, not placed.
        self.pages.start_over(|number| space.touch(number, 0, None, false));
        self.regions.start_over();
        (self.contention, self.time_line) = (Contention::default(), TimeLine::default());
        (self.unplaced, self.becomes, self.reported_ps) = (0, None, 0);
        self.borrows_memory = borrows_memory;
        if !borrows_memory {
            // The parent unmaps its files.
            self.mapped.clear();
        }
        self.latest_ps = self.threads[seat].time_ps();
    }

    /// Advances the latest time.
    pub fn comes_to(&mut self, now_ps: u64) {
        self.latest_ps = self.latest_ps.max(now_ps);
        if self.time_line.is_due(now_ps) {
            self.ends_stretch(now_ps);
        }
    }

    /// Ends a stretch of the time line.
    pub fn ends_stretch(&mut self, now_ps: u64) {
        self.settle_all();
        self.time_line.end(now_ps, &self.threads, self.nodes);
    }

    /// Returns the time from the program's start to the latest time of any thread, in ps.
    pub fn elapsed_ps(&self) -> u64 {
        let threads = self.threads.iter().map(|thread| thread.time_ps());
        threads.fold(self.latest_ps, u64::max)
    }
}

/// Clears a cpu's figures.
fn clear(figures: &VcpuFigures) {
    let VcpuFigures {
        nodes,
        instructions,
        io,
        other,
        walks,
        references,
        translation_ps,
        faults,
        faults_ps,
        calls,
        calls_ps,
        cost_ps,
        time_ps,
    } = figures;
    let of_nodes = nodes.iter().flat_map(|node| {
        node.accesses.iter().chain(&node.misses).chain([&node.cost_ps, &node.queue_ps])
    });
    let own = [instructions, io, other, walks, references, translation_ps, cost_ps, time_ps];
    let kernel = [faults, faults_ps, calls, calls_ps];
    of_nodes.chain(own).chain(kernel).for_each(|figure| figure.set(0));
}

/// Positions of the nodes on which a page might be, if known.
struct Homes {
    /// Home of the page's huge page.
    block: Option<usize>,
    /// The first toucher's, if threads are packed.
    packed: Option<usize>,
    /// Home of the page's second user.
    users: Option<usize>,
}

/// Returns a page's locations under the watched placements; all are the actual one if the program
/// chose its node.
fn elsewhere(
    watched: &[Alternative],
    number: u64,
    page: Page,
    homes: Homes,
) -> [There; MOST_ALTERNATIVES] {
    let mut all = [There::on(page.node, false); MOST_ALTERNATIVES];
    for (there, alternative) in all.iter_mut().zip(watched) {
        let home = match alternative {
            Alternative::Huge => {
                *there = There::on(homes.block.unwrap_or(page.node), homes.block.is_some());
                continue;
            }
            _ if page.bound => continue,
            Alternative::Placed(Placement::Bind(turns) | Placement::Interleave(turns)) => {
                let turn = usize::try_from(number % turns.len() as u64).unwrap_or(0);
                Some(turns[turn])
            }
            Alternative::Placed(_) => None,
            Alternative::Packed => homes.packed,
            Alternative::Users => homes.users,
        };
        *there = There::on(home.unwrap_or(page.node), false);
    }
    all
}
