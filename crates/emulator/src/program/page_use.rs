//! Who uses a page, and how long its memory is waited for.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use numalab_memory_model::counters::Kind;
use numalab_memory_model::machine::MOST_NODES;
use numalab_memory_model::space::{PAGE_BYTES, Page};

/// Bytes of a line of which owners are kept.
pub const LINE_BYTES: u64 = 64;
const LINES: usize = (PAGE_BYTES / LINE_BYTES) as usize;
/// Words of a set of places, of which there are 255.
const PLACE_WORDS: usize = 4;
/// Bits of a line's state that name its owner.
const OWNER_BITS: u32 = 9;
const OWNER: u32 = (1 << OWNER_BITS) - 1;
/// The owner of a line that several threads have read since it was written.
const READ_BY_SEVERAL: u32 = OWNER;
/// A line that changed hands so often is one that threads contend for.
pub const CONTENDED_CHANGES: u32 = 16;

/// One page, from its first touch until it is given back.
#[derive(Debug)]
pub struct PageUse {
    region: AtomicUsize,
    node: AtomicUsize,
    bound: AtomicBool,
    /// The place of the thread that touched it first.
    first_place: AtomicUsize,
    places: [AtomicU64; PLACE_WORDS],
    nodes: AtomicU32,
    /// Accesses by the node of the cpu.
    accesses: [AtomicU64; MOST_NODES],
    /// Stores that were made when cpus of several nodes had used it.
    shared_stores: AtomicU64,
    /// Time waited for its memory by the node of the cpu, in ps.
    memory_ps: [AtomicU64; MOST_NODES],
    /// Of each line its owner, as a place and 1, and how often it changed.
    lines: [AtomicU32; LINES],
}

/// What became of an access's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// It stayed with its owner, or was read only.
    Quiet,
    /// Threads contend for it; whether it changed hands now.
    Contended(bool),
}

/// What was seen of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The region's number.
    pub region: usize,
    /// Position of the node that it lies on.
    pub node: usize,
    /// Whether the program itself said where it lies.
    pub bound: bool,
    /// Threads that used it.
    pub threads: u32,
    /// Nodes from which it was used.
    pub nodes: u32,
    /// Accesses by position of the cpu's node.
    pub accesses: [u64; MOST_NODES],
    /// Stores that were made when cpus of several nodes had used it.
    pub shared_stores: u64,
    /// Time waited for its memory by position of the cpu's node, in ps.
    pub memory_ps: [u64; MOST_NODES],
}

impl PageUse {
    /// A page of a region that nobody has used, and the thread at a place is about to.
    pub fn new(region: usize, page: Page, place: usize) -> Self {
        Self {
            region: AtomicUsize::new(region),
            node: AtomicUsize::new(page.node),
            bound: AtomicBool::new(page.bound),
            first_place: AtomicUsize::new(place),
            places: Default::default(),
            nodes: AtomicU32::new(0),
            accesses: Default::default(),
            shared_stores: AtomicU64::new(0),
            memory_ps: Default::default(),
            lines: [const { AtomicU32::new(0) }; LINES],
        }
    }

    /// Begins anew, as another page.
    pub fn renew(&self, region: usize, page: Page, place: usize) {
        self.region.store(region, Relaxed);
        self.first_place.store(place, Relaxed);
        self.moved(page);
        self.nodes.store(0, Relaxed);
        self.shared_stores.store(0, Relaxed);
        let counts = self.accesses.iter().chain(&self.memory_ps).chain(&self.places);
        counts.for_each(|count| count.store(0, Relaxed));
        self.lines.iter().for_each(|line| line.store(0, Relaxed));
    }

    /// The place of the thread that touched it first.
    pub fn first_place(&self) -> usize {
        self.first_place.load(Relaxed)
    }

    /// The page lies there now.
    pub fn moved(&self, page: Page) {
        self.node.store(page.node, Relaxed);
        self.bound.store(page.bound, Relaxed);
    }

    /// The thread at a place, on a node, accesses an address of the page.
    #[inline]
    pub fn access(&self, place: usize, home: usize, address: u64, kind: Kind) -> Line {
        self.accesses[home].fetch_add(1, Relaxed);
        let word = &self.places[place / 64 % PLACE_WORDS];
        if word.load(Relaxed) >> (place % 64) & 1 == 0 {
            word.fetch_or(1 << (place % 64), Relaxed);
        }
        let nodes = self.nodes.load(Relaxed);
        if nodes >> home & 1 == 0 {
            self.nodes.fetch_or(1 << home, Relaxed);
        }
        if kind == Kind::Store && nodes & !(1 << home) != 0 {
            self.shared_stores.fetch_add(1, Relaxed);
        }
        let line = (address % PAGE_BYTES / LINE_BYTES) as usize;
        pass(&self.lines[line], place, kind)
    }

