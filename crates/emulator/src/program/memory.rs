//! A thread's cache of pages and lines, so that most accesses need no full lookup.

use numalab_memory_model::arguments::MOST_ALTERNATIVES;
use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{Engine, There};
use numalab_memory_model::outcome::Known;
use numalab_memory_model::space::{PAGE_BYTES, Page};

use super::account::Account;
use super::page_use::{LINE_BYTES, PageUse};
use super::repeatable::{RepeatableLines, Uncounted};

/// Number of pages that a thread caches: 32 MiB; a power of two.
const PAGES: usize = 8192;
/// Number of lines that a thread caches: several times the number in current L1 caches, so that few
/// collide.
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
    pub elsewhere: [There; MOST_ALTERNATIVES],
    /// True if the next store needs the kernel: the page is the page of zeros, or shared.
    pub only_loads: bool,
    /// The generation of the address space in which the record is valid.
    pub generation: u32,
}

/// Pages by number.
#[derive(Debug)]
pub struct Pages(Box<[Option<Remembered>]>);

impl Default for Pages {
    fn default() -> Self {
        Self(vec![None; PAGES].into())
    }
}

impl Pages {
    /// Returns the page of an address, if cached.
    #[inline]
    pub fn of(&self, address: u64, generation: u32) -> Option<&Remembered> {
        let number = address / PAGE_BYTES;
        self.held(number).filter(|known| known.generation == generation)
    }

    /// Returns the page with a number, if cached, for a thread that still caches a line of it.
    pub fn held(&self, number: u64) -> Option<&Remembered> {
        self.0[place(number)].as_ref().filter(|known| known.number == number)
    }

    /// Caches a page.
    pub fn remember(&mut self, page: Remembered) {
        self.0[place(page.number)] = Some(page);
    }

    /// Drops the page with a number.
    pub fn forget(&mut self, number: u64) {
        self.0[place(number)].take_if(|known| known.number == number);
    }
}

#[inline]
fn place(number: u64) -> usize {
    usize::try_from(number % PAGES as u64).unwrap_or(0)
}

/// The line that a thread accessed last among those that share a slot. The record fills one of the
/// host's cache lines, because looking up records is most of the emulator's work.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Recent {
    /// Number of the line.
    pub line: u64,
    /// First address of the page's frame.
    pub frame: u64,
    used: &'static PageUse,
    /// State of the line in the model.
    pub known: Known,
    /// Loads and stores not yet counted elsewhere.
    accesses: [u32; 2],
    /// Region and node of the page.
    slot: u32,
    /// The owner's state in the page.
    owner: u32,
}

const _: () = assert!(size_of::<Option<Recent>>() == 64);

/// Lines by number.
#[derive(Debug)]
pub struct Lines {
    recent: Box<[Option<Recent>]>,
    /// The cached lines that were accessed recently while blocks pass at their pace.
    repeatable: RepeatableLines,
    /// Slots filled since the last settlement.
    taken: Vec<u16>,
    is_taken: Box<[bool]>,
}

impl Default for Lines {
    fn default() -> Self {
        // On the heap, as QEMU's threads have small stacks.
        let recent = vec![None; LINES].into_boxed_slice();
        Self {
            recent,
            repeatable: RepeatableLines::default(),
            taken: Vec::new(),
            is_taken: vec![false; LINES].into(),
        }
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

/// Returns the place of a line among those cached.
#[inline]
fn place_of(line: u64) -> usize {
    usize::try_from(line % LINES as u64).unwrap_or(0)
}

impl Lines {
    /// Returns the line of an address, if cached. If `knows_owners` is false, others may have used
    /// the line since, and it counts as dropped.
    #[inline]
    pub fn of(&mut self, address: u64, knows_owners: bool) -> Option<&mut Recent> {
        let line = address / LINE_BYTES;
        let recent = self.recent[place_of(line)].as_mut()?;
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
        let at = place_of(line);
        // The accesses of the displaced line are counted before its record is lost.
        if let Some(mut recent) = self.recent[at].take() {
            let more = self.repeatable.take(recent.line);
            more.iter().for_each(|(_, accesses)| recent.add(*accesses));
            counts.add(&recent);
        }
        // A list of the filled slots, so that a settlement does not walk all of them.
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
            owner,
        });
    }

    /// Repeats an access to a line that was accessed recently, while blocks pass at their pace;
    /// returns false for any other line.
    #[inline]
    pub fn again(&mut self, address: u64, kind: Kind) -> bool {
        self.repeatable.again(address / LINE_BYTES, kind)
    }

    /// Adds a cached line to those accessed recently.
    #[inline]
    pub fn keep(&mut self, address: u64, kind: Kind) {
        if let Some(displaced) = self.repeatable.keep(address / LINE_BYTES, kind) {
            count(&mut self.recent, displaced);
        }
    }

    /// Lets each line pass through the nearest cache and TLB once more.
    pub fn ends_round(&mut self) {
        self.repeatable.ends_round();
    }

    /// Drops the lines of a page, and counts their pending accesses.
    pub fn forget_page(&mut self, number: u64, mut counts: Counts<'_>) {
        let first = number * (PAGE_BYTES / LINE_BYTES);
        for line in first..first + PAGE_BYTES / LINE_BYTES {
            if let Some(mut recent) =
                self.recent[place_of(line)].take_if(|recent| recent.line == line)
            {
                let more = self.repeatable.take(line);
                more.iter().for_each(|(_, accesses)| recent.add(*accesses));
                counts.add(&recent);
            }
        }
    }

    /// Counts all pending accesses, and drops all lines.
    pub fn settle(&mut self, mut counts: Counts<'_>) {
        let Self { recent, repeatable, taken, is_taken } = self;
        repeatable.drain().for_each(|uncounted| count(recent, uncounted));
        for at in taken.drain(..).map(usize::from) {
            is_taken[at] = false;
            recent[at].take().iter().for_each(|recent| counts.add(recent));
        }
    }
}

fn count(recent: &mut [Option<Recent>], (line, accesses): Uncounted) {
    let recent = recent[place_of(line)].as_mut();
    recent.filter(|recent| recent.line == line).into_iter().for_each(|of| of.add(accesses));
}

impl Recent {
    /// Counts one more access to the line; returns false if the line's counters are nearly full.
    #[inline]
    pub fn count(&mut self, kind: Kind) -> bool {
        let count = &mut self.accesses[kind as usize];
        *count += 1;
        *count < u32::MAX / 2
    }

    /// Counts further loads and stores.
    #[inline]
    fn add(&mut self, [loads, stores]: [u32; 2]) {
        self.accesses = [self.accesses[0] + loads, self.accesses[1] + stores];
    }
}

impl Counts<'_> {
    fn add(&mut self, recent: &Recent) {
        if recent.accesses != [0; 2] {
            let accesses = recent.accesses.map(u64::from);
            let nodes = self.engine.arguments.machine.nodes.len();
            self.engine.count(self.cpu, recent.slot as usize % nodes, accesses);
            self.account.count(recent.slot as usize, accesses);
            recent.used.count(self.home, accesses);
        }
    }
}
