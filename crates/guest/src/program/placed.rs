//! A program's pages and threads placed otherwise than it does itself.

use numalab_formats::memory_emulator::{Beside, PagePlacement, Policy};
use numalab_record::Placed;

use super::EmulatedProgram;

impl EmulatedProgram {
    /// Places pages without a policy of the program, and threads where the placement says so.
    pub fn place(&mut self, placed: &Placed) {
        let machine = &self.machine;
        match emulators(placed) {
            Beside::Huge => self.huge_always = true,
            Beside::Packed => self.threads.sort_by_key(|cpu| machine.cpus[*cpu]),
            Beside::Users => self.policy = Some(Policy::Users),
            Beside::Placed(placement) => self.policy = Some(Policy::Stay(placement)),
        }
        if let Placed::Bound(node) = placed {
            let all = 0..machine.cpus.len();
            self.threads = all.filter(|cpu| machine.cpus[*cpu] == *node).collect();
        }
    }

    /// Reports the wait of threads under these placements too.
    pub fn watch_beside(&mut self, placed: impl IntoIterator<Item = Placed>) {
        self.beside = placed.into_iter().map(|placed| emulators(&placed)).collect();
    }
}

/// Returns a placement as the emulator has it.
fn emulators(placed: &Placed) -> Beside {
    match placed {
        Placed::Bound(node) => Beside::Placed(PagePlacement::Bind(vec![*node])),
        Placed::Interleaved(turns) => Beside::Placed(PagePlacement::Interleave(turns.clone())),
        Placed::Huge => Beside::Huge,
        Placed::Packed => Beside::Packed,
        Placed::Users => Beside::Users,
    }
}
