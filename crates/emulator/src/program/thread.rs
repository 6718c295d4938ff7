//! What is kept of one thread, or of several that ran one after the other as the same seat.

use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Active, Engine, Shadow};
use numalab_memory_model::space::{PAGE_BYTES, Placement};

use super::account::Account;
use super::code::{Block, Calling, Instruction, Made};
use super::memory::{Counts, Lines, Pages};
use super::schedule::Turn;
use super::stack::Calls;
use super::turns::Born;

/// What a block means for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// It goes on.
    On,
    /// It is over.
    Over,
    /// Its thread waits for another one by looking again and again.
    Spins,
}

/// One thread.
#[derive(Debug)]
pub struct Thread {
    /// Its cpu in the model, while it has its turn.
    pub active: Option<Active<'static>>,
    /// QEMU's index of it.
    pub index: usize,
    /// The same thread elsewhere.
    pub shadow: Shadow,
    /// Whether it is followed elsewhere at all.
    pub is_followed: bool,
    /// What it did.
    pub account: Account,
    /// The calls that it is in.
    pub calls: Calls,
    /// The cpu that it runs on, or ran on last, and that one's node.
    pub cpu: usize,
    /// As above.
    pub home: usize,
    /// When its turn ends.
    pub until_ps: u64,
    /// When its turn began.
    began_ps: u64,
    /// How far it has come, and how long it has been busy, its turn left out.
    pub now_ps: u64,
    /// As above.
    busy_ps: u64,
    /// Where its end is to be told.
    pub tells_at: u64,
    /// What it has said of the pages that it touches first.
    pub placement: Option<Placement>,
    /// The instruction that it executed last which loads from where others store, and the address.
    pub loaded: Option<(&'static Instruction, u64)>,
    /// The pages that it remembers.
    pub pages: Pages,
    /// The lines that it accessed last.
    pub lines: Lines,
    /// The one that it accessed last in this turn, and its page: they are where they were.
    pub last_line: u64,
    pub last_page: u64,
}

/// Behind all lines and pages.
const NONE: u64 = u64::MAX;

impl Thread {
    /// A thread of a seat that has done nothing yet.
    pub fn new(engine: &Engine, seat: usize) -> Self {
        let shadow = engine.shadow(seat);
        Self {
            active: None,
            index: 0,
            is_followed: !shadow.later_ps().is_empty(),
            shadow,
            account: Account::default(),
            calls: Calls::default(),
            cpu: 0,
            home: 0,
            until_ps: 0,
            began_ps: 0,
            now_ps: 0,
            busy_ps: 0,
            tells_at: 0,
            placement: None,
            loaded: None,
            pages: Pages::default(),
            lines: Lines::default(),
            last_line: NONE,
            last_page: NONE,
        }
    }

    /// Another thread runs as this seat.
    pub fn renew(&mut self, Born { index, tells_at }: Born) {
        (self.index, self.tells_at) = (index, tells_at);
        (self.placement, self.loaded) = (None, None);
        (self.calls, self.pages) = (Calls::default(), Pages::default());
    }

    /// It has done nothing in this process, on whose first turn it is.
    pub fn starts_over(&mut self, engine: &Engine, seat: usize) {
        self.account = Account::default();
        self.shadow = engine.shadow(seat);
        self.busy_ps = 0;
        if let Some(active) = &self.active {
            (self.began_ps, self.now_ps) = (active.now_ps(), active.now_ps());
        } else {
            self.now_ps = 0;
        }
    }

    /// Its turn begins.
    pub fn takes(&mut self, engine: &'static Engine, seat: usize, turn: Turn) {
        let mut active = engine.enter_as(turn.cpu, seat);
        active.comes_to(turn.now_ps);
        self.began_ps = active.now_ps();
        let home = engine.arguments.machine.cpus[turn.cpu];
        if (self.cpu, self.home) != (turn.cpu, home) {
            self.settle(engine);
            (self.cpu, self.home) = (turn.cpu, home);
            self.pages = Pages::default();
        }
        self.until_ps = turn.until_ps;
        (self.last_line, self.last_page) = (NONE, NONE);
        self.active = Some(active);
    }

    /// It begins a block.
    #[inline]
    pub fn block(&mut self, block: &'static Block) -> Goes {
        let Some(active) = &mut self.active else { return Goes::Over };
        let spins = block.pauses && active.spins();
        active.branches(block.place, block.flow);
        if self.is_followed || !active.begin_quickly(block.instructions, block.flow) {
            self.begins(block);
        }
        match self.came_to_ps() >= self.until_ps {
            _ if spins => Goes::Spins,
            true => Goes::Over,
            false => Goes::On,
        }
    }

    /// It begins a block for which it may have to wait.
    #[inline(never)]
    fn begins(&mut self, block: &'static Block) {
        let Some(active) = &mut self.active else { return };
        let shadow = self.is_followed.then_some(&mut self.shadow);
        let begun = active.begin(block.instructions, block.flow, shadow);
        if begun.waited_ps > 0 {
            self.account.waits(begun.resumed_ps, begun.waited_ps);
        }
    }

    /// It executes a call or a return.
    pub fn follow_calls(&mut self, address: u64, kind: Kind, by: &Instruction) {
        match (by.calls, kind) {
            (Calling::Call(returns_to), Kind::Store) => self.calls.called(address, returns_to),
            (Calling::Return, Kind::Load) => self.calls.returned(address),
            _ => {}
        }
    }

    /// It accesses a line that it accessed of late, if nothing has happened to that since; whether it
    /// did.
    #[inline]
    pub fn access(&mut self, made: &Made) -> bool {
        let Made { address, bytes, kind, by } = *made;
        let Some(active) = &mut self.active else { return false };
        let Some(recent) = self.lines.of(address, active.knows_owners()) else { return false };
        let in_memory = recent.frame + address % PAGE_BYTES;
        if recent.line != self.last_line {
            let page = address / PAGE_BYTES;
            if page != self.last_page && !active.translates(&recent.known)
                || !active.finds(in_memory)
            {
                return false;
            }
            (self.last_line, self.last_page) = (recent.line, page);
        }
        let piece = (in_memory, bytes);
        let Some(hit) = active.again(&recent.known, piece, kind, &by.by) else { return false };
        if hit.waited_ps > 0 {
            self.account.waits(hit.resumed_ps, hit.waited_ps);
        }
        if !recent.count(kind) {
            let engine = active.engine();
            self.settle(engine);
        }
        true
    }

    /// All of its accesses are counted.
    pub fn settle(&mut self, engine: &Engine) {
        let Self { lines, account, cpu, home, .. } = self;
        lines.settle(Counts { engine, account, cpu: *cpu, home: *home });
        (self.last_line, self.last_page) = (NONE, NONE);
    }

    /// Its turn is over; how far it has come.
    pub fn leaves(&mut self) -> u64 {
        if let Some(active) = self.active.take() {
            self.now_ps = active.now_ps();
            self.busy_ps += self.now_ps - self.began_ps;
        }
        self.now_ps
    }

    /// It has looked for what another thread is to do until this time.
    pub fn spins(&mut self, until_ps: u64) {
        self.busy_ps += until_ps.saturating_sub(self.now_ps);
    }

    /// How long it has been busy: it ran, or waited for memory.
    pub fn busy_ps(&self) -> u64 {
        let turn_ps = self.active.as_ref().map_or(0, |active| active.now_ps() - self.began_ps);
        self.busy_ps + turn_ps
    }

    /// How far it has come.
    pub fn came_to_ps(&self) -> u64 {
        self.active.as_ref().map_or(self.now_ps, Active::now_ps)
    }
}
