//! A thread's cache of pages and lines, so that most accesses need no full lookup.

use numalab_memory_model::arguments::MOST_BESIDE;
use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Engine, There};
use numalab_memory_model::outcome::Known;
use numalab_memory_model::space::{PAGE_BYTES, Page};

use super::account::Account;
use super::page_use::{LINE_BYTES, PageUse};

/// Pages that a thread caches; a power of two.
const PAGES: usize = 1024;
/// Lines: several times the number in today's nearest caches, so that few collide.
const LINES: usize = 4096;

/// A page as a thread knows it.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    pub number: u64,
    pub page: Page,
    /// Region and node of the page.
    pub slot: u32,
    /// Number of the region.
    pub region: usize,
    pub used: &'static PageUse,
    /// Location of the page under each placement that is watched.
    pub elsewhere: [There; MOST_BESIDE],
}

/// Pages by number, valid for one generation of the address space.
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
    /// Returns the page of an address, if cached.
    #[inline]
    pub fn of(&self, address: u64, generation: u32) -> Option<&Remembered> {
        if self.generation != generation {
            return None;
        }
        let number = address / PAGE_BYTES;
        let known = self.known[place(number)].as_ref();
        known.filter(|known| known.number == number)
    }

    /// Returns the page with a number, if cached, for a thread that still caches a line of it.
    pub fn held(&self, number: u64) -> Option<&Remembered> {
        self.known[place(number)].as_ref().filter(|known| known.number == number)
    }

    /// Caches a page.
    pub fn remember(&mut self, page: Remembered, generation: u32) {
        if self.generation != generation {
            self.generation = generation;
            self.known.fill(None);
        }
        self.known[place(page.number)] = Some(page);
    }

    /// Drops the page with a number.
    pub fn forget(&mut self, number: u64) {
        self.known[place(number)].take_if(|known| known.number == number);
    }
}

#[inline]
fn place(number: u64) -> usize {
    usize::try_from(number % PAGES as u64).unwrap_or(0)
}

/// The line that a thread accessed last of those that share a slot. It fills one of the host's
/// lines, as looking at these is most of the emulator's work.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Recent {
    /// Number of the line.
    pub line: u64,
    /// First address of its page's frame.
    pub frame: u64,
    used: &'static PageUse,
    /// State of the line in the model.
    pub known: Known,
    /// Loads and stores not yet counted elsewhere.
    accesses: [u16; 2],
    slot: u32,
    /// The owner's state in its page.
    owner: u32,
    node: u8,
}

const _: () = assert!(size_of::<Option<Recent>>() == 64);

/// Lines by number.
#[derive(Debug)]
pub struct Lines {
    recent: Box<[Option<Recent>]>,
    /// Slots filled since the last settlement.
    taken: Vec<u16>,
    is_taken: Box<[bool]>,
}

impl Default for Lines {
    fn default() -> Self {
        // On the heap, as QEMU's threads have small stacks.
        let recent = vec![None; LINES].into_boxed_slice();
        Self { recent, taken: Vec::new(), is_taken: vec![false; LINES].into() }
    }
}

/// The figures to which accesses are added.
pub struct Counts<'a> {
    pub engine: &'a Engine,
    pub account: &'a mut Account,
    /// The cpu that the thread runs on, and its node.
    pub cpu: usize,
    pub home: usize,
}

impl Lines {
    /// Returns the line of an address, if cached. If `knows_owners` is false others may have used
    /// the line since, and it counts as dropped.
    #[inline]
    pub fn of(&mut self, address: u64, knows_owners: bool) -> Option<&mut Recent> {
        let line = address / LINE_BYTES;
        let recent = self.recent[(line % LINES as u64) as usize].as_mut()?;
        let is_known =
            recent.line == line && (knows_owners || recent.used.owner(address) == recent.owner);
        is_known.then_some(recent)
    }

    /// Caches a line after a slow access.
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

    /// Counts all pending accesses, and drops all lines.
    pub fn settle(&mut self, mut counts: Counts<'_>) {
        let Self { recent, taken, is_taken } = self;
        for at in taken.drain(..).map(usize::from) {
            is_taken[at] = false;
            recent[at].take().iter().for_each(|recent| counts.add(recent));
        }
    }
}

impl Recent {
    /// Counts one more access to the line; returns false if its counters are full.
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
