//! A thread's arena: pieces of memory on the nodes that a policy chooses, mapped contiguously and
//! filled by first touch.

use numalab_frames::{AllocError, CpuFences, CpuIndex, Frames, FreeError, Policy};
use numalab_membench::touch;

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
    /// Allocates `pieces` pieces of `piece_frames` frames (a power of two) and writes each of its
    /// lines once. `held` counts the frames by node. On an error the memory allocated so far is
    /// freed.
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
                // Frames that were allocated a moment ago can be freed.
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
        touch(piece.lines(), 1);
        if let Err(error) = self.window.push(allocator, cpu, &piece) {
            let _ = piece.free(allocator, cpu);
            return Err(error);
        }
        Ok(())
    }

    /// Returns its words of 8 bytes.
    pub fn words(&self) -> &[u64] {
        let start = pointer::<u64>(self.window.base());
        let words = index(self.window.mapped_bytes() / 8);
        // SAFETY: 1. All of the window up to there is mapped to memory that the arena owns and that
        // is initialised, as ordinary memory always is. 2. It is only read while `self` is
        // borrowed, and only on the cpu of the window.
        unsafe { core::slice::from_raw_parts(start, words) }
    }

    /// Frees everything.
    pub fn free(self, allocator: Allocator, cpu: CpuIndex) -> Result<(), FreeError> {
        let bytes = self.piece_frames * 4096;
        for offset in (0..self.window.mapped_bytes()).step_by(index(bytes)) {
            if let Some(address) = self.window.address_of(offset) {
                // SAFETY: `grow` mapped pieces of that size there, and kept nothing else of them;
                // `self` is consumed by this call, and with it every view of its words.
                unsafe { Run::from_address(address, self.piece_frames) }.free(allocator, cpu)?;
            }
        }
        self.window.close(allocator, cpu)
    }
}
