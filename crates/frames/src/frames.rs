//! The allocator: its parts, its construction, and the entry into a cpu's cache.

use crate::block::{BlockWord, FULL, List};
use crate::error::InitError;
use crate::fences::{CpuFences, Fences};
use crate::ids::{BLOCK_FRAMES, CpuIndex};
use crate::layout::{MetadataLayout, Parts};
use crate::lists::{Lists, Pool};
use crate::machine::{Machine, ZonePiece};
use crate::map::{Map, Region};
use crate::policy::Request;
use crate::runs::BlockPart;
use crate::shared::Shared;
use crate::slot::Slot;
use crate::sync::{Ordering, Word, index};
use crate::tags::Tags;

/// The page-frame allocator of a machine.
///
/// Every call names the cpu that makes it, which the caller must ensure: a kernel keeps the thread
/// on the cpu (preemption off) for the length of a call, so that no other call runs on it
/// meanwhile, except in interrupts. With [`CpuFences`] a wrong cpu (two threads that name the same
/// one) costs speed, locality and at worst a refusal
/// ([`AllocError::ExhaustedNested`](crate::AllocError::ExhaustedNested)), because one of the two is
/// mistaken for an interrupt of the other; no frame is returned twice and none is lost. With
/// [`RemoteFences`](crate::RemoteFences) the caller of their constructor has promised that it does
/// not happen.
///
/// A frame is a number, and any code that has the number can free it. A frame that is freed while
/// it is in use is allocated again: code that gives access to memory by these numbers (a page
/// table, a `Box`) must own the frames it frees.
pub struct Frames<'m, F = CpuFences> {
    pub(crate) machine: Machine<'m>,
    pub(crate) shared: Shared<'m>,
    pub(crate) slots: &'m [[Word; 32]],
    /// The cpu that is taking all caches back, plus one; 0 if none is.
    pub(crate) frozen: &'m Word,
    pub(crate) tags: Tags<'m>,
    pub(crate) fences: F,
}

/// A guard of a cpu that is using its own cache.
pub(crate) struct Busy<'m>(&'m Word);

impl Drop for Busy<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Pairs with the `Acquire` of `Frames::freeze`: a reader that sees 0 sees all of the slot.
        self.0.store(0, Ordering::Release);
    }
}

impl<'m> Machine<'m> {
    /// Returns the number of metadata words that [`Frames::new`] needs for this machine.
    ///
    /// # Errors
    /// The problem of an invalid machine.
    pub fn metadata_words(&self) -> Result<usize, InitError> {
        self.check()?;
        Ok(MetadataLayout::of(self).total())
    }
}

impl<'m, F: Fences> Frames<'m, F> {
    /// Creates the allocator of a machine; the content of `metadata` is arbitrary.
    ///
    /// # Errors
    /// The problem of an invalid machine, or the required size of the buffer.
    pub fn new(
        machine: Machine<'m>,
        metadata: &'m mut [Word],
        fences: F,
    ) -> Result<Self, InitError> {
        machine.check()?;
        let layout = MetadataLayout::of(&machine);
        let parts = layout.divide(metadata)?;
        for word in parts.control {
            word.store(0, Ordering::Relaxed);
        }
        let frames = Self {
            machine,
            shared: build_shared(&machine, &layout, &parts),
            slots: parts.slots,
            frozen: &parts.control[0],
            tags: Tags::new(parts.tags),
            fences,
        };
        frames.fill();
        for (cpu, slot) in frames.slots.iter().enumerate() {
            Slot(slot).reset(frames.home_pool(cpu));
        }
        Ok(frames)
    }

    /// Returns the machine that was given.
    pub const fn machine(&self) -> &Machine<'m> {
        &self.machine
    }

    #[inline(always)]
    pub(crate) fn slot(&self, cpu: CpuIndex) -> Option<Slot<'m>> {
        self.slots.get(cpu.at()).map(Slot)
    }

    /// Enters the cpu's cache; `None` if this call interrupted another one that is using it, or if
    /// the caches are being taken back.
    #[inline(always)]
    pub(crate) fn enter(&self, slot: Slot<'m>) -> Option<Busy<'m>> {
        // The claim comes before the load below. It pairs with the exchange and the heavy fence of
        // `Frames::freeze`: at least one of the two cpus sees the other.
        if !self.fences.claim(slot.busy()) {
            return None;
        }
        let guard = Busy(slot.busy());
        // Also an acquire: pairs with the `Release` that ends a freeze after it has emptied the
        // cache.
        (self.frozen.load(Ordering::SeqCst) == 0).then_some(guard)
    }

    /// Returns the first pool with memory for the cpu's plain requests.
    fn home_pool(&self, cpu: usize) -> usize {
        let home = self.machine.cpus[cpu];
        let request = Request::FRAME;
        let walk = request.walk(&self.machine, home, || 0);
        walk.ok()
            .and_then(|mut walk| walk.find(|&(pool, _)| self.shared.pool(pool).blocks > 0))
            .map_or(0, |(pool, _)| pool)
    }

    /// Makes every online frame free.
    fn fill(&self) {
        for piece in self.machine.pieces() {
            let Some(region) = self.shared.map.find(piece.start) else {
                continue;
            };
            for part in BlockPart::of(region, piece.start, piece.end) {
                self.fill_block(&piece, region.first_frame(part.block), part);
            }
        }
    }

    fn fill_block(&self, piece: &ZonePiece, first: u64, part: BlockPart) {
        let shared = &self.shared;
        let empty = BlockWord::new(first / BLOCK_FRAMES, part.frames() != FULL);
        let rows = &shared.rows[part.block];
        for row in rows {
            row.store(0, Ordering::Relaxed);
        }
        if !piece.online {
            shared.blocks[part.block].store(empty.with_offline(true).0, Ordering::Relaxed);
            return;
        }
        for (row, mask) in part.rows() {
            rows[row].store(mask, Ordering::Relaxed);
        }
        let list = List::of(part.frames());
        let word = empty.with_count(part.frames()).with_listed(list);
        shared.blocks[part.block].store(word.0, Ordering::Relaxed);
        if let Some(list) = list {
            shared.lists.set(&shared.pool(piece.pool), list, part.block);
        }
    }
}

/// Writes the tables that never change, and empty lists.
fn build_shared<'m>(
    machine: &Machine<'m>,
    layout: &MetadataLayout,
    parts: &Parts<'m>,
) -> Shared<'m> {
    let lists = Lists { groups: parts.groups, whole: parts.whole, summaries: parts.summaries };
    let words = lists.groups.iter().flatten().chain(lists.whole).chain(lists.summaries);
    words.for_each(|word| word.store(0, Ordering::Relaxed));
    let mut pool = Pool::NONE;
    for (number, record) in parts.pools.iter().enumerate() {
        let pieces = machine.pieces().filter(|piece| piece.pool == number);
        pool = pool.next(index(pieces.map(|piece| piece.blocks()).sum()));
        pool.write(record);
    }
    // The pieces are sorted by address; each takes the next blocks of its pool. The number of
    // blocks assigned so far is kept in a spare word of the pool's record.
    let regions = machine.pieces().map(|piece| {
        let record = &parts.pools[piece.pool];
        let given = Pool::given(record).fetch_add(piece.blocks(), Ordering::Relaxed);
        let first = Pool::read(record).first_block as u64 + given;
        Region::new(piece.start, piece.end, piece.pool, first)
    });
    let map = Map::write(parts.regions, parts.lookup, layout.lookup_shift, regions);
    Shared { map, rows: parts.rows, blocks: parts.blocks, lists, pools: parts.pools }
}
