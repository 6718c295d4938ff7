//! Accesses of a thread in stretches that are not simulated in detail: caches, TLBs and owners of
//! lines follow each of them, while blocks take their mean time ([`crate::stretches`]).

use super::{Access, Active, Place};
use crate::counters::Kind;
use crate::elsewhere::{Shadow, There};
use crate::outcome::{Known, Outcome};
use crate::pipeline::flow::{Accessor, Flow};

impl Active<'_> {
    /// Begins the thread's next stretch. If it is simulated in detail, the core begins with nothing
    /// in flight, and so do alternative cores.
    pub fn next_stretch(&mut self, shadow: &mut Shadow) {
        let weight = shadow.stretches.weight();
        shadow.stretches.begins_next();
        match &mut self.state.pipeline {
            Some(pipeline) if shadow.stretches.is_followed() => _ = pipeline.drain(),
            _ => self.state.forget_block(),
        }
        shadow.begins_stretch(weight, self.state.pipeline.as_ref());
    }

    /// Trains the branch predictor by the branch to the block at this place, with this flow.
    #[inline]
    pub fn learns(&mut self, place: Place, flow: Option<&'static Flow>) {
        self.state.learns(place, flow);
    }

    /// Passes over blocks that take this time.
    #[inline]
    pub fn passes(&mut self, instructions: u64, takes_ps: u64) {
        self.time_ps.add(takes_ps);
        self.state.begin_block(instructions, takes_ps);
    }

    /// Accesses an address of a known line, like [`Self::again`]; returns false if the fast path does
    /// not apply.
    #[inline]
    pub fn passes_again(&mut self, known: &Known, address: u64, kind: Kind) -> bool {
        let (line, by) =
            (address >> self.memory.engine.line_shift, (self.memory.who(), self.time_ps.get()));
        if kind == Kind::Store && !self.memory.engine.stores_again(known, line, by) {
            return false;
        }
        self.state.look(address, kind);
        true
    }

    /// Accesses memory of the node at a position, by this instruction, without simulating it in
    /// detail.
    pub fn passes_access(
        &mut self,
        target: usize,
        access: Access,
        accessor: Option<&Accessor>,
        shadow: Option<(&mut Shadow, &[There])>,
    ) -> Outcome {
        self.memory.figures.nodes[target].accesses[access.kind as usize].add(1);
        if let Some((shadow, elsewhere)) = shadow {
            shadow.translate(access.virtual_address, access.address, elsewhere);
        }
        let past = accessor.map_or(0, |accessor| accessor.past_caches(access.kind));
        self.served_alone(access, target, past).0
    }
}
