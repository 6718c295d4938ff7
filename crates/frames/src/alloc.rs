//! Allocation: from the cpu's cache, then from the shared maps pool by pool, then from all caches.

use crate::error::AllocError;
use crate::fences::Fences;
use crate::frames::Frames;
use crate::ids::{BLOCK_FRAMES, CpuIndex, Frame};
use crate::policy::{Request, Walk};
use crate::runs::RunRequest;
use crate::slot::Slot;

/// The part of a pool that is below a request's highest address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    Below(u64),
    None,
}

pub(crate) struct Attempt<'a, 'm> {
    pub(crate) cpu: CpuIndex,
    pub(crate) slot: Slot<'m>,
    pub(crate) wanted: RunRequest,
    below: u64,
    refills: bool,
    pub(crate) walk: &'a Walk<'a>,
}

impl<'m, F: Fences> Frames<'m, F> {
    /// Allocates one frame of the cpu's nearest memory: [`Frames::alloc`] of [`Request::FRAME`].
    ///
    /// # Errors
    /// As [`Frames::alloc`].
    #[inline(always)]
    pub fn alloc_frame(&self, cpu: CpuIndex) -> Result<Frame, AllocError> {
        self.alloc_one(cpu, &Request::FRAME)
    }

    /// Allocates one frame of the cpu's nearest memory, which the request asks for.
    #[inline(always)]
    fn alloc_one(&self, cpu: CpuIndex, request: &Request<'_>) -> Result<Frame, AllocError> {
        let Some(slot) = self.slot(cpu) else {
            return Err(self.unknown_cpu(cpu));
        };
        if let Some(_busy) = self.enter(slot)
            && let Some(frame) = slot.pop_home(self.shared.rows)
        {
            self.tag(frame, request);
            return Ok(Frame::new(frame));
        }
        self.alloc_uncached(cpu, slot, request)
    }

    /// Allocates a run and returns its first frame. It succeeds if an eligible run is free during
    /// the whole call, even in other cpus' caches.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`] if there is none, [`AllocError::ExhaustedNested`] if the call
    /// interrupted another and there is none outside the caches; the other errors describe invalid
    /// requests.
    #[inline(always)]
    pub fn alloc(&self, cpu: CpuIndex, request: &Request<'_>) -> Result<Frame, AllocError> {
        match request.nearest() {
            Some(RunRequest { frames: 1, align: 1 }) => self.alloc_one(cpu, request),
            _ => self.alloc_run(cpu, request),
        }
    }

    #[inline(never)]
    fn alloc_run(&self, cpu: CpuIndex, request: &Request<'_>) -> Result<Frame, AllocError> {
        let slot = self.slot(cpu).ok_or_else(|| self.unknown_cpu(cpu))?;
        match self.alloc_cached_whole(slot, request) {
            Some(frame) => Ok(frame),
            None => self.alloc_uncached(cpu, slot, request),
        }
    }

    #[inline(never)]
    fn alloc_uncached(
        &self,
        cpu: CpuIndex,
        slot: Slot<'m>,
        request: &Request<'_>,
    ) -> Result<Frame, AllocError> {
        request.check(&self.machine)?;
        let home = self.machine.cpus[cpu.at()];
        let walk = request.walk(&self.machine, home, || slot.next_turn())?;
        let attempt = Attempt {
            cpu,
            slot,
            wanted: request.wanted(),
            below: request.below / crate::FRAME_BYTES,
            refills: request.refills(),
            walk: &walk,
        };
        let (pool, frame) = match self.attempt(&attempt) {
            Some(found) => found,
            None => self.last_resort(&attempt).inspect_err(|_| slot.note_refused())?,
        };
        let local = pool / self.machine.zone_limits.len() == home.at();
        slot.note_allocated(local, request.frames);
        self.tag(frame, request);
        Ok(Frame::new(frame))
    }

    /// Allocates the cpu's cached block of 2 MiB, if the request asks for one of the nearest memory.
    fn alloc_cached_whole(&self, slot: Slot<'m>, request: &Request<'_>) -> Option<Frame> {
        let RunRequest { frames: BLOCK_FRAMES, align: ..=BLOCK_FRAMES } = request.nearest()? else {
            return None;
        };
        let _busy = self.enter(slot)?;
        let block = self.take_cached_whole(slot, slot.home())?;
        slot.note_hits(BLOCK_FRAMES);
        self.tag(block, request);
        Some(Frame::new(block))
    }

    /// Serves a request without disturbing other cpus' caches.
    fn attempt(&self, attempt: &Attempt<'_, 'm>) -> Option<(usize, u64)> {
        let busy = self.enter(attempt.slot);
        // Claims that are undone later hide frames for a moment. A freeze waits for cpus that are
        // using their caches; a cpu that cannot enter its cache announces the claims to the holder
        // of the freeze.
        let _moving = busy.is_none().then(|| attempt.slot.moves().begin());
        attempt.walk.clone().find_map(|(pool, zone)| {
            let found = match self.reach(attempt, zone) {
                Reach::None => None,
                Reach::Below(below) => self.take_below(attempt, pool, below),
                Reach::All => self.take_of_pool(attempt, pool, busy.is_some()),
            };
            found.map(|frame| (pool, frame))
        })
    }

