//! What a thread remembers of memory, so that most of its accesses need not look far.

use numalab_memory_model::arguments::MOST_BESIDE;
use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Engine, There};
use numalab_memory_model::outcome::Known;
use numalab_memory_model::space::{PAGE_BYTES, Page};

use super::account::Account;
use super::page_use::{LINE_BYTES, PageUse};

/// Pages that a thread remembers; a power of two.
const PAGES: usize = 1024;
/// Lines: several times as many as the nearest caches of today have, so that few share a place.
const LINES: usize = 4096;

/// A page as a thread knows it.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    /// Its number.
    pub number: u64,
    /// Where it lies.
    pub page: Page,
    /// Its region and node.
    pub slot: u32,
    /// Number of its region.
    pub region: usize,
    /// Who uses it.
    pub used: &'static PageUse,
    /// Where it would be by the placements that are watched.
    pub elsewhere: [There; MOST_BESIDE],
}

/// Pages by number, as they were in a generation of the address space.
#[derive(Debug)]
pub struct Pages {
    generation: u32,
    known: Box<[Option<Remembered>]>,
}

impl Default for Pages {
    fn default() -> Self {
        Self { generation: 0, known: vec![None; PAGES].into() }
    }
}

impl Pages {
    /// The page of an address.
    #[inline]
    pub fn of(&self, address: u64, generation: u32) -> Option<&Remembered> {
        if self.generation != generation {
            return None;
        }
        let number = address / PAGE_BYTES;
        let known = self.known[place(number)].as_ref();
        known.filter(|known| known.number == number)
    }

    /// Remembers a page.
    pub fn remember(&mut self, page: Remembered, generation: u32) {
        if self.generation != generation {
            self.generation = generation;
            self.known.fill(None);
        }
        self.known[place(page.number)] = Some(page);
    }

    /// Forgets the page of a number.
    pub fn forget(&mut self, number: u64) {
        self.known[place(number)].take_if(|known| known.number == number);
    }
}

#[inline]
fn place(number: u64) -> usize {
    usize::try_from(number % PAGES as u64).unwrap_or(0)
}

/// A line that a thread accessed last of those that share its place. It fills one of the host's lines:
/// most of what the emulator does is to look at one of these.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Recent {
    /// Its number.
    pub line: u64,
    /// First address of its page's frame.
    pub frame: u64,
    used: &'static PageUse,
    /// Where the model has it.
    pub known: Known,
    /// Loads and stores that nobody else knows of yet.
    accesses: [u16; 2],
    slot: u32,
    /// Who has it, by its page.
    owner: u32,
    node: u8,
}

const _: () = assert!(size_of::<Option<Recent>>() == 64);

/// Lines by number.
#[derive(Debug)]
pub struct Lines {
    recent: Box<[Option<Recent>]>,
    /// Places at which there has been one since all were counted last.
    taken: Vec<u16>,
    is_taken: Box<[bool]>,
}

impl Default for Lines {
    fn default() -> Self {
        // Threads of QEMU have little stack.
        let recent = vec![None; LINES].into_boxed_slice();
        Self { recent, taken: Vec::new(), is_taken: vec![false; LINES].into() }
    }
}

/// Whose accesses are counted, and where.
pub struct Counts<'a> {
    /// The model.
    pub engine: &'a Engine,
    /// What the thread did.
    pub account: &'a mut Account,
    /// The cpu that the thread runs on, and its node.
    pub cpu: usize,
    /// As above.
    pub home: usize,
}

impl Lines {
    /// The line of an address, if it has not been forgotten. `knows_owners` says whether who
    /// has it is known otherwise; else others may have used it since, and it counts as forgotten.
    #[inline]
    pub fn of(&mut self, address: u64, knows_owners: bool) -> Option<&mut Recent> {
        let line = address / LINE_BYTES;
        let recent = self.recent[(line % LINES as u64) as usize].as_mut()?;
        let is_known =
            recent.line == line && (knows_owners || recent.used.owner(address) == recent.owner);
        is_known.then_some(recent)
    }

    /// An access to a line of a page went another way: what may be known of it for the next one.
    pub fn remember(
        &mut self,
        address: u64,
        page: &Remembered,
        known: Option<Known>,
        counts: &mut Counts<'_>,
    ) {
        let line = address / LINE_BYTES;
        let at = (line % LINES as u64) as usize;
        if let Some(recent) = self.recent[at].take() {
            counts.add(&recent);
        }
        if !std::mem::replace(&mut self.is_taken[at], true) {
            self.taken.extend(u16::try_from(at));
        }
        let quiet = page.used.quiet_owner(address);
        self.recent[at] = known.zip(quiet).map(|(known, owner)| Recent {
            line,
            frame: page.page.frame,
            used: page.used,
            known,
            accesses: [0; 2],
            slot: page.slot,
            node: u8::try_from(page.page.node).unwrap_or(u8::MAX),
            owner,
        });
    }

    /// Counts all that nobody else knows of yet, and forgets all lines.
    pub fn settle(&mut self, mut counts: Counts<'_>) {
        let Self { recent, taken, is_taken } = self;
        for at in taken.drain(..).map(usize::from) {
            is_taken[at] = false;
            recent[at].take().iter().for_each(|recent| counts.add(recent));
        }
    }
}

impl Recent {
    /// It was accessed again; whether it has room to count more.
    #[inline]
    pub fn count(&mut self, kind: Kind) -> bool {
        let count = &mut self.accesses[kind as usize];
        *count += 1;
        *count < u16::MAX
    }
}

impl Counts<'_> {
    fn add(&mut self, recent: &Recent) {
        if recent.accesses != [0; 2] {
            let accesses = recent.accesses.map(u64::from);
            self.engine.count(self.cpu, usize::from(recent.node), accesses);
            self.account.count(recent.slot as usize, accesses);
            recent.used.count(self.home, accesses);
        }
    }
}
