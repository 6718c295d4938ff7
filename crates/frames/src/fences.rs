//! The two halves of the barrier between a cpu at its cache and a cpu that takes the cache back.

#![expect(unsafe_code, reason = "implementing the trait is a promise that the allocator rests on")]

use core::sync::atomic::compiler_fence;

use crate::sync::{Ordering, Word, fence};

/// How a cpu claims its cache, and how its claim (`busy`) is ordered before its next load
/// (`frozen`), so that the cpu which stores `frozen` and then loads `busy` cannot miss it while
/// being missed.
///
/// One side of such a pair needs a full barrier on every operation, unless the other side can
/// impose it from afar: "Laws of Order" (Attiya et al., POPL 2011) shows that nothing cheaper
/// exists for frames which any cpu may take.
///
/// # Safety
/// Both methods do what they say: an allocator whose fences do less may hand a frame out twice.
pub unsafe trait Fences {
    /// Runs on every operation of a cpu on its own cache: sets `busy` and gives whether it was 0.
    /// Of all calls that find it 0 at once, one alone gets `true`.
    fn claim(&self, busy: &Word) -> bool;
    /// Runs before caches are taken back: on return, every other cpu has run a full memory
    /// barrier since the call, or `claim` is one itself.
    fn heavy(&self);
}

/// Full fences on both sides: right everywhere, at some nanoseconds per operation, and whatever
/// cpu a caller names.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuFences;

// SAFETY: 1. The exchange lets one caller alone find 0. 2. It is in the one order of all
// sequentially consistent operations, before the load of `frozen` that follows it and is in that
// order too; so are the exchange of `frozen` and the fence below, after which `busy` is loaded.
// (The model checker knows that order of fences alone.)
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

/// No locked instruction on the own side; the other side interrupts every cpu.
#[derive(Clone, Copy, Debug)]
pub struct RemoteFences(fn());

impl RemoteFences {
    /// Fences of which `barrier` is the far side. It runs only when memory is short, and to
    /// confirm a double free.
    ///
    /// # Safety
    /// 1. `barrier` does not return before every cpu that may be inside a call has run a full
    ///    memory barrier: an interrupt to all cpus that waits for their answers (as for a TLB
    ///    shootdown), or Linux's `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`.
    /// 2. As long as the allocator lives, no two calls that name the same cpu run at once, other
    ///    than one in an interrupt of the other: the cache is claimed by a load and a store.
    pub const unsafe fn new(barrier: fn()) -> Self {
        Self(barrier)
    }
}

// SAFETY: 1. By the second promise of `new` the calls that name a cpu are nested: an inner one
// begins and ends, and so leaves `busy` as it was, before the outer one goes on. 2. By the first,
// every cpu has run a full barrier when `heavy` returns.
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
