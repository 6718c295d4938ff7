//! Identity mapping of all memory, with the largest pages of the cpu.

use alloc::boxed::Box;
use core::arch::x86_64::__cpuid;

use x86_64::registers::control::{Cr3, Cr3Flags};
use x86_64::structures::paging::PhysFrame;
use x86_64::{PhysAddr, structures::paging::Size4KiB};

const PRESENT_WRITABLE: u64 = 3;
const LARGE: u64 = 1 << 7;
const GIB: u64 = 1 << 30;
const MIB2: u64 = 2 << 20;

#[repr(align(4096))]
struct Table([u64; 512]);

/// Maps everything below `end` bytes, and at least 4 GiB; page 0 is left out, so that using a null
/// pointer is an exception. Returns the size of the largest pages.
///
/// # Safety
/// No other cpu runs, and all that is in use is below 4 GiB or `end`, at its own address.
pub unsafe fn map_all(end: u64) -> u64 {
    let has_gib_pages =
        __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx >> 26 & 1 == 1;
    let gibs = mapped_bytes(end) / GIB;
    let mut root = table();
    for (slot, first) in root.0.iter_mut().zip((0..gibs).step_by(512)) {
        let mut level3 = table();
        for (slot, gib) in level3.0.iter_mut().zip(first..gibs) {
            *slot = match has_gib_pages && gib > 0 {
                true => (gib * GIB) | PRESENT_WRITABLE | LARGE,
                false => entry(gib_of_blocks(gib)),
            };
        }
        *slot = entry(level3);
    }
    let root = entry(root) & !PRESENT_WRITABLE;
    let frame = PhysFrame::<Size4KiB>::containing_address(PhysAddr::new(root));
    // SAFETY: the new tables map everything that is in use (code, stacks, arena, tables) at the
    // same addresses as before, by the caller's promise; they are never freed.
    unsafe { Cr3::write(frame, Cr3Flags::empty()) };
    if has_gib_pages { GIB } else { MIB2 }
}

/// Returns the end of the addresses that [`map_all`] maps for memory that ends there.
pub fn mapped_bytes(end: u64) -> u64 {
    end.max(4 * GIB).next_multiple_of(GIB)
}

/// Returns the page table root of this cpu.
pub fn root() -> u64 {
    Cr3::read().0.start_address().as_u64()
}

fn gib_of_blocks(gib: u64) -> Box<Table> {
    let mut level2 = table();
    for (slot, block) in level2.0.iter_mut().zip(0..) {
        *slot = (gib * GIB + block * MIB2) | PRESENT_WRITABLE | LARGE;
    }
    if gib == 0 {
        let mut level1 = table();
        for (slot, page) in level1.0.iter_mut().zip(0..).skip(1) {
            *slot = (page * 4096) | PRESENT_WRITABLE;
        }
        level2.0[0] = entry(level1);
    }
    level2
}

fn table() -> Box<Table> {
    Box::new(Table([0; 512]))
}

/// Returns the entry that points to a table, which is never freed.
fn entry(table: Box<Table>) -> u64 {
    core::ptr::from_mut(Box::leak(table)).expose_provenance() as u64 | PRESENT_WRITABLE
}
