//! Alternative placements of a program's pages and threads.

use numalab_formats::memory_emulator::{Beside, PagePlacement};
use numalab_record::Placed;

use super::EmulatedProgram;

impl EmulatedProgram {
    /// Reports the wait of threads under these placements too.
    pub fn watch_beside(&mut self, placed: impl IntoIterator<Item = Placed>) {
        self.beside = placed.into_iter().map(|placed| emulators(&placed)).collect();
    }
}

/// Converts a placement to the emulator's form.
fn emulators(placed: &Placed) -> Beside {
    match placed {
        Placed::Bound(node) => Beside::Placed(PagePlacement::Bind(vec![*node])),
        Placed::Interleaved(turns) => Beside::Placed(PagePlacement::Interleave(turns.clone())),
        Placed::Huge => Beside::Huge,
        Placed::Packed => Beside::Packed,
        Placed::Users => Beside::Users,
    }
}
