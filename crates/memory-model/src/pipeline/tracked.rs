//! The instructions that a prefetcher tracks: those that missed last.

use alloc::vec::Vec;

/// Number of instructions that are tracked at a time.
pub const INSTRUCTIONS: usize = 32;

/// The state that a prefetcher keeps for each instruction that it tracks.
#[derive(Clone, Debug)]
pub struct Tracked<T> {
    all: Vec<Instruction<T>>,
    /// Number of misses so far.
    misses: u64,
}

#[derive(Clone, Debug)]
struct Instruction<T> {
    /// Identifies the instruction; only compared, because it differs between runs.
    by: usize,
    /// Number, among all misses, of the last one by this instruction.
    used: u64,
    known: T,
}

impl<T> Tracked<T> {
    /// Tracks no instruction yet.
    pub const NONE: Self = Self { all: Vec::new(), misses: 0 };

    /// Returns the number of misses so far.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Returns the number of instructions that are tracked.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the state of an instruction.
    pub fn get(&self, by: usize) -> Option<&T> {
        self.all.iter().find(|of| of.by == by).map(|of| &of.known)
    }

    /// Returns the state of an instruction, for changes.
    pub fn get_mut(&mut self, by: usize) -> Option<&mut T> {
        self.all.iter_mut().find(|of| of.by == by).map(|of| &mut of.known)
    }

    /// Records a miss by an instruction and returns its state; `None` for an instruction that was
    /// not tracked and begins with `new`.
    pub fn add_miss(&mut self, by: usize, new: T) -> Option<&mut T> {
        self.misses += 1;
        let used = self.misses;
        if let Some(at) = self.all.iter().position(|of| of.by == by) {
            self.all[at].used = used;
            return Some(&mut self.all[at].known);
        }
        let new = Instruction { by, used, known: new };
        if self.all.len() < INSTRUCTIONS {
            self.all.push(new);
        } else if let Some(oldest) = self.all.iter_mut().min_by_key(|of| of.used) {
            *oldest = new;
        }
        None
    }
}
