//! The last resort: taking all caches back before a request is refused for lack of memory.

use crate::alloc::Attempt;
use crate::error::AllocError;
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::CpuIndex;
use crate::slot::Slot;
use crate::sync::{Ordering, Word, spin_loop};

/// A guard: while it exists, no cpu uses its cache or enters it, and all use the shared maps.
pub(crate) struct Freeze<'m>(&'m Word);

impl Drop for Freeze<'_> {
    fn drop(&mut self) {
        // Pairs with the `Acquire` in `Frames::enter`: a cpu that enters sees the changes.
        self.0.store(0, Ordering::Release);
    }
}

impl<'m, F: Fences> Frames<'m, F> {
    /// Stops all use of caches; `None` if this call interrupted one that is using its cache, is
    /// moving a block, or holds the freeze: waiting for it would never end.
    pub(crate) fn freeze(&self, cpu: CpuIndex) -> Option<Freeze<'m>> {
        let slot = self.slot(cpu)?;
        if slot.busy().load(Ordering::Relaxed) != 0 || slot.moves().seen().is_none() {
            return None;
        }
        let mine = u64::from(cpu.0) + 1;
        while let Err(holder) =
            self.frozen.compare_exchange(0, mine, Ordering::SeqCst, Ordering::Relaxed)
        {
            if holder == mine {
                return None;
            }
            spin_loop();
        }
        let freeze = Freeze(self.frozen);
        self.fences.heavy();
        for slot in self.slots {
            // Acquire: pairs with the `Release` with which a cpu leaves its cache.
            while Slot(slot).busy().load(Ordering::Acquire) != 0 {
                spin_loop();
            }
        }
        Some(freeze)
    }

    /// Serves a request from all free memory, including other cpus' caches.
    #[cold]
    pub(crate) fn last_resort(
        &self,
        attempt: &Attempt<'_, 'm>,
    ) -> Result<(usize, u64), AllocError> {
        let _freeze = self.freeze(attempt.cpu).ok_or(attempt.exhausted(true))?;
        self.drain();
        let before = self.moves_seen(self.slots);
        if let Some(found) = self.take_of_everything(attempt) {
            return Ok(found);
        }
        // Nothing moved between two lists while they were read, so nothing was overlooked.
        if self.moves_seen(self.slots) == before {
            return Err(attempt.exhausted(false));
        }
        // On a busy machine this may never happen. One pass that bypasses the lists then decides:
        // it reads the blocks themselves, and waits only for the moves that hide frames of the
        // block at hand.
        let (earlier, later) = self.slots.split_at(attempt.cpu.at());
        let others = || {
            let earlier = self.moves_seen(earlier);
            earlier.wrapping_add(self.moves_seen(&later[1..]))
        };
        self.take_patiently(attempt, &others).ok_or(attempt.exhausted(false))
    }

    /// Puts all caches back into the shared maps; the caller holds the freeze.
    pub(crate) fn drain(&self) {
        for slot in self.slots {
            self.empty_magazine(Slot(slot));
            self.empty_whole(Slot(slot));
        }
    }

    /// Returns the sum of all moves of some cpus so far, reading each cpu once no move is in
    /// progress on it.
    fn moves_seen(&self, slots: &[[Word; 32]]) -> u64 {
        slots.iter().fold(0, |sum, slot| {
            let seen = loop {
                match Slot(slot).moves().seen() {
                    Some(moves) => break moves,
                    None => spin_loop(),
                }
            };
            sum.wrapping_add(seen)
        })
    }
}
