//! Tracks the users of a page, and the time waited for its memory.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use numalab_memory_model::counters::{Figure, Kind};
use numalab_memory_model::machine::MOST_NODES;
use numalab_memory_model::space::{PAGE_BYTES, Page};

/// Bytes of a line with a tracked owner.
pub const LINE_BYTES: u64 = 64;
const LINES: usize = (PAGE_BYTES / LINE_BYTES) as usize;
/// Threads that are distinguished; higher seats share the numbers of lower ones.
const MOST_THREADS: usize = 255;
/// The seat that represents all of a parent's threads.
const PARENT: usize = MOST_THREADS - 1;
/// Words of a set of threads, with a bit for each.
const THREAD_WORDS: usize = 4;
/// Owner of a line that several threads have read since it was written.
const READ_BY_SEVERAL: u8 = u8::MAX;
/// Time is kept in units of 2^24 ps (17 µs), a few turns: each of two threads that contend for a
/// line has it within a few units.
const UNIT_BITS: u32 = 24;
const SOON: u16 = 2;
/// Number of units after which a line that stays in place is no longer contended.
const LONG: u16 = 16;
/// Heat at which a line is contended: the number of moves, each soon after the last.
const CONTENDED_HEAT: u8 = 16;
/// Heat from which accesses to a line happen in the order of time. Until then a line moves once in a
/// turn, in which a thread takes a lock hundreds of times: a program of a few thousand locks would end
/// before its line is contended.
const ORDERED_HEAT: u8 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LineState {
    /// The last writer's seat plus 1; 0 for none.
    owner: u8,
    /// Number of recent moves.
    heat: u8,
    /// Time of the last move, in units.
    changed: u16,
}

impl LineState {
    fn of(word: u32) -> Self {
        let [owner, heat, low, high] = word.to_le_bytes();
        Self { owner, heat, changed: u16::from_le_bytes([low, high]) }
    }

    fn word(self) -> u32 {
        let [low, high] = self.changed.to_le_bytes();
        u32::from_le_bytes([self.owner, self.heat, low, high])
    }
}

/// One page, from its first touch until it is freed. Only the holder of the turn writes it.
#[derive(Debug)]
pub struct PageUse {
    region: Figure,
    node: Figure,
    bound: Figure,
    /// The seat of the thread that touched it first.
    first: Figure,
    /// Position of the second user's node plus 1; 0 if there is none.
    heir: Figure,
    threads: [Figure; THREAD_WORDS],
    nodes: Figure,
    /// Accesses by the node of the cpu.
    accesses: [Figure; MOST_NODES],
    /// Number of loads and stores made after cpus of several nodes had used the page.
    shared: [Figure; 2],
    /// Time waited for the page's memory by the node of the cpu, in ps.
    memory_ps: [Figure; MOST_NODES],
    /// A packed [`LineState`] for each line.
    lines: [AtomicU32; LINES],
}

/// The effect of an access on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The line stays with its owner, or is only read.
    Quiet,
    /// Threads contend for the line; true if this access moves it.
    Contended(bool),
}

/// Use of a page, and the page's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub region: usize,
    /// Position of the page's node.
    pub node: usize,
    /// True if the program chose the page's node.
    pub bound: bool,
    /// Threads that used it.
    pub threads: u32,
    /// Nodes from which the page was used.
    pub nodes: u32,
    /// Accesses by position of the cpu's node.
    pub accesses: [u64; MOST_NODES],
    /// Number of loads and stores made after cpus of several nodes had used the page.
    pub shared: [u64; 2],
    /// Time waited for the page's memory by position of the cpu's node, in ps.
    pub memory_ps: [u64; MOST_NODES],
}

impl PageUse {
    /// Returns the record of an unused page that the seat's thread is about to use.
    pub fn new(region: usize, page: Page, seat: usize) -> Self {
        let new = Self {
            region: Figure::default(),
            node: Figure::default(),
            bound: Figure::default(),
            first: Figure::default(),
            heir: Figure::default(),
            threads: Default::default(),
            nodes: Figure::default(),
            accesses: Default::default(),
            shared: Default::default(),
            memory_ps: Default::default(),
            lines: [const { AtomicU32::new(0) }; LINES],
        };
        new.renew(region, page, seat);
        new
    }

    /// Resets the record for another page.
    pub fn renew(&self, region: usize, page: Page, seat: usize) {
        self.region.set(region as u64);
        self.first.set(seat as u64);
        self.moved(page);
        let counts = self.accesses.iter().chain(&self.memory_ps).chain(&self.threads);
        let counts = counts.chain(&self.shared);
        counts.chain([&self.heir, &self.nodes]).for_each(|count| count.set(0));
        self.lines.iter().for_each(|line| line.store(0, Relaxed));
    }

    /// Marks the page as inherited from the parent process, which counts as its first user.
    pub fn inherit(&self, page: Page) {
        self.renew(usize::try_from(self.region.get()).unwrap_or(0), page, self.first());
        self.uses(PARENT, page.node);
    }

