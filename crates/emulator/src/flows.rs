//! Flows of translated blocks, kept for as long as QEMU may run them: for good.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use numalab_memory_model::pipeline::flow::Flow;
use numalab_memory_model::pipeline::x86;

/// Each flow once, whatever blocks have it.
#[derive(Debug, Default)]
pub struct Flows(Mutex<HashSet<&'static Flow>>);

impl Flows {
    /// Where flows are needed and can be read from code: for a machine whose misses overlap, and
    /// a guest of x86.
    pub fn of(needed: bool, target: &str) -> Option<Self> {
        (needed && matches!(target, "x86_64" | "i386")).then(Self::default)
    }

    /// The flow through a block of these instructions.
    pub fn through<'a>(&self, block: impl Iterator<Item = &'a [u8]>) -> &'static Flow {
        let flow = Flow::new(block.map(x86::decode));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn blocks_that_do_the_same_have_one_flow() {
        let flows = Flows::of(true, "x86_64").unwrap();
        // mov (%rax),%rax; twice, with a displacement
        let blocks: [&[u8]; 3] = [&[0x48, 0x8b, 0x00], &[0x48, 0x8b, 0x40, 8], &[0x48, 0x8b, 0x01]];
        let [one, same, other] = blocks.map(|block| flows.through([block].into_iter()));
        assert!(std::ptr::eq(one, same) && !std::ptr::eq(one, other));
        assert!(Flows::of(true, "aarch64").is_none() && Flows::of(false, "x86_64").is_none());
    }
}
