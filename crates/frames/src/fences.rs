//! The two halves of the barrier between a cpu at its cache and a cpu that takes the cache back.

use core::sync::atomic::compiler_fence;

use crate::sync::{Ordering, fence};

/// How a cpu's store (`busy`) is ordered before its next load (`frozen`), so that the cpu which
/// stores `frozen` and then loads `busy` cannot miss it while being missed.
///
/// One side of such a pair needs a full barrier on every operation, unless the other side can
/// impose it from afar: "Laws of Order" (Attiya et al., POPL 2011) shows that nothing cheaper
/// exists for frames which any cpu may take.
pub trait Fences {
    /// Runs on every operation of a cpu on its own cache.
    fn light(&self);
    /// Runs before caches are taken back: on return, every other cpu has run a full memory
    /// barrier since the call, or `light` is one itself.
    fn heavy(&self);
}

/// Full fences on both sides: right everywhere, at some nanoseconds per operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuFences;

impl Fences for CpuFences {
    #[inline(always)]
    fn light(&self) {
        fence(Ordering::SeqCst);
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
    }
}

/// No instruction on the own side; the other side interrupts every cpu.
///
/// The function must not return before every cpu that may be inside a call has run a full memory
/// barrier: an interrupt to all cpus that waits for their answers (as for a TLB shootdown), or
/// Linux's `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`. It runs only when memory is short.
/// If it does less, a frame may be handed out twice.
#[derive(Clone, Copy, Debug)]
pub struct RemoteFences(pub fn());

impl Fences for RemoteFences {
    #[inline(always)]
    fn light(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
        (self.0)();
    }
}
