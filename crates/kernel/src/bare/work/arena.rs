//! A thread's arena: pieces of memory in a table, filled by first touch, read by index.

use numalab_frames::{AllocError, CpuFences, CpuIndex, Frames, FreeError, Policy};
use numalab_membench::Line;

use crate::bare::memory::Run;

type Allocator = &'static Frames<'static, CpuFences>;

/// Memory of equal pieces wherever the policy puts them.
pub struct Arena {
    /// The addresses of the pieces, in memory of the cpu's own node.
    table: Run,
    pieces: u64,
    piece_frames: u64,
}

impl Arena {
    /// `pieces` pieces of an order's frames, each of its lines written once. `held` counts the
    /// frames by node. What was had before an error is given back.
    pub fn fill(
        allocator: Allocator,
        cpu: CpuIndex,
        policy: Policy<'_>,
        (pieces, piece_frames): (u64, u64),
        held: &mut [u64],
    ) -> Result<Self, AllocError> {
        let table = Run::new(allocator, cpu, (pieces * 8).div_ceil(4096), Policy::Local)?;
        let mut arena = Self { table, pieces: 0, piece_frames };
        for place in 0..pieces {
            let piece = Run::new(allocator, cpu, piece_frames, policy);
            let mut piece = match piece {
                Ok(piece) => piece,
                Err(error) => {
                    // Frames that were handed out a moment ago are taken back.
                    let _ = arena.free(allocator, cpu);
                    return Err(error);
                }
            };
            held[usize::from(piece.node().0)] += piece_frames;
            for line in piece.lines() {
                line.words_mut()[0] = place;
            }
            arena.set(place, piece);
        }
        Ok(arena)
    }

    /// Words of 8 bytes.
    pub fn words(&self) -> u64 {
        self.pieces * self.piece_frames * 512
    }

    /// The word at an index below [`Arena::words`].
    #[inline(always)]
    pub fn read(&self, index: u64) -> u64 {
        let words = self.piece_frames * 512;
        // The number of words in a piece is a power of two.
        let (piece, word) = (index >> words.trailing_zeros(), index & (words - 1));
        let address = self.piece(piece) + word * 8;
        let at = core::ptr::with_exposed_provenance::<u64>(address as usize);
        // SAFETY: within a piece that the arena owns, and only reads while `self` is shared.
        unsafe { at.read_volatile() }
    }

    /// Gives everything back.
    pub fn free(mut self, allocator: Allocator, cpu: CpuIndex) -> Result<(), FreeError> {
        let frames = self.piece_frames;
        for place in 0..self.pieces {
            Run::at(self.piece(place), frames).free(allocator, cpu)?;
        }
        self.pieces = 0;
        self.table.free(allocator, cpu)
    }

    /// The address of a piece.
    #[inline(always)]
    fn piece(&self, place: u64) -> u64 {
        self.table.word(place)
    }

    fn set(&mut self, place: u64, piece: Run) {
        let lines: &mut [Line] = self.table.lines();
        let (line, word) = ((place / 8) as usize, (place % 8) as usize);
        lines[line].words_mut()[word] = piece.address();
        self.pieces += 1;
    }
}
