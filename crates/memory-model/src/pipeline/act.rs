//! What an instruction does to memory, and what of it goes through recent stores.

use super::Pipeline;
use super::flow::Accessor;
use super::stores::{Bytes, Forwarded};
use crate::counters::Kind;

/// When an access of a core could begin, does begin, and is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When its instruction has come up.
    pub came_ps: u64,
    /// When its address is known, and there is room for it.
    pub issue_ps: u64,
    /// When it is done.
    pub done_ps: u64,
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    /// Its place in the block, and its number.
    pub position: u32,
    /// As above.
    pub instruction: u64,
    /// Load or store.
    pub kind: Kind,
    /// Where.
    pub bytes: Bytes,
}

impl Act {
    /// What it gets from stores before it, of a pipeline.
    #[inline]
    pub fn forwarded(&self, pipeline: &Pipeline) -> Forwarded {
        match self.kind {
            Kind::Load => {
                let renames = pipeline.accessor(self.position).is_some_and(|of| of.renames);
                pipeline.forwarded(self.bytes, (self.instruction, renames))
            }
            Kind::Store => Forwarded::default(),
        }
    }
}

impl Pipeline {
    /// An instruction stores what is known by then or later.
    #[inline]
    pub(super) fn stored(&mut self, act: Act, issue_ps: u64) {
        if let Some(accessor) = self.accessor(act.position) {
            self.stores(accessor, act.bytes, (issue_ps, act.instruction));
        }
    }

    /// The same for the store of an instruction of this number.
    #[inline]
    pub fn stores(&mut self, accessor: &Accessor, bytes: Bytes, (issue_ps, number): (u64, u64)) {
        let ready_ps = self.known_ps(&accessor.data);
        let known = (ready_ps.max(issue_ps), accessor.renames);
        self.stores.store(bytes, known, number);
    }

    /// Returns what a load of these bytes by the instruction of a number gets from stores before it,
    /// which may get it when it is renamed.
    #[inline]
    pub fn forwarded(&self, bytes: Bytes, by: (u64, bool)) -> Forwarded {
        self.stores.forwarded(bytes, by)
    }
}
