//! A thread's arena: pieces of memory on the nodes that a policy chooses, mapped contiguously and
//! filled by first touch.

use numalab_frames::{AllocError, Policy};
use numalab_membench::touch;

use crate::bare::memory::{Memory, Run};
use crate::bare::window::Window;

/// Allocates `pieces` pieces of `piece_frames` frames (a power of two) and writes each of their
/// lines once. `held` counts the frames by node. On an error the memory allocated so far is freed.
pub fn fill(
    memory: Memory,
    place: usize,
    policy: Policy<'_>,
    (pieces, piece_frames): (u64, u64),
    held: &mut [u64],
) -> Result<Window, AllocError> {
    let cpu = super::cpu_index(place);
    let mut arena = Window::of(place, piece_frames);
    for _ in 0..pieces {
        let piece = Run::new(memory, cpu, piece_frames, policy);
        let grown = piece.and_then(|mut piece| {
            held[usize::from(piece.node().0)] += piece_frames;
            touch(piece.lines(), 1);
            arena.push(memory, cpu, piece)
        });
        if let Err(error) = grown {
            // Frames that were allocated a moment ago can be freed.
            let _ = arena.close(memory, cpu);
            return Err(error);
        }
    }
    Ok(arena)
}