    /// Returns the seat of the thread that touched the page first.
    pub fn first(&self) -> usize {
        usize::try_from(self.first.get()).unwrap_or(0)
    }

    /// Returns true if only the page's first thread has used it, and this seat is another one.
    pub fn is_handed_to(&self, seat: usize) -> bool {
        self.users() == 1 && (self.first() != seat || self.is_inherited())
    }

    /// Records the node of the page's second user.
    pub fn hand_to(&self, home: usize) {
        self.heir.set(home as u64 + 1);
    }

    /// Returns the position of the node of the page's second user.
    pub fn heir(&self) -> Option<usize> {
        usize::try_from(self.heir.get()).ok()?.checked_sub(1)
    }

    /// Returns true if the page is inherited from the parent process.
    pub fn is_inherited(&self) -> bool {
        self.threads[PARENT / 64].get() >> (PARENT % 64) & 1 == 1
    }

    /// Returns the number of threads that use the page.
    fn users(&self) -> u32 {
        self.threads.iter().map(|word| word.get().count_ones()).sum()
    }

    /// Records that the page moved to another node.
    pub fn moved(&self, page: Page) {
        self.node.set(page.node as u64);
        self.bound.set(u64::from(page.bound));
    }

    /// Records a use by the seat's thread.
    pub fn uses(&self, seat: usize, home: usize) {
        let seat = seat % MOST_THREADS;
        let word = &self.threads[seat / 64];
        word.set(word.get() | 1 << (seat % 64));
        self.nodes.set(self.nodes.get() | 1 << home);
    }

    /// Counts loads and stores by a user on a node.
    #[inline]
    pub fn count(&self, home: usize, [loads, stores]: [u64; 2]) {
        self.accesses[home].add(loads + stores);
        // If nodes had copies of the page, these stores would have to go to all copies.
        if self.nodes.get() & !(1 << home) != 0 {
            self.shared[0].add(loads);
            self.shared[1].add(stores);
        }
    }

