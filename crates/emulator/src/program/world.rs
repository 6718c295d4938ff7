//! What all threads share: pages, mappings, and what is known of them. Only who has the turn is here.

use numalab_memory_model::arguments::{Arguments, Beside, MOST_BESIDE, Policy};
use numalab_memory_model::counters::{Kind, VcpuFigures};
use numalab_memory_model::engine::{Access, Engine, There};
use numalab_memory_model::space::{PAGE_BYTES, Page, Placement, Space};

use super::account::Touch;
use super::code::{Instruction, Made};
use super::contention::{Contention, Use};
use super::memory::{Counts, Remembered};
use super::page_use::{LINE_BYTES, Line, PageUse};
use super::pages::Pages;
use super::regions::{ANONYMOUS, Regions, STACK};
use super::thread::Thread;
use super::time_line::TimeLine;
use super::turns::Born;

/// Calls that are told of a place in the code.
pub const MOST_CALLERS: usize = 12;

/// All of it.
#[derive(Debug)]
pub struct World {
    /// The model of the machine.
    pub engine: &'static Engine,
    /// By seat.
    #[expect(clippy::vec_box, reason = "who runs is known by where it lies")]
    pub threads: Vec<Box<Thread>>,
    /// Where pages lie.
    pub space: Space,
    /// Who uses them.
    pub pages: Pages,
    /// What is mapped.
    pub regions: Regions,
    /// Lines that threads contend for.
    pub contention: Contention,
    /// The heap's first address, and the one behind it.
    pub heap: Option<(u64, u64)>,
    /// Accesses to pages for which the machine had no memory left.
    pub unplaced: u64,
    /// The program that this process is about to become, outside of the emulation.
    pub becomes: Option<String>,
    /// What threads did over time.
    pub time_line: TimeLine,
    /// How long threads had been busy when this process last reported while it ran.
    pub reported_ps: u64,
    /// The latest that any thread has come to.
    latest_ps: u64,
    /// Counted on when pages go or move: what threads remember is old then.
    generation: u32,
    nodes: usize,
    follows_users: bool,
}