    /// A thread on a node has waited for the page's memory.
    #[inline]
    pub fn waited(&self, home: usize, ps: u64) {
        self.memory_ps[home].fetch_add(ps, Relaxed);
    }

    /// What was seen of it.
    pub fn seen(&self) -> Seen {
        let all = |counts: &[AtomicU64; MOST_NODES]| counts.each_ref().map(|of| of.load(Relaxed));
        Seen {
            region: self.region.load(Relaxed),
            node: self.node.load(Relaxed),
            bound: self.bound.load(Relaxed),
            threads: self.places.iter().map(|word| word.load(Relaxed).count_ones()).sum(),
            nodes: self.nodes.load(Relaxed).count_ones(),
            accesses: all(&self.accesses),
            shared_stores: self.shared_stores.load(Relaxed),
            memory_ps: all(&self.memory_ps),
        }
    }
}

/// A line is accessed by the thread at a place: it changes hands when it is stored to by another
/// one than had it, and when another one reads what was stored.
#[inline]
fn pass(line: &AtomicU32, place: usize, kind: Kind) -> Line {
    let state = line.load(Relaxed);
    let (owner, changes) = (state & OWNER, state >> OWNER_BITS);
    #[expect(clippy::cast_possible_truncation, reason = "places are below 255")]
    let own = place as u32 + 1;
    let contended = |changed| match changes >= CONTENDED_CHANGES {
        true => Line::Contended(changed),
        false => Line::Quiet,
    };
    let to = match kind {
        _ if owner == own => return contended(false),
        Kind::Load if owner == 0 || owner == READ_BY_SEVERAL => return contended(false),
        Kind::Load => READ_BY_SEVERAL,
        Kind::Store => own,
    };
    let changes = if owner == 0 { 0 } else { (changes + 1).min(u32::MAX >> OWNER_BITS) };
    line.store(changes << OWNER_BITS | to, Relaxed);
    contended(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn on(node: usize) -> Page {
        Page { frame: 0, node, bound: false }
    }

    /// Accesses to the first line by turns of (place, kind).
    fn changes(turns: &[(usize, Kind)], rounds: usize) -> usize {
        let page = PageUse::new(0, on(0), 0);
        let all = turns.iter().cycle().take(rounds * turns.len());
        all.filter(|(place, kind)| page.access(*place, 0, 8, *kind) == Line::Contended(true))
            .count()
    }

    #[test]
    fn lines_that_threads_store_to_in_turn_are_contended_for() {
        use Kind::{Load, Store};
        assert!(changes(&[(0, Store), (1, Store)], 100) > 150);
        assert!(changes(&[(0, Store), (1, Load)], 100) > 150, "written here and read there");
        assert_eq!(changes(&[(0, Store), (0, Load)], 100), 0);
        assert_eq!(changes(&[(0, Load), (1, Load)], 100), 0);
    }

    #[test]
    fn a_line_that_is_written_once_and_read_by_all_is_quiet() {
        let page = PageUse::new(0, on(0), 0);
        page.access(0, 0, 0, Kind::Store);
        for turn in 0..1000 {
            assert_eq!(page.access(turn % 5, turn % 2, 0, Kind::Load), Line::Quiet);
        }
    }

    #[test]
    fn a_page_knows_its_users_and_what_they_wait_for() {
        let page = PageUse::new(3, on(1), 0);
        page.access(0, 0, 0, Kind::Store);
        page.access(200, 1, 64, Kind::Load);
        page.access(200, 1, 64, Kind::Store);
        page.waited(1, 500);
        let seen = page.seen();
        assert_eq!((seen.region, seen.node, seen.threads, seen.nodes), (3, 1, 2, 2));
        assert_eq!((seen.accesses[..2].to_vec(), seen.shared_stores), (vec![1, 2], 1));
        assert_eq!(seen.memory_ps[..2], [0, 500]);
        page.renew(4, on(0), 0);
        assert_eq!(page.seen(), PageUse::new(4, on(0), 0).seen());
    }
}
