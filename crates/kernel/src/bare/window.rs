//! Scattered memory mapped to contiguous addresses: a stretch of addresses for each cpu.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

use x86_64::instructions::tlb;

use numalab_frames::{AllocError, CpuIndex, FreeError, Policy};
use numalab_kernel::arena_size::WINDOW_BYTES;
use numalab_kernel::memory_map::MOST_BYTES;

use super::address::{index, pointer};
use super::memory::{Memory, Run};
use super::paging::root;

/// The first of the root's entries that belong to the cpus, one each; everything else is below.
const FIRST_ROOT_ENTRY: usize = 128;
const _: () = assert!(FIRST_ROOT_ENTRY as u64 * WINDOW_BYTES == MOST_BYTES, "memory ends there");
/// Number of cpus that have a window.
pub const MOST_CPUS: usize = 128;
const PRESENT_WRITABLE: u64 = 3;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const BLOCK_BYTES: u64 = 2 << 20;
/// The addresses of one table of blocks.
const MOST_PIECE_BYTES: u64 = 1 << 30;

/// The windows in use, by their cpus.
static IN_USE: [AtomicBool; MOST_CPUS] = [const { AtomicBool::new(false) }; MOST_CPUS];

/// A cpu's own stretch of addresses, with the memory mapped there. It stays on the cpu that made it,
/// so only that cpu's translations have to be flushed.
pub struct Window {
    place: usize,
    mapped_bytes: u64,
    piece_frames: u64,
    on_one_cpu: PhantomData<*mut ()>,
}

impl Window {
    /// Returns the empty window of a cpu for pieces of this number of frames, a power of two up to
    /// 1 GiB.
    ///
    /// # Panics
    /// For other pieces, if the cpu has no window, and until the last one has been closed.
    pub fn of(place: usize, piece_frames: u64) -> Self {
        assert!(place < MOST_CPUS, "a cpu without a window");
        assert!(piece_frames.is_power_of_two(), "a piece in parts of blocks");
        assert!(piece_frames * 4096 <= MOST_PIECE_BYTES, "a piece in two tables");
        // Acquire: pairs with the release in `close`, after which the addresses are free.
        assert!(!IN_USE[place].swap(true, Ordering::Acquire), "a window is in use");
        Self { place, mapped_bytes: 0, piece_frames, on_one_cpu: PhantomData }
    }

    /// Returns its memory as words of 8 bytes.
    pub fn words(&self) -> &[u64] {
        let (start, words) = (pointer::<u64>(self.base()), index(self.mapped_bytes / 8));
        // SAFETY: 1. All up to there is mapped to memory that the window owns and that is
        // initialised, as ordinary memory always is. 2. It is only read while `self` is borrowed,
        // and only on the cpu of the window.
        unsafe { core::slice::from_raw_parts(start, words) }
    }

    /// Returns the first address.
    fn base(&self) -> u64 {
        ((FIRST_ROOT_ENTRY + self.place) as u64) << 39
    }

    /// Maps a piece after those already mapped, at most [`WINDOW_BYTES`] in total. Tables come from
    /// the cpu's own node. On an error the piece is freed, and none of it is mapped: its entries are
    /// in one table, and only the first of them can lack it.
    pub fn push(&mut self, memory: Memory, cpu: CpuIndex, piece: Run) -> Result<(), AllocError> {
        let bytes = piece.frames() * 4096;
        assert!(piece.frames() == self.piece_frames, "a piece of another size");
        assert!(self.mapped_bytes + bytes <= WINDOW_BYTES, "a window is full");
        let (leaf, step, flags) = match bytes < BLOCK_BYTES {
            true => (0, 4096, PRESENT_WRITABLE),
            false => (1, BLOCK_BYTES, PRESENT_WRITABLE | LARGE),
        };
        for offset in (0..bytes).step_by(index(step)) {
            let entry = match self.entry(memory, cpu, self.base() + self.mapped_bytes, leaf) {
                Ok(entry) => entry,
                Err(error) => {
                    // Frames that were allocated a moment ago can be freed.
                    let _ = piece.free(memory, cpu);
                    return Err(error);
                }
            };
            // SAFETY: an entry of a table of this window, which has all addresses up to
            // `WINDOW_BYTES` and which only this cpu writes.
            unsafe { entry.write_volatile((piece.address() + offset) | flags) };
            self.mapped_bytes += step;
        }
        Ok(())
    }

