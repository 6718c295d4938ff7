//! State of one thread, or of several that used the same seat one after the other.

use std::mem;

use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Active, Engine, Shadow};
use numalab_memory_model::space::{PAGE_BYTES, Placement};

use super::account::Account;
use super::code::{Block, Calling, Instruction, Made};
use super::memory::{Counts, Lines, Pages, Recent};
use super::pace::Pace;
use super::schedule::Turn;
use super::stack::Calls;
use super::turns::Born;

/// The effect of a block on the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// The turn continues.
    On,
    /// The turn is over.
    Over,
    /// The thread spins until another one acts.
    Spins,
}

#[derive(Debug)]
pub struct Thread {
    /// The thread's cpu in the model, while the thread holds the turn.
    pub active: Option<Active<'static>>,
    /// QEMU's index of the thread.
    pub index: usize,
    /// State of this thread under other placements.
    pub shadow: Shadow,
    /// True if the thread is simulated under other placements.
    pub is_followed: bool,
    /// True if the thread's blocks currently pass at their mean pace, without being simulated.
    pub is_passing: bool,
    /// True if branches of blocks that pass train the predictor.
    trains: bool,
    /// True if the thread has meanwhile taken a line from another thread.
    pub meets: bool,
    pub pace: Pace,
    /// Counts of the thread's accesses and times.
    pub account: Account,
    /// The calls that the thread is in.
    pub calls: Calls,
    /// The cpu that the thread runs on, or ran on last, and that cpu's node.
    pub cpu: usize,
    pub home: usize,
    /// The time at which the thread's turn ends.
    pub until_ps: u64,
    /// The time at which the thread's turn began.
    began_ps: u64,
    /// Time and busy time, without the current turn.
    pub now_ps: u64,
    busy_ps: u64,
    /// The address to clear when the thread ends.
    pub clear_at: u64,
    /// The policy for pages that the thread touches first.
    pub placement: Option<Placement>,
    /// The last instruction that loaded a contended line, and the address.
    pub loaded: Option<(&'static Instruction, u64)>,
    /// The pages that it caches.
    pub pages: Pages,
    /// The lines that it caches.
    pub lines: Lines,
    /// The line that the thread accessed last in this turn; it and its page cannot have moved
    /// since.
    pub last_line: u64,
    pub last_page: u64,
}

/// Greater than any line or page number.
const NONE: u64 = u64::MAX;

impl Thread {
    /// Returns a seat's thread that has done nothing yet.
    pub fn new(engine: &Engine, seat: usize) -> Self {
        let shadow = engine.shadow(seat);
        Self {
            active: None,
            index: 0,
            is_followed: !shadow.is_empty(),
            is_passing: false,
            trains: false,
            meets: false,
            pace: Pace::default(),
            shadow,
            account: Account::default(),
            calls: Calls::default(),
            cpu: 0,
            home: 0,
            until_ps: 0,
            began_ps: 0,
            now_ps: 0,
            busy_ps: 0,
            clear_at: 0,
            placement: None,
            loaded: None,
            pages: Pages::default(),
            lines: Lines::default(),
            last_line: NONE,
            last_page: NONE,
        }
    }

    /// Resets the state for another thread in this seat.
    pub fn renew(&mut self, Born { index, clear_at }: Born) {
        (self.index, self.clear_at) = (index, clear_at);
        (self.placement, self.loaded) = (None, None);
        (self.calls, self.pages) = (Calls::default(), Pages::default());
    }

    /// Resets the state for the thread's first turn in a new process.
    pub fn starts_over(&mut self, engine: &Engine, seat: usize) {
        self.account = Account::default();
        self.shadow = engine.shadow(seat);
        self.is_passing = false;
        self.pace.stops();
        self.busy_ps = 0;
        if let Some(active) = &self.active {
            (self.began_ps, self.now_ps) = (active.now_ps(), active.now_ps());
        } else {
            self.now_ps = 0;
        }
    }

    /// Starts the thread's turn.
    pub fn takes(&mut self, engine: &'static Engine, seat: usize, turn: Turn) {
        let mut active = engine.enter_as(turn.cpu, seat);
        active.comes_to(turn.now_ps);
        // Other threads may have taken lines meanwhile.
        self.lines.ends_round();
        self.began_ps = active.now_ps();
        let home = engine.arguments.machine.cpus[turn.cpu];
        if (self.cpu, self.home) != (turn.cpu, home) {
            self.settle(engine);
            (self.cpu, self.home) = (turn.cpu, home);
            self.pages = Pages::default();
        }
        self.until_ps = turn.until_ps;
        self.pace.stops();
        (self.last_line, self.last_page) = (NONE, NONE);
        self.lines.ends_round();
        self.active = Some(active);
    }

