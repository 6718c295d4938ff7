//! A `static` for the allocator of a kernel, filled at boot.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::error::InitError;
use crate::fences::{CpuFences, Fences};
use crate::frames::Frames;
use crate::machine::Machine;
use crate::sync::Word;

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

/// A cell for an allocator that does not exist yet: `static FRAMES: FramesCell =
/// FramesCell::new();`
pub struct FramesCell<F: 'static = CpuFences> {
    state: AtomicU8,
    frames: UnsafeCell<MaybeUninit<Frames<'static, F>>>,
}

// SAFETY: 1. `frames` is written only by the one call that moved `state` from EMPTY to FILLING.
// 2. It is read only after `state` was seen as FULL, which is stored after the write and never
//    changes again. 3. The shared value is `&Frames`, and the allocator was moved in once: hence
//    `Send + Sync`.
unsafe impl<F: Send + Sync> Sync for FramesCell<F> {}

impl<F: Fences> FramesCell<F> {
    /// Creates an empty cell.
    #[expect(clippy::new_without_default, reason = "statics need a const constructor")]
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), frames: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Initialises the allocator, once.
    ///
    /// # Errors
    /// As [`Frames::new`] (the cell stays empty), or [`InitError::Again`].
    pub fn init(
        &self,
        machine: Machine<'static>,
        metadata: &'static mut [Word],
        fences: F,
    ) -> Result<&Frames<'static, F>, InitError> {
        self.state
            .compare_exchange(EMPTY, FILLING, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| InitError::Again)?;
        let frames = Frames::new(machine, metadata, fences)
            .inspect_err(|_| self.state.store(EMPTY, Ordering::Release))?;
        // SAFETY: only this call moved `state` to FILLING, so there is no other reader or writer
        // now. From the next line on there are readers: what is returned is shared before that.
        let frames: &Frames<'static, F> = unsafe { (*self.frames.get()).write(frames) };
        // Pairs with the `Acquire` in `get`: a reader that sees FULL also sees the allocator.
        self.state.store(FULL, Ordering::Release);
        Ok(frames)
    }

    /// Returns the allocator, once it is initialised.
    #[inline]
    pub fn get(&self) -> Option<&Frames<'static, F>> {
        if self.state.load(Ordering::Acquire) != FULL {
            return None;
        }
        // SAFETY: `state` is FULL, so `frames` was written, and is never written again.
        Some(unsafe { (*self.frames.get()).assume_init_ref() })
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::ids::{CpuIndex, Frame, NodeIndex};
    use crate::machine::{MemoryRange, RangeState};

    static CELL: FramesCell = FramesCell::new();
    static RANGE: MemoryRange = MemoryRange {
        start: Frame::new(0),
        frames: 64,
        node: NodeIndex(0),
        state: RangeState::Online,
    };

    #[test]
    fn the_first_of_several_threads_fills_the_cell_and_all_see_it_complete() {
        let machine = Machine {
            ranges: core::slice::from_ref(&RANGE),
            zone_limits: &[u64::MAX],
            cpus: &[NodeIndex(0); 4],
            fallback: &[&[NodeIndex(0)]],
        };
        let words = machine.metadata_words().unwrap();
        assert!(CELL.get().is_none());
        let short = CELL.init(machine, &mut [], CpuFences).err();
        assert_eq!(short, Some(InitError::Metadata { words: 0, expected: words }));
        let fill = |cpu| {
            let metadata: Vec<Word> = (0..words).map(|_| Word::new(!0)).collect();
            let mine = CELL.init(machine, metadata.leak(), CpuFences);
            assert!(matches!(mine, Ok(_) | Err(InitError::Again)));
            while CELL.get().is_none() {
                std::thread::yield_now();
            }
            CELL.get().unwrap().alloc_frame(CpuIndex(cpu)).unwrap();
            mine.is_ok()
        };
        let filled = std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|cpu| scope.spawn(move || fill(cpu)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(filled.iter().filter(|&&first| first).count(), 1);
        assert_eq!(CELL.get().unwrap().node_info(NodeIndex(0)).allocated(), 4);
    }
}
