//! Memory accesses of instructions, and values forwarded by recent stores.

use super::Pipeline;
use super::flow::Accessor;
use super::stores::{Bytes, Forwarded};
use crate::counters::Kind;

/// Bytes of a line of the families for which the time of stored lines is known.
const LINE_BYTES: u64 = 64;

/// The times at which a core's access could begin, begins, and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time at which the access's instruction is issued.
    pub came_ps: u64,
    /// Time at which the access's address is known and there is room for it.
    pub issue_ps: u64,
    /// Time at which the access is complete.
    pub done_ps: u64,
}

/// An instruction's access to memory.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    /// The instruction, if known.
    pub by: Option<&'static Accessor>,
    /// Number of the instruction.
    pub instruction: u64,
    /// Load or store.
    pub kind: Kind,
    /// The bytes accessed.
    pub bytes: Bytes,
}

impl Act {
    /// Returns what the access gets from earlier stores of a pipeline.
    #[inline]
    pub fn forwarded(&self, pipeline: &Pipeline) -> Forwarded {
        match self.kind {
            Kind::Load => {
                let renames = self.by.is_some_and(|of| of.renames);
                pipeline.forwarded(self.bytes, (self.instruction, renames))
            }
            Kind::Store => Forwarded::default(),
        }
    }
}

impl Pipeline {
    /// Records a store of data that are known at `issue_ps` or later.
    #[inline]
    pub(super) fn stored(&mut self, act: Act, issue_ps: u64) {
        if let Some(accessor) = act.by {
            self.stores(accessor, act.bytes, (issue_ps, act.instruction));
        }
    }

    /// Records the store of the instruction with this number. Instructions after an atomic one wait
    /// until it is in the cache.
    #[inline]
    pub fn stores(&mut self, accessor: &Accessor, bytes: Bytes, (issue_ps, number): (u64, u64)) {
        let ready_ps = match accessor.atomic {
            true => 0,
            false => self.known_ps(&accessor.data).max(issue_ps),
        };
        let line = bytes.address() / LINE_BYTES;
        let is_other = line != self.stored_line;
        if is_other {
            self.stored_line = line;
            let next_ps = self.lined_ps.max(self.begin_ps) + self.line_ps;
            let again_ps = self.sets.again_ps(line, self.queue.next(), self.begin_ps);
            let again_ps = again_ps.map_or(0, |ps| ps.max(self.fills.again_ps(self.begin_ps)));
            self.lined_ps = next_ps.max(again_ps);
        }
        let known = (ready_ps, accessor.renames);
        self.stores.store(bytes, known, (number, core::ptr::from_ref(accessor).addr()));
        // Repeated elements go to the cache a line at a time.
        if is_other || !accessor.repeated {
            self.queue.add();
        }
    }

    /// Records that a load gets a value forwarded at renaming, if it does.
    #[inline]
    pub fn renames(&mut self, forwarded: Forwarded, bytes: Bytes) {
        if forwarded.renamed && self.renamed_ps > 0 && self.stores.passes(bytes) {
            self.stored_ps += self.renamed_ps;
        }
    }

    /// Returns the data that earlier stores forward to a load of these bytes. `by` has the load's
    /// instruction, and true if it may get the value at renaming.
    #[inline]
    pub fn forwarded(&self, bytes: Bytes, by: (u64, bool)) -> Forwarded {
        self.stores.forwarded(bytes, by)
    }
}