    /// Enters a block.
    #[inline]
    pub fn block(&mut self, block: &'static Block) -> Goes {
        if !self.is_passing || !self.pace.passes(block) {
            return self.enters(block);
        }
        if let (true, Some(active)) = (self.trains, &mut self.active) {
            active.learns(block.place, block.flow);
        }
        Goes::On
    }

    /// Enters a block that is simulated instead of passed.
    #[inline(never)]
    fn enters(&mut self, block: &'static Block) -> Goes {
        self.catches_up();
        let Some(active) = &mut self.active else { return Goes::Over };
        let spins = block.pauses && active.spins();
        if self.shadow.stretches.pass(block.instructions) {
            self.next_stretch();
        }
        self.begins(block);
        if self.is_passing {
            self.lets_pass(block);
        }
        match self.time_ps() >= self.until_ps {
            _ if spins => Goes::Spins,
            true => Goes::Over,
            false => Goes::On,
        }
    }

    /// Lets blocks after this one pass up to the end of the turn, of the stretch, or of the round of
    /// its lines.
    fn lets_pass(&mut self, block: &Block) {
        let for_ps = self.until_ps.saturating_sub(self.time_ps());
        self.trains = self.shadow.stretches.trains();
        let begins_round =
            self.pace.lets_pass(self.shadow.stretches.instructions_to_pass(), for_ps);
        // A thread that spins loads the same address again and again, which only the slow path notices.
        if begins_round || block.pauses {
            self.lines.ends_round();
        }
    }

    /// Applies the blocks that have passed.
    #[inline]
    pub fn catches_up(&mut self) {
        let (instructions, takes_ps) = self.pace.take_passed();
        if let (1.., Some(active)) = (instructions, &mut self.active) {
            self.shadow.stretches.passed(instructions);
            active.passes(instructions, takes_ps);
        }
    }

    #[cold]
    fn next_stretch(&mut self) {
        let Some(active) = &mut self.active else { return };
        active.next_stretch(&mut self.shadow);
        self.is_passing = !self.shadow.stretches.is_followed();
        let weight = self.shadow.stretches.weight().cast_unsigned();
        self.account.counts_for(weight);
        self.pace.begins_stretch(!self.is_passing && weight > 1);
        self.lines.ends_round();
    }

    #[inline]
    fn begins(&mut self, block: &'static Block) {
        if self.is_passing {
            // The next event depends on the order of two threads, which has no mean.
            let meets = mem::take(&mut self.meets);
            if (meets || self.pace.is_new(block)) && self.shadow.stretches.asks(meets) {
                self.next_stretch();
            }
        }
        let Some(active) = &mut self.active else { return };
        if self.is_passing {
            if self.shadow.stretches.trains() {
                active.learns(block.place, block.flow);
            }
            return active.passes(block.instructions, self.pace.takes_ps(block));
        }
        self.pace.comes(block, active.now_ps(), self.shadow.stretches.is_settled());
        active.branches(block.place, block.flow);
        if self.is_followed || !active.begin_quickly(block.instructions, block.flow) {
            self.begins_late(block);
        }
    }

    /// Begins a block that may have to wait for operands.
    #[inline(never)]
    fn begins_late(&mut self, block: &'static Block) {
        let Some(active) = &mut self.active else { return };
        let shadow = self.is_followed.then_some(&mut self.shadow);
        let begun = active.begin(block.instructions, block.flow, shadow);
        if begun.waited_ps > 0 {
            self.account.waits(begun.resumed_ps, begun.waited_ps);
        }
    }

    /// Follows a call or a return.
    pub fn follow_calls(&mut self, address: u64, kind: Kind, by: &Instruction) {
        match (by.calls, kind) {
            (Calling::Call(returns_to), Kind::Store) => self.calls.called(address, returns_to),
            (Calling::Return, Kind::Load) => self.calls.returned(address),
            _ => {}
        }
    }

    /// Takes the fast path of an access to a cached line; returns false if something has changed
    /// since.
    #[inline]
    pub fn access(&mut self, made: &Made) -> bool {
        if self.is_passing { self.passes(made) } else { self.simulates(made) }
    }

    /// Repeats an access that the thread has made recently, while blocks pass at their pace;
    /// returns false for any other access.
    #[inline]
    pub fn again(&mut self, address: u64, kind: Kind) -> bool {
        self.is_passing && self.lines.again(address, kind)
    }