    /// Returns the physical address of a mapped offset.
    fn address_of(&self, offset: u64) -> Option<u64> {
        let at = self.base() + offset;
        let mut table = root();
        for level in (0..4).rev() {
            // SAFETY: the root, or a table that a present entry of the level above points to.
            let entry = unsafe { read(table, at, level) };
            if entry & PRESENT_WRITABLE == 0 {
                return None;
            }
            table = entry & ADDRESS;
            if entry & LARGE != 0 && level == 1 {
                return Some((table & !(BLOCK_BYTES - 1)) + at % BLOCK_BYTES);
            }
        }
        Some(table + at % 4096)
    }

    /// Flushes all translations, and frees the memory and the tables.
    pub fn close(self, memory: Memory, cpu: CpuIndex) -> Result<(), FreeError> {
        for offset in (0..self.mapped_bytes).step_by(index(self.piece_frames * 4096)) {
            if let Some(address) = self.address_of(offset) {
                // SAFETY: `push` took pieces of that size and mapped them there; `self` is consumed
                // by this call, and with it every view of its words.
                unsafe { Run::from_address(address, self.piece_frames) }.free(memory, cpu)?;
            }
        }
        let entry = at(root(), self.base(), 3);
        // SAFETY: the root's entry of this window, which only this cpu uses.
        let top = unsafe { entry.read_volatile() };
        // SAFETY: the same entry, of this window alone; `self` ends with this call, and with it
        // every view of its words.
        unsafe { entry.write_volatile(0) };
        tlb::flush_all();
        if top & PRESENT_WRITABLE != 0 {
            // SAFETY: the root's entry pointed there, and no longer does.
            unsafe { free_tables(memory, cpu, top & ADDRESS, 2)? };
        }
        IN_USE[self.place].store(false, Ordering::Release);
        Ok(())
    }

    /// Returns the entry of an address in the table of a level, creating the tables above it.
    fn entry(
        &self,
        memory: Memory,
        cpu: CpuIndex,
        address: u64,
        leaf: u32,
    ) -> Result<*mut u64, AllocError> {
        let mut table = root();
        for level in (leaf + 1..4).rev() {
            // SAFETY: the root, or a table that a present entry of the level above points to.
            let mut entry = unsafe { read(table, address, level) };
            if entry & PRESENT_WRITABLE == 0 {
                let mut fresh = Run::new(memory, cpu, 1, Policy::Local)?;
                fresh.lines().iter_mut().for_each(|line| line.words_mut().fill(0));
                entry = fresh.address() | PRESENT_WRITABLE;
                // SAFETY: an entry of a table of this window, which only this cpu writes.
                unsafe { at(table, address, level).write_volatile(entry) };
            }
            table = entry & ADDRESS;
        }
        Ok(at(table, address, leaf))
    }
}

/// Frees a table and those below it; the last level's entries are pages.
///
/// # Safety
/// `table` is a table of this level that `Window::entry` made, and it is no longer referenced.
unsafe fn free_tables(
    memory: Memory,
    cpu: CpuIndex,
    table: u64,
    level: u32,
) -> Result<(), FreeError> {
    if level > 0 {
        for place in 0..512 {
            // SAFETY: the caller's promise: it is a table.
            let entry = unsafe { read(table, place << (12 + 9 * level), level) };
            if entry & PRESENT_WRITABLE != 0 && entry & LARGE == 0 {
                // SAFETY: only this entry points there, and its table is freed too.
                unsafe { free_tables(memory, cpu, entry & ADDRESS, level - 1)? };
            }
        }
    }
    // SAFETY: `Window::entry` made each table from a run of one frame, and kept only its address.
    unsafe { Run::from_address(table, 1) }.free(memory, cpu)
}

/// Returns a pointer to the entry of an address in a table of a level, 0 being the last.
fn at(table: u64, address: u64, level: u32) -> *mut u64 {
    let place = address >> (12 + 9 * level) & 511;
    pointer(table + place * 8)
}

/// Reads the entry of an address in a table of a level.
///
/// # Safety
/// `table` is one of this cpu's paging structures, all of which are mapped at their own addresses.
unsafe fn read(table: u64, address: u64, level: u32) -> u64 {
    // SAFETY: the caller's promise; `at` stays within the table.
    unsafe { at(table, address, level).read_volatile() }
}
