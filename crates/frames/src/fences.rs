//! The two halves of the barrier between a cpu that uses its cache and a cpu that takes the cache
//! back.

#![expect(unsafe_code, reason = "implementing the trait is a promise that the allocator relies on")]

use core::sync::atomic::compiler_fence;

use crate::sync::{Ordering, Word, fence};

/// The claim of a cpu on its cache (`busy`), and its order before the cpu's next load (`frozen`).
/// The order ensures that a cpu that stores `frozen` and then loads `busy` sees the claim, or the
/// claiming cpu sees `frozen`.
///
/// One side of such a pair needs a full barrier on every operation, unless the other side can
/// impose it from afar: "Laws of Order" (Attiya et al., POPL 2011) shows that nothing cheaper
/// exists for frames that any cpu may take.
///
/// # Safety
/// Both methods do what they document: an allocator with weaker fences may return a frame twice.
pub unsafe trait Fences {
    /// Sets `busy` and returns true if it was clear, on every operation of a cpu on its own cache.
    /// Of all simultaneous calls that find it clear, exactly one returns true.
    fn claim(&self, busy: &Word) -> bool;
    /// Runs before caches are taken back. On return, every other cpu has run a full memory barrier
    /// since the call, unless `claim` itself is a full barrier.
    fn heavy(&self);
}

/// Full fences on both sides: correct in all cases, even if callers name the wrong cpu, at a cost
/// of some nanoseconds per operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuFences;

// SAFETY: 1. The exchange lets exactly one caller find 0. 2. It is in the single total order of all
// sequentially consistent operations, before the load of `frozen` that follows it and is also in
// that order; so are the exchange of `frozen` and the fence below, after which `busy` is loaded.
// (The model checker implements that order only for fences.)
unsafe impl Fences for CpuFences {
    #[inline(always)]
    fn claim(&self, busy: &Word) -> bool {
        let claimed = busy.swap(1, Ordering::SeqCst) == 0;
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        claimed
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
    }
}

/// Fences without a locked instruction on the owning cpu; the other side interrupts every cpu.
#[derive(Clone, Copy, Debug)]
pub struct RemoteFences(fn());

impl RemoteFences {
    /// Creates fences with `barrier` as the far side. It is called only when memory is short, and
    /// to confirm a double free.
    ///
    /// # Safety
    /// 1. `barrier` does not return before every cpu that may be inside a call has run a full
    ///    memory barrier: an interrupt to all cpus that waits for their answers (as for a TLB
    ///    shootdown), or Linux's `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`.
    /// 2. As long as the allocator exists, no two calls that name the same cpu run at once, except
    ///    one in an interrupt of the other: the cache is claimed by a load and a store.
    pub const unsafe fn new(barrier: fn()) -> Self {
        Self(barrier)
    }
}

// SAFETY: 1. By the second promise of `new` the calls that name a cpu are nested: an inner one
// begins and ends, and so leaves `busy` unchanged, before the outer one continues. 2. By the first
// promise, every cpu has run a full barrier when `heavy` returns.
unsafe impl Fences for RemoteFences {
    #[inline(always)]
    fn claim(&self, busy: &Word) -> bool {
        if busy.load(Ordering::Relaxed) != 0 {
            return false;
        }
        busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
        (self.0)();
    }
}