    /// Makes an access to a cached line while blocks pass at their pace.
    fn passes(&mut self, made: &Made) -> bool {
        let Made { address, kind, by, .. } = *made;
        let Self { active, lines, last_line, last_page, .. } = self;
        let Some(active) = active else { return false };
        let last = (last_line, last_page);
        let Some((recent, in_memory, moves)) = found(active, lines, last, address) else {
            return false;
        };
        if by.passes_caches(kind) || !active.passes_again(&recent.known, in_memory, kind) {
            return false;
        }
        let counts = recent.count(kind);
        self.lines.keep(address, kind);
        if moves && self.is_followed {
            let held = self.pages.held(address / PAGE_BYTES);
            held.iter().for_each(|of| self.shadow.translate(address, in_memory, &of.elsewhere));
        }
        if !counts {
            let engine = active.engine();
            self.settle(engine);
        }
        true
    }

    /// Makes an access to a cached line in the core.
    #[inline]
    fn simulates(&mut self, made: &Made) -> bool {
        let Made { address, bytes, kind, by } = *made;
        let Self { active, lines, last_line, last_page, .. } = self;
        let Some(active) = active else { return false };
        let last = (last_line, last_page);
        let Some((recent, in_memory, moves)) = found(active, lines, last, address) else {
            return false;
        };
        let piece = (in_memory, bytes);
        let Some(hit) = active.again(&recent.known, piece, kind, &by.by) else { return false };
        let counts = recent.count(kind);
        if self.is_followed {
            let moved = moves.then(|| self.pages.held(address / PAGE_BYTES)).flatten();
            let moved = moved.map(|of| (address, of.elsewhere.as_slice()));
            let made = (kind, &by.by);
            active.again_with_alternatives(hit, piece, made, moved, &mut self.shadow);
        }
        if hit.waited_ps > 0 {
            self.account.waits(hit.resumed_ps, hit.waited_ps);
        }
        if !counts {
            let engine = active.engine();
            self.settle(engine);
        }
        true
    }

    /// Counts all its pending accesses.
    pub fn settle(&mut self, engine: &Engine) {
        let Self { lines, account, cpu, home, .. } = self;
        lines.settle(Counts { engine, account, cpu: *cpu, home: *home });
        (self.last_line, self.last_page) = (NONE, NONE);
    }

    /// Drops a page and its lines, after counting its pending accesses.
    pub fn forget_page(&mut self, engine: &Engine, number: u64) {
        self.pages.forget(number);
        let Self { lines, account, cpu, home, .. } = self;
        lines.forget_page(number, Counts { engine, account, cpu: *cpu, home: *home });
        (self.last_line, self.last_page) = (NONE, NONE);
    }

    /// Ends the thread's turn; returns its time in ps.
    pub fn leaves(&mut self) -> u64 {
        self.catches_up();
        if let Some(active) = self.active.take() {
            self.now_ps = active.now_ps();
            self.busy_ps += self.now_ps - self.began_ps;
        }
        self.now_ps
    }

    /// Advances the thread to the end of a spin.
    pub fn spins(&mut self, until_ps: u64) {
        self.busy_ps += until_ps.saturating_sub(self.now_ps);
    }

    /// Returns the thread's busy time, running or waiting for memory, in ps.
    pub fn busy_ps(&self) -> u64 {
        let is_running = self.active.is_some();
        self.busy_ps + if is_running { self.time_ps() - self.began_ps } else { 0 }
    }

    /// Returns its time in ps.
    pub fn time_ps(&self) -> u64 {
        let now_ps = |active: &Active<'_>| active.now_ps() + self.pace.passed_ps();
        self.active.as_ref().map_or(self.now_ps, now_ps)
    }
}

/// Returns the cached line of an address, if the nearest cache and TLB still have it, the address
/// in the machine's memory, and true if the page differs from that of the last access.
#[inline(always)]
fn found<'a>(
    active: &Active<'_>,
    lines: &'a mut Lines,
    (last_line, last_page): (&mut u64, &mut u64),
    address: u64,
) -> Option<(&'a mut Recent, u64, bool)> {
    let recent = lines.of(address, active.knows_owners())?;
    let in_memory = recent.frame + address % PAGE_BYTES;
    let page = address / PAGE_BYTES;
    let moves = page != *last_page;
    if recent.line != *last_line {
        if moves && !active.translates(&recent.known) || !active.finds(in_memory) {
            return None;
        }
        (*last_line, *last_page) = (recent.line, page);
    }
    Some((recent, in_memory, moves))
}
