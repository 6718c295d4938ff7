//! Data flows of translated blocks. They are never freed, as QEMU may run a block at any time.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::program::{Block, Kept};
use crate::target::Target;
use numalab_memory_model::machine::Core;
use numalab_memory_model::pipeline::flow::Flow;
use numalab_memory_model::pipeline::operands::Operands;
use numalab_memory_model::pipeline::speeds::Speeds;

/// Stores each flow once, however many blocks share it.
#[derive(Debug)]
pub struct Flows {
    decode: fn(&[u8]) -> Operands,
    speeds: Speeds,
    known: Mutex<HashSet<&'static Flow>>,
    /// Flows of blocks in system emulation.
    pub blocks: Kept<Block>,
}

impl Flows {
    /// Returns a store if cores are modelled and this guest's instructions can be decoded; `None`
    /// otherwise.
    pub fn of(core: Option<&Core>, target: Option<&Target>) -> Option<Self> {
        let (speeds, decode) = (Speeds::of(core?), target?.operands);
        Some(Self { decode, speeds, known: Mutex::default(), blocks: Kept::default() })
    }

    /// Returns the data flow through a block of these instructions, at addresses from the first up
    /// to, but not including, the second.
    pub fn through<'a>(
        &self,
        block: impl Iterator<Item = &'a [u8]>,
        addresses: (u64, u64),
    ) -> &'static Flow {
        let flow = Flow::at(block.map(self.decode), addresses, &self.speeds);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&flow) {
            return known;
        }
        let flow = Box::leak(Box::new(flow));
        known.insert(flow);
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_equal_effects_share_a_flow() {
        let flows = Flows::of(Some(&Core::TYPICAL), Target::of("x86_64")).unwrap();
        // mov (%rax),%rax; then twice with a displacement.
        let blocks: [&[u8]; 3] = [&[0x48, 0x8b, 0x00], &[0x48, 0x8b, 0x40, 8], &[0x48, 0x8b, 0x01]];
        let [one, same, other] = blocks.map(|block| flows.through([block].into_iter(), (0, 4)));
        assert!(std::ptr::eq(one, same) && !std::ptr::eq(one, other));
        assert!(Flows::of(Some(&Core::TYPICAL), Target::of("riscv64")).is_none());
        assert!(Flows::of(None, Target::of("x86_64")).is_none());
    }
}