    fn take_of_pool(&self, attempt: &Attempt<'_, 'm>, pool: usize, cached: bool) -> Option<u64> {
        let Attempt { slot, wanted, .. } = *attempt;
        let moves = slot.moves();
        let found = match wanted {
            RunRequest { frames: 1, align: 1 } => {
                if cached && let Some(frame) = self.take_cached(attempt, pool) {
                    return Some(frame);
                }
                return self.shared.take_one(pool, attempt.cpu, moves);
            }
            RunRequest { frames: BLOCK_FRAMES, align: ..=BLOCK_FRAMES } => {
                if cached && let Some(frame) = self.take_cached_whole(slot, pool) {
                    return Some(frame);
                }
                self.shared
                    .take_block(pool, attempt.cpu)
                    .or_else(|| self.shared.take_blocks(pool, wanted, moves))
            }
            RunRequest { frames: ..BLOCK_FRAMES, align: ..=BLOCK_FRAMES } => {
                if cached && let Some(frame) = self.take_cached_run(slot, pool, wanted) {
                    return Some(frame);
                }
                self.shared.take_run(pool, attempt.cpu, wanted, moves)
            }
            _ => self.shared.take_blocks(pool, wanted, moves),
        };
        found.or_else(|| {
            // A run that may cross the ends of blocks: nearest first applies to it too.
            let crosses = wanted.may_cross_blocks();
            crosses.then(|| self.take_below(attempt, pool, u64::MAX)).flatten()
        })
    }

    /// Serves a request from all free memory; the caches are empty and frozen.
    pub(crate) fn take_of_everything(&self, attempt: &Attempt<'_, 'm>) -> Option<(usize, u64)> {
        attempt.walk.clone().find_map(|(pool, zone)| {
            let found = match self.reach(attempt, zone) {
                Reach::None => None,
                Reach::Below(below) => self.take_below(attempt, pool, below),
                Reach::All if attempt.wanted.frames == 1 && attempt.wanted.align == 1 => {
                    self.shared.take_one_of_every(pool, attempt.slot.moves())
                }
                Reach::All => self
                    .take_of_pool(attempt, pool, false)
                    .or_else(|| self.take_below(attempt, pool, u64::MAX)),
            };
            found.map(|frame| (pool, frame))
        })
    }

    /// Serves a request like [`Frames::take_of_everything`], but bypasses the lists; see
    /// [`crate::shared::Shared::take_one_patiently`].
    pub(crate) fn take_patiently(
        &self,
        attempt: &Attempt<'_, 'm>,
        moves_seen: &impl Fn() -> u64,
    ) -> Option<(usize, u64)> {
        let (wanted, moves) = (attempt.wanted, attempt.slot.moves());
        attempt.walk.clone().find_map(|(pool, zone)| {
            let below = match self.reach(attempt, zone) {
                Reach::None => return None,
                Reach::All if wanted.frames == 1 && wanted.align == 1 => {
                    let found = self.shared.take_one_patiently(pool, moves, moves_seen);
                    return found.map(|frame| (pool, frame));
                }
                Reach::All => u64::MAX,
                Reach::Below(below) => below,
            };
            self.shared
                .take_patiently(pool, below, wanted, moves, moves_seen)
                .map(|frame| (pool, frame))
        })
    }

    fn take_below(&self, attempt: &Attempt<'_, 'm>, pool: usize, below: u64) -> Option<u64> {
        self.shared.take_anywhere(pool, below, attempt.wanted, attempt.slot.moves())
    }

    fn reach(&self, attempt: &Attempt<'_, 'm>, zone: usize) -> Reach {
        let start = zone.checked_sub(1).map_or(0, |lower| self.machine.zone_end(lower));
        if attempt.below >= self.machine.zone_end(zone) {
            Reach::All
        } else if attempt.below <= start {
            Reach::None
        } else {
            Reach::Below(attempt.below)
        }
    }

    /// Takes a frame from the cpu's magazine, which is refilled if the request allows it and the
    /// pool has frames.
    fn take_cached(&self, attempt: &Attempt<'_, 'm>, pool: usize) -> Option<u64> {
        let slot = attempt.slot;
        let here = slot.pool() == Some(pool);
        if here && let Some(frame) = slot.pop(self.shared.rows) {
            return Some(frame);
        }
        if (here && self.refill_from_reserved(slot, pool))
            || (attempt.refills && self.refill(attempt.cpu, slot, pool))
        {
            return slot.pop(self.shared.rows);
        }
        None
    }

    #[cold]
    pub(crate) fn unknown_cpu(&self, cpu: CpuIndex) -> AllocError {
        AllocError::UnknownCpu { cpu, cpus: self.slots.len() }
    }

    /// Records the owner of the frames (`checked` builds).
    #[inline(always)]
    fn tag(&self, frame: u64, request: &Request<'_>) {
        self.tags.hand_out(&self.shared, frame, request.frames, request.owner);
    }
}

impl Attempt<'_, '_> {
    pub(crate) const fn exhausted(&self, nested: bool) -> AllocError {
        let frames = self.wanted.frames;
        if nested {
            AllocError::ExhaustedNested { frames }
        } else {
            AllocError::Exhausted { frames }
        }
    }
}