    /// Updates the owner of the accessed line: another thread gets the line when it stores to it,
    /// or reads what the owner stored.
    #[inline]
    pub fn pass(&self, seat: usize, address: u64, kind: Kind, now_ps: u64) -> Line {
        let line = self.line(address);
        let LineState { owner, heat, changed } = LineState::of(line.load(Relaxed));
        // From 1 to 254: 0 means no owner, and 255 several readers.
        let own = u8::try_from(seat % (MOST_THREADS - 1)).unwrap_or(0) + 1;
        // All caches can hold a line that was not stored to, or that several threads have read
        // since.
        let stays = owner == own || kind == Kind::Load && (owner == 0 || owner == READ_BY_SEVERAL);
        // By far the most frequent case, so it neither reads the time nor stores.
        if stays && heat == 0 {
            return Line::Quiet;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it wraps around every second")]
        let now = (now_ps >> UNIT_BITS) as u16;
        // A thread that still has a line while another takes it is behind the other in time.
        let since = now.wrapping_sub(changed).cast_signed().max(0).cast_unsigned();
        let then = match kind {
            _ if stays => LineState { owner, heat: if since > LONG { 0 } else { heat }, changed },
            // The first store takes the line from no other cache.
            Kind::Store if owner == 0 => LineState { owner: own, heat: 0, changed: now },
            _ => LineState {
                owner: if kind == Kind::Load { READ_BY_SEVERAL } else { own },
                heat: if since > SOON { 0 } else { heat.saturating_add(1) },
                changed: now,
            },
        };
        line.store(then.word(), Relaxed);
        if then.heat < CONTENDED_HEAT { Line::Quiet } else { Line::Contended(!stays) }
    }

    /// Returns the packed state of the line of an address.
    #[inline]
    pub fn owner(&self, address: u64) -> u32 {
        self.line(address).load(Relaxed)
    }

    /// Returns the packed state of the line if it has not moved recently.
    pub fn quiet_owner(&self, address: u64) -> Option<u32> {
        Some(self.owner(address)).filter(|word| LineState::of(*word).heat == 0)
    }

    /// Returns true if accesses to the line of an address happen in the order of time, because it moves
    /// between threads.
    #[inline]
    pub fn is_ordered(&self, address: u64) -> bool {
        LineState::of(self.owner(address)).heat >= ORDERED_HEAT
    }

    #[inline]
    fn line(&self, address: u64) -> &AtomicU32 {
        &self.lines[(address % PAGE_BYTES / LINE_BYTES) as usize]
    }

    /// Adds a wait for the page's memory by a thread on a node.
    #[inline]
    pub fn waited(&self, home: usize, ps: u64) {
        self.memory_ps[home].add(ps);
    }

    /// Returns the figures so far.
    pub fn seen(&self) -> Seen {
        let all = |counts: &[Figure; MOST_NODES]| counts.each_ref().map(Figure::get);
        let number = |figure: &Figure| usize::try_from(figure.get()).unwrap_or(0);
        Seen {
            region: number(&self.region),
            node: number(&self.node),
            bound: self.bound.get() > 0,
            threads: self.users(),
            nodes: self.nodes.get().count_ones(),
            accesses: all(&self.accesses),
            shared: self.shared.each_ref().map(Figure::get),
            memory_ps: all(&self.memory_ps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Load, Store};

    const fn on(node: usize) -> Page {
        Page { frame: 0, node, bound: false, table: 0, is_shared: false }
    }

    const UNIT_PS: u64 = 1 << UNIT_BITS;

    /// Repeats accesses to the first line, `apart_ps` apart; returns the number of moves while it
    /// was contended.
    fn changes(turns: &[(usize, Kind)], rounds: usize, apart_ps: u64) -> usize {
        let page = PageUse::new(0, on(0), 0);
        let all = turns.iter().cycle().take(rounds * turns.len()).zip(0_u64..);
        let pass = |((seat, kind), turn): &(&(usize, Kind), u64)| {
            page.pass(*seat, 8, *kind, turn * apart_ps) == Line::Contended(true)
        };
        all.filter(pass).count()
    }

    #[test]
    fn a_page_is_handed_over_to_its_second_user() {
        let page = PageUse::new(0, on(0), 7);
        page.uses(7, 0);
        assert!(page.is_handed_to(8) && !page.is_handed_to(7));
        assert_eq!(page.heir(), None);
        page.hand_to(1);
        page.uses(8, 1);
        assert!(!page.is_handed_to(8) && !page.is_handed_to(9));
        assert_eq!(page.heir(), Some(1));
    }

    #[test]
    fn lines_that_threads_store_to_in_turn_are_contended_for() {
        let soon = |turns: &[(usize, Kind)]| changes(turns, 100, 1000);
        assert!(soon(&[(0, Store), (1, Store)]) > 150);
        assert!(soon(&[(0, Store), (1, Load)]) > 150, "written here and read there");
        let in_turns = [[(0, Store); 50], [(1, Store); 50]].concat();
        assert!(changes(&in_turns, 100, UNIT_PS / 50) > 150, "many times each");
        assert_eq!(soon(&[(0, Store), (0, Load)]), 0);
        assert_eq!(soon(&[(0, Load), (1, Load)]), 0);
        assert_eq!(changes(&[(0, Store), (1, Store)], 100, 4 * UNIT_PS), 0, "now and then");
    }

    #[test]
    fn accesses_to_a_line_are_in_order_soon_after_it_began_to_move() {
        let page = PageUse::new(0, on(0), 0);
        let store = |seat: usize| {
            let line = page.pass(seat, 64, Store, 1000);
            (line == Line::Quiet, page.is_ordered(64))
        };
        assert_eq!([0, 1, 0].map(store), [(true, false), (true, false), (true, true)]);
        assert!(!page.is_ordered(128), "another line");
    }

    #[test]
    fn a_line_that_is_written_once_and_read_by_all_is_quiet() {
        let page = PageUse::new(0, on(0), 0);
        page.pass(0, 0, Store, 0);
        for turn in 0..1000 {
            assert_eq!(page.pass(turn % 5, 0, Load, 0), Line::Quiet);
        }
    }

    #[test]
    fn a_line_is_quiet_again_after_contention() {
        let page = PageUse::new(0, on(0), 0);
        (0..100).for_each(|turn| _ = page.pass(turn % 2, 64, Store, 0));
        assert!(page.is_ordered(100) && !page.is_ordered(0));
        assert_eq!(page.pass(1, 64, Store, 9 * UNIT_PS), Line::Contended(false));
        assert_eq!(page.pass(1, 64, Store, 20 * UNIT_PS), Line::Quiet);
        assert!(!page.is_ordered(64) && page.quiet_owner(64).is_some());
    }

    #[test]
    fn a_thread_that_lags_does_not_make_a_line_quiet() {
        let page = PageUse::new(0, on(0), 0);
        (0..100).for_each(|turn| _ = page.pass(turn % 2, 64, Store, UNIT_PS));
        assert_eq!(page.pass(1, 64, Store, UNIT_PS - 1), Line::Contended(false));
        assert_eq!(page.pass(0, 64, Store, UNIT_PS - 1), Line::Contended(true));
    }

    #[test]
    fn a_page_knows_its_users_and_their_waits() {
        let page = PageUse::new(3, on(1), 0);
        page.uses(0, 0);
        page.count(0, [0, 1]);
        page.uses(200, 1);
        page.count(1, [1, 1]);
        page.waited(1, 500);
        let seen = page.seen();
        assert_eq!((seen.region, seen.node, seen.threads, seen.nodes), (3, 1, 2, 2));
        assert_eq!((seen.accesses[..2].to_vec(), seen.shared), (vec![1, 2], [1, 1]));
        assert_eq!(seen.memory_ps[..2], [0, 500]);
        page.renew(4, on(0), 0);
        assert_eq!(page.seen(), PageUse::new(4, on(0), 0).seen());
    }
}
