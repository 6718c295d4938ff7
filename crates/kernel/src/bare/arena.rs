//! The heap for everything that is allocated before the frame allocator exists, and for results.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SIZE: usize = 8 << 20;

/// A fixed piece of memory that is allocated from the front. Only the last block can be freed or
/// grow; all others stay until the end.
#[repr(align(4096))]
struct Arena {
    memory: UnsafeCell<[u8; SIZE]>,
    used: AtomicUsize,
    locked: AtomicBool,
}

// SAFETY: `memory` is only allocated in disjoint parts, and `used` is only changed with the lock
// held.
unsafe impl Sync for Arena {}

#[global_allocator]
static ARENA: Arena = Arena {
    memory: UnsafeCell::new([0; SIZE]),
    used: AtomicUsize::new(0),
    locked: AtomicBool::new(false),
};

/// Returns the number of bytes of the arena that are in use.
pub fn used_bytes() -> usize {
    ARENA.used.load(Ordering::Relaxed)
}

impl Arena {
    fn locked<R>(&self, change: impl FnOnce(&Self) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        let result = change(self);
        self.locked.store(false, Ordering::Release);
        result
    }

    /// Returns the offset after a block, if it is the last block.
    fn is_last(&self, block: *mut u8, bytes: usize) -> Option<usize> {
        let start = block.addr() - self.memory.get().addr();
        (start + bytes == self.used.load(Ordering::Relaxed)).then_some(start)
    }
}

// SAFETY: 1. Blocks are disjoint: each starts at or after `used`, which then moves behind it, and
// `used` only moves back over the last block, when that is freed. 2. They have the requested
// alignment, and are within `memory`.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.locked(|arena| {
            let base = arena.memory.get().cast::<u8>();
            let used = arena.used.load(Ordering::Relaxed);
            let start = (base.addr() + used).next_multiple_of(layout.align()) - base.addr();
            let end = start.saturating_add(layout.size());
            if end > SIZE {
                return null_mut();
            }
            arena.used.store(end, Ordering::Relaxed);
            base.wrapping_add(start)
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.locked(|arena| {
            if let Some(start) = arena.is_last(block, layout.size()) {
                arena.used.store(start, Ordering::Relaxed);
            }
        });
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let grown = self.locked(|arena| {
            let start = arena.is_last(block, layout.size())?;
            let end = start.checked_add(new_size).filter(|&end| end <= SIZE)?;
            arena.used.store(end, Ordering::Relaxed);
            Some(block)
        });
        if let Some(block) = grown {
            return block;
        }
        if new_size <= layout.size() {
            return block;
        }
        // SAFETY: `new_size` is above the old one, so it is not 0, and the alignment was valid.
        let new =
            unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks belong to this arena, are disjoint, and have at least the old
            // size.
            unsafe { new.copy_from_nonoverlapping(block, layout.size()) };
        }
        new
    }
}
