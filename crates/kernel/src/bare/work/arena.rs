//! A thread's arena: pieces of memory wherever a policy puts them, seen in one piece, filled by
//! first touch.

use numalab_frames::{AllocError, CpuFences, CpuIndex, Frames, FreeError, Policy};

use crate::bare::address::{index, pointer};
use crate::bare::memory::Run;
use crate::bare::window::Window;

type Allocator = &'static Frames<'static, CpuFences>;

/// Memory of equal pieces.
pub struct Arena {
    window: Window,
    piece_frames: u64,
}

impl Arena {
    /// `pieces` pieces of `piece_frames` frames (a power of two), each of its lines written once.
    /// `held` counts the frames by node. What was had before an error is given back.
    pub fn fill(
        allocator: Allocator,
        place: usize,
        policy: Policy<'_>,
        (pieces, piece_frames): (u64, u64),
        held: &mut [u64],
    ) -> Result<Self, AllocError> {
        let cpu = super::cpu_index(place);
        let mut arena = Self { window: Window::of(place), piece_frames };
        for _ in 0..pieces {
            let grown = arena.grow(allocator, cpu, policy, held);
            if let Err(error) = grown {
                // Frames that were handed out a moment ago are taken back.
                let _ = arena.free(allocator, cpu);
                return Err(error);
            }
        }
        Ok(arena)
    }

    fn grow(
        &mut self,
        allocator: Allocator,
        cpu: CpuIndex,
        policy: Policy<'_>,
        held: &mut [u64],
    ) -> Result<(), AllocError> {
        let mut piece = Run::new(allocator, cpu, self.piece_frames, policy)?;
        held[usize::from(piece.node().0)] += self.piece_frames;
        for line in piece.lines() {
            line.words_mut()[0] = 1;
        }
        if let Err(error) = self.window.push(allocator, cpu, &piece) {
            let _ = piece.free(allocator, cpu);
            return Err(error);
        }
        Ok(())
    }

    /// Words of 8 bytes.
    pub fn words(&self) -> u64 {
        self.window.mapped_bytes() / 8
    }

    /// The word at an index below [`Arena::words`].
    #[inline(always)]
    pub fn read(&self, index: u64) -> u64 {
        let address = self.window.base() + index * 8;
        let at = pointer::<u64>(address);
        // SAFETY: `index` is below the number of words, all of which are mapped to memory that
        // the arena owns; it is only read while `self` is shared, on the cpu of the window.
        unsafe { at.read_volatile() }
    }

    /// Gives everything back.
    pub fn free(self, allocator: Allocator, cpu: CpuIndex) -> Result<(), FreeError> {
        let bytes = self.piece_frames * 4096;
        for offset in (0..self.window.mapped_bytes()).step_by(index(bytes)) {
            if let Some(address) = self.window.address_of(offset) {
                Run::at(address, self.piece_frames).free(allocator, cpu)?;
            }
        }
        self.window.close(allocator, cpu)
    }
}
