//! Scattered memory mapped to contiguous addresses: a stretch of addresses for each cpu.

use x86_64::instructions::tlb;
use x86_64::registers::control::Cr3;

use numalab_frames::{AllocError, CpuFences, CpuIndex, Frames, FreeError, Policy};
use numalab_kernel::arena_size::WINDOW_BYTES;
use numalab_kernel::memory_map::MOST_BYTES;

use super::address::{index, pointer};
use super::memory::Run;

type Allocator = &'static Frames<'static, CpuFences>;

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

/// A cpu's own stretch of addresses. Only that cpu uses it, so only its own translations have to be
/// flushed.
pub struct Window {
    place: usize,
    mapped_bytes: u64,
}

impl Window {
    /// Returns the empty window of a cpu; only one may exist at a time.
    pub fn of(place: usize) -> Self {
        assert!(place < MOST_CPUS, "a cpu without a window");
        Self { place, mapped_bytes: 0 }
    }

    /// Returns the first address.
    pub fn base(&self) -> u64 {
        ((FIRST_ROOT_ENTRY + self.place) as u64) << 39
    }

    /// Returns the number of mapped bytes.
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes
    }

    /// Maps frames after those already mapped, at most [`WINDOW_BYTES`] in total; all pieces have
    /// one size, a power of two up to 1 GiB. Tables come from the cpu's own node. On an error none
    /// of the frames is mapped: the entries of a piece are in one table, and only the first of them
    /// can lack it.
    pub fn push(
        &mut self,
        allocator: Allocator,
        cpu: CpuIndex,
        frames: &Run,
    ) -> Result<(), AllocError> {
        let bytes = frames.frames() * 4096;
        assert!(bytes <= MOST_PIECE_BYTES, "a piece in two tables");
        assert!(self.mapped_bytes + bytes <= WINDOW_BYTES, "a window is full");
        let page = bytes.min(BLOCK_BYTES);
        let (leaf, flags) = match page {
            BLOCK_BYTES => (1, PRESENT_WRITABLE | LARGE),
            _ => (0, PRESENT_WRITABLE),
        };
        let step = if leaf == 1 { BLOCK_BYTES } else { 4096 };
        for offset in (0..bytes).step_by(index(step)) {
            let entry = self.entry(allocator, cpu, self.base() + self.mapped_bytes, leaf)?;
            // SAFETY: an entry of a table of this window, which has all addresses up to `WINDOW_BYTES`
            // and which only this cpu writes.
            unsafe { entry.write_volatile((frames.address() + offset) | flags) };
            self.mapped_bytes += step;
        }
        Ok(())
    }

    /// Returns the physical address of a mapped offset.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
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

    /// Flushes all translations and frees the tables; the mapped frames belong to the caller.
    pub fn close(self, allocator: Allocator, cpu: CpuIndex) -> Result<(), FreeError> {
        let entry = at(root(), self.base(), 3);
        // SAFETY: the root's entry of this window, which only this cpu uses.
        let top = unsafe { entry.read_volatile() };
        // SAFETY: the same entry, of this window alone; `self` ends with this call, and with it all
        // that `Arena` returned of the window.
        unsafe { entry.write_volatile(0) };
        tlb::flush_all();
        if top & PRESENT_WRITABLE == 0 {
            return Ok(());
        }
        // SAFETY: the root's entry pointed there, and no longer does.
        unsafe { free_tables(allocator, cpu, top & ADDRESS, 2) }
    }

    /// Returns the entry of an address in the table of a level, creating the tables above it.
    fn entry(
        &self,
        allocator: Allocator,
        cpu: CpuIndex,
        address: u64,
        leaf: u32,
    ) -> Result<*mut u64, AllocError> {
        let mut table = root();
        for level in (leaf + 1..4).rev() {
            // SAFETY: the root, or a table that a present entry of the level above points to.
            let mut entry = unsafe { read(table, address, level) };
            if entry & PRESENT_WRITABLE == 0 {
                let mut fresh = Run::new(allocator, cpu, 1, Policy::Local)?;
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
    allocator: Allocator,
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
                unsafe { free_tables(allocator, cpu, entry & ADDRESS, level - 1)? };
            }
        }
    }
    // SAFETY: `Window::entry` made each table from a run of one frame, and kept only its address.
    unsafe { Run::from_address(table, 1) }.free(allocator, cpu)
}

fn root() -> u64 {
    Cr3::read().0.start_address().as_u64()
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