impl World {
    /// Nothing has happened yet.
    pub fn new(engine: &'static Engine) -> Self {
        let Arguments { machine, policy, .. } = &engine.arguments;
        let first = match policy {
            Policy::Stay(placement) => placement.clone(),
            Policy::Users => Placement::Local,
        };
        Self {
            engine,
            threads: Vec::new(),
            space: Space::new(machine, first),
            pages: Pages::default(),
            regions: Regions::default(),
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

    /// A thread begins as a seat.
    pub fn begins(&mut self, seat: usize, born: Born) {
        while self.threads.len() <= seat {
            self.threads.push(Box::new(Thread::new(self.engine, self.threads.len())));
        }
        self.threads[seat].renew(born);
    }

    /// Whether what an access of the thread of a seat finds depends on what others have done before: a
    /// store that goes with the load of the same instruction comes with that.
    pub fn is_contended(&mut self, seat: usize, made: &Made) -> bool {
        let thread = &mut self.threads[seat];
        let known = thread.pages.of(made.address, self.generation);
        if !known.is_some_and(|known| known.used.is_contended(made.address)) {
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

    /// The thread of a seat accesses memory, by whatever way.
    pub fn access(&mut self, seat: usize, made: &Made) {
        let generation = self.generation;
        if self.threads[seat].pages.of(made.address, generation).is_none() {
            let Some(page) = self.look_up(seat, made) else { return };
            self.threads[seat].pages.remember(page, generation);
        }
        let Thread {
            active,
            shadow,
            is_followed,
            account,
            pages,
            lines,
            last_line,
            last_page,
            calls,
            cpu,
            home,
            ..
        } = &mut *self.threads[seat];
        let (Some(found), Some(active)) = (pages.of(made.address, generation), active) else {
            return;
        };
        let Made { address: virtual_address, kind, by, bytes } = *made;
        let address = found.page.frame + virtual_address % PAGE_BYTES;
        let table = Some(found.page.table);
        let position = by.position;
        let access = Access { address, virtual_address, kind, bytes, position, table };
        let shadow = is_followed.then_some((&mut *shadow, found.elsewhere.as_slice()));
        let outcome = active.access_on(found.page.node, access, shadow);
        found.used.count(*home, [Kind::Load, Kind::Store].map(|of| u64::from(of == kind)));
        let touch = Touch { slot: found.slot as usize, kind, used: found.used, home: *home };
        account.add(touch, &outcome);
        let now_ps = active.now_ps();
        let line = found.used.pass(seat, virtual_address, kind, now_ps);
        if let Line::Contended(changed) = line {
            let (address, bytes) = (made.address, u64::from(bytes));
            let (waited_ps, instruction) = (outcome.waited_ps, by.address);
            let used = Use { seat, address, bytes, kind, changed, waited_ps, instruction };
            self.contention.add(used, found.region, || calls.callers(MOST_CALLERS));
        }
        let is_quick = !*is_followed && active.has_quick_way();
        let known = outcome.known.filter(|_| is_quick);
        let mut counts = Counts { engine: self.engine, account, cpu: *cpu, home: *home };
        lines.remember(virtual_address, found, known, &mut counts);
        (*last_line, *last_page) = (virtual_address / LINE_BYTES, virtual_address / PAGE_BYTES);
        if self.time_line.is_due(now_ps) {
            self.ends_stretch(now_ps);
        }
    }

    /// A page has its second user, on a node.
    fn hand_over(&mut self, used: &PageUse, number: u64, home: usize) {
        used.hand_to(home);
        self.threads[used.first()].pages.forget(number);
        if self.follows_users {
            self.forget();
        }
    }

    /// The page of an address that the thread of a seat accesses and does not remember.
    #[cold]
    fn look_up(&mut self, seat: usize, made: &Made) -> Option<Remembered> {
        let number = made.address / PAGE_BYTES;
        let store = made.kind == Kind::Store;
        let region = self.regions.of(made.address, |known, path| match path {
            // A thread begins with its arguments on its stack.
            "" if store && known.iter().all(|region| region.name != STACK) => STACK.to_owned(),
            "" => ANONYMOUS.to_owned(),
            path => path.to_owned(),
        });
        if store && !self.regions.all()[region].shared {
            self.copies(number);
        }
        let thread = &self.threads[seat];
        let huge = self.regions.huge(made.address);
        let asked = huge.is_given(self.engine.arguments.huge_always);
        let placed = self.space.touch(number, thread.home, thread.placement.as_ref(), asked);
        let Some(page) = placed else {
            self.unplaced += 1;
            return None;
        };
        let block = huge.is_given(true).then(|| self.space.node_of_block(number)).flatten();
        let callers = || thread.calls.callers(MOST_CALLERS);
        let used = self.pages.get(number).unwrap_or_else(|| {
            self.regions.touched(region, seat, made.by.address, callers);
            self.pages.add(number, region, page, seat)
        });
        let home = thread.home;
        if used.is_handed_to(seat) {
            self.hand_over(used, number, home);
        }
        // Caches keep what they have of it.
        let heir = used.heir().filter(|_| self.follows_users && !page.bound);
        let page = Page { node: heir.unwrap_or(page.node), ..page };
        used.moved(page);
        used.uses(seat, home);
        let packed = self.engine.packed_node(used.first());
        let watched = &self.engine.arguments.beside;
        let elsewhere =
            elsewhere(watched, number, page, Homes { block, packed, users: used.heir() });
        let slot = u32::try_from(region * self.nodes + page.node).ok()?;
        Some(Remembered { number, page, slot, region, used, elsewhere })
    }

    /// A page is stored to before this process did anything else with it: if it is a parent's, the kernel
    /// makes another one, which begins here.
    fn copies(&mut self, number: u64) {
        if self.pages.get(number).is_some_and(PageUse::is_only_inherited) {
            self.space.discard(number..number + 1);
            self.pages.remove(number..number + 1);
        }
    }

    /// What threads remember is old.
    pub fn forget(&mut self) {
        self.settle_all();
        self.generation += 1;
    }

    /// All accesses of all threads are counted.
    pub fn settle_all(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.settle(self.engine));
    }

    /// Nothing has been done yet, by the one thread that is left: pages lie where they did.
    pub fn starts_over(&mut self, seat: usize) {
        self.forget();
        let engine = self.engine;
        engine.counters.phases().flat_map(|(_, vcpus)| vcpus).for_each(clear);
        for (at, thread) in self.threads.iter_mut().enumerate() {
            thread.starts_over(engine, at);
        }
        let space = &mut self.space;
        self.pages.start_over(|number| space.touch(number, 0, None, false));
        self.regions.start_over();
        (self.contention, self.time_line) = (Contention::default(), TimeLine::default());
        (self.unplaced, self.becomes, self.reported_ps) = (0, None, 0);
        self.latest_ps = self.threads[seat].came_to_ps();
    }

    /// A thread has come to a time.
    pub fn comes_to(&mut self, now_ps: u64) {
        self.latest_ps = self.latest_ps.max(now_ps);
        if self.time_line.is_due(now_ps) {
            self.ends_stretch(now_ps);
        }
    }

    /// A stretch of the time line ends.
    pub fn ends_stretch(&mut self, now_ps: u64) {
        self.settle_all();
        self.time_line.end(now_ps, &self.threads, self.nodes);
    }

    /// From the program's beginning to the latest that any thread has come to.
    pub fn elapsed_ps(&self) -> u64 {
        let threads = self.threads.iter().map(|thread| thread.came_to_ps());
        threads.fold(self.latest_ps, u64::max)
    }
}

/// Nothing is counted of a cpu.
fn clear(figures: &VcpuFigures) {
    let VcpuFigures {
        nodes,
        instructions,
        io,
        other,
        walks,
        references,
        translation_ps,
        cost_ps,
        time_ps,
    } = figures;
    let of_nodes = nodes.iter().flat_map(|node| {
        node.accesses.iter().chain(&node.misses).chain([&node.cost_ps, &node.queue_ps])
    });
    let own = [instructions, io, other, walks, references, translation_ps, cost_ps, time_ps];
    of_nodes.chain(own).for_each(|figure| figure.set(0));
}

/// Positions of nodes on which a page might be, where anybody knows.
struct Homes {
    /// Of what would be its huge page.
    block: Option<usize>,
    /// Of who touched it first, if threads are packed.
    packed: Option<usize>,
    /// Of its second user.
    users: Option<usize>,
}

/// Where a page would be by the placements that are watched: nowhere else if the program itself
/// has said where.
fn elsewhere(watched: &[Beside], number: u64, page: Page, homes: Homes) -> [There; MOST_BESIDE] {
    let mut all = [There::on(page.node, false); MOST_BESIDE];
    for (there, beside) in all.iter_mut().zip(watched) {
        let home = match beside {
            Beside::Huge => {
                *there = There::on(homes.block.unwrap_or(page.node), homes.block.is_some());
                continue;
            }
            _ if page.bound => continue,
            Beside::Placed(Placement::Bind(turns) | Placement::Interleave(turns)) => {
                let turn = usize::try_from(number % turns.len() as u64).unwrap_or(0);
                Some(turns[turn])
            }
            Beside::Placed(_) => None,
            Beside::Packed => homes.packed,
            Beside::Users => homes.users,
        };
        *there = There::on(home.unwrap_or(page.node), false);
    }
    all
}
