//! A start line: threads leave together, without a system call.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A spinning barrier for a fixed number of parties, reusable for any number of rounds.
///
/// Meant for one party per cpu: a waiting party keeps its cpu busy.
#[derive(Debug)]
#[repr(align(128))]
pub struct Barrier {
    parties: u32,
    arrived: AtomicU32,
    /// Counts finished rounds. A round is released by a change of this count, not by a flag's
    /// value, so that a fast party may enter the next round while a slow one is still leaving this
    /// one.
    round: AtomicU32,
    aborted: AtomicBool,
}

impl Barrier {
    /// Creates a barrier that opens each time `parties` of them wait at it; 0 counts as 1.
    pub const fn new(parties: u32) -> Barrier {
        Barrier {
            parties: if parties == 0 { 1 } else { parties },
            arrived: AtomicU32::new(0),
            round: AtomicU32::new(0),
            aborted: AtomicBool::new(false),
        }
    }

    /// Waits, spinning, until all parties have arrived.
    ///
    /// Writes of a party before it waited are visible to all parties afterwards.
    ///
    /// # Errors
    /// [`Aborted`] if any party has called [`Barrier::abort`], before or meanwhile.
    pub fn wait(&self) -> Result<(), Aborted> {
        // Read before arriving: after our arrival the round may end at any moment.
        let round = self.round.load(Ordering::Relaxed);
        // AcqRel: pairs with the other arrivals, so that the last party to arrive has seen the
        // writes of all others, and passes them on by the Release below.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
        }
        // Acquire: pairs with the Release store above.
        while self.round.load(Ordering::Acquire) == round {
            if self.is_aborted() {
                return Err(Aborted);
            }
            spin_loop();
        }
        if self.is_aborted() { Err(Aborted) } else { Ok(()) }
    }

    /// Releases all present and future waiters with [`Aborted`].
    pub fn abort(&self) {
        // Release: pairs with the Acquire in `is_aborted`.
        self.aborted.store(true, Ordering::Release);
    }

    /// Returns true if a party has given up.
    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }
}

/// Another party gave up, so the barrier will never open again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another thread at the start barrier aborted")]
pub struct Aborted;
