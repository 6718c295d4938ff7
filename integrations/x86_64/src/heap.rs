//! Memory for what is made before there are frames: allocated from the front, never freed.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 1 << 20;

#[repr(align(4096))]
struct Heap {
    memory: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

// SAFETY: only disjoint parts of `memory` are returned, which `used` counts.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { memory: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) };

// SAFETY: a block begins at or after `used`, which is then moved to its end, so blocks are
// disjoint; they are aligned as requested and within `memory`.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Memory is aligned to 4 KiB, and nothing here needs more.
        let next = |used: usize| {
            let end = used.next_multiple_of(layout.align()).checked_add(layout.size())?;
            (end <= BYTES && layout.align() <= 4096).then_some(end)
        };
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(used) => {
                self.memory.get().cast::<u8>().wrapping_add(used.next_multiple_of(layout.align()))
            }
            Err(_) => null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
