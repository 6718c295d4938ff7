//! Alternative placements of a program's pages and threads.

use numalab_formats::memory_emulator::{Alternative, PagePlacement};
use numalab_record::Placed;

use super::EmulatedProgram;

impl EmulatedProgram {
    /// Adds placements under which the wait of threads is reported as well.
    pub fn watch_alternatives(&mut self, placed: impl IntoIterator<Item = Placed>) {
        self.alternatives = placed.into_iter().map(|placed| emulators(&placed)).collect();
    }
}

/// Converts a placement to the emulator's form.
fn emulators(placed: &Placed) -> Alternative {
    match placed {
        Placed::Bound(node) => Alternative::Placed(PagePlacement::Bind(vec![*node])),
        Placed::Interleaved(turns) => Alternative::Placed(PagePlacement::Interleave(turns.clone())),
        Placed::Huge => Alternative::Huge,
        Placed::Packed => Alternative::Packed,
        Placed::Users => Alternative::Users,
    }
}
