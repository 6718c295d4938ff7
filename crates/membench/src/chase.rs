//! Walks along a cycle: each load needs the last one's result.

use crate::arch;
use crate::clock::{ClockError, Stamp};
use crate::cycle::{BuiltPart, Cycle, CycleError};
use crate::line::Line;
use crate::window::Window;
use core::marker::PhantomData;
use core::num::NonZeroUsize;
use core::ptr::NonNull;

/// A cycle in memory, ready to be walked by any number of threads.
///
/// It holds its memory exclusively and can only be made by building every line, so each load of a
/// walk stays within it.
#[derive(Debug)]
pub struct Chase<'a> {
    cycle: Cycle,
    memory: NonNull<Line>,
    lines: PhantomData<&'a mut [Line]>,
}

// SAFETY: the memory is borrowed exclusively, as by `&mut [Line]`, which is Send.
unsafe impl Send for Chase<'_> {}
// SAFETY: a shared chase only reads the memory.
unsafe impl Sync for Chase<'_> {}

impl<'a> Chase<'a> {
    /// Builds `cycle` into `lines` on this thread. `lines` may be longer than the cycle.
    ///
    /// # Errors
    /// As [`Cycle::parts`].
    pub fn build(cycle: Cycle, lines: &'a mut [Line]) -> Result<Chase<'a>, CycleError> {
        Chase::join(cycle.parts(lines, NonZeroUsize::MIN)?.map(crate::cycle::CyclePart::build))
    }

    /// Makes a chase of the parts of a cycle, built by several threads and passed in address order,
    /// as returned by [`Cycle::parts`].
    ///
    /// # Errors
    /// [`CycleError::PartsDoNotJoin`] unless they are all parts of one division, in order.
    pub fn join(parts: impl IntoIterator<Item = BuiltPart<'a>>) -> Result<Chase<'a>, CycleError> {
        let (cycle, memory) = BuiltPart::join(parts)?;
        Ok(Chase { cycle, memory, lines: PhantomData })
    }

    /// Returns the plan that was built.
    pub fn cycle(&self) -> &Cycle {
        &self.cycle
    }

    /// Starts a walk from the first node.
    pub fn walk(&self) -> Walk<'_> {
        // The chase contains addresses: the memory that they refer to is exposed for them.
        Walk { start: self.memory, at: self.memory.expose_provenance().get(), chase: PhantomData }
    }

    /// Walks once around and proves that the lines in memory are one cycle over exactly
    /// [`Cycle::nodes`] of them: the walk never leaves the nodes, and returns to the first one
    /// after that number of loads and not before.
    ///
    /// # Errors
    /// [`CycleError::NotOneCycle`] at the first load that contradicts this.
    pub fn verify(&self) -> Result<(), CycleError> {
        let nodes = self.cycle.nodes();
        let mut offset_bytes = 0;
        for loads in 1..=nodes {
            // SAFETY: `offset_bytes` is 0 or was found to be a node's, and nodes are in our memory,
            // which has no other writer while we hold it.
            let next = unsafe { self.memory.byte_add(offset_bytes).cast::<usize>().read() };
            // An address before our memory wraps to an offset far beyond its end.
            offset_bytes = next.wrapping_sub(self.memory.addr().get());
            let is_back = offset_bytes == 0;
            if !self.cycle.has_node_at(offset_bytes) || is_back != (loads == nodes) {
                return Err(CycleError::NotOneCycle { loads, offset_bytes, nodes });
            }
        }
        Ok(())
    }
}

/// A walk in progress on a [`Chase`].
#[derive(Clone, Debug)]
pub struct Walk<'c> {
    start: NonNull<Line>,
    at: usize,
    chase: PhantomData<&'c Chase<'c>>,
}

// SAFETY: a walk only reads memory that has no writer while its chase is borrowed.
unsafe impl Send for Walk<'_> {}

impl Walk<'_> {
    /// Creates a walk from the first word of `start`.
    ///
    /// # Safety
    /// For the walk's lifetime, `start` and every word that can be reached from it must contain the
    /// address of such a word, and must not be written to.
    pub(crate) unsafe fn over(start: NonNull<Line>) -> Self {
        Walk { start, at: start.expose_provenance().get(), chase: PhantomData }
    }

    /// Makes exactly `loads` loads, each of which needs the last one's result: the total time is
    /// the sum of their latencies.
    pub fn loads(&mut self, loads: u64) {
        // SAFETY: `at` is a node of a chase, all nodes of which contain the address of another one;
        // the borrow of the chase keeps its memory mapped and unchanged.
        self.at = unsafe { arch::follow(self.at, loads) };
    }

    /// Returns the position of the walk, in bytes from the chase's first line.
    pub fn offset_bytes(&self) -> usize {
        self.at - self.start.addr().get()
    }

    /// Times the next `loads` loads; the walk continues where the last window ended.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward; the loads are still made.
    pub fn window(&mut self, loads: u64) -> Result<Window, ClockError> {
        let start = Stamp::now();
        self.loads(loads);
        let ticks = Stamp::now().since(start)?;
        Ok(Window { start, ticks, loads, end_offset_bytes: self.offset_bytes() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::{LineSize, Pattern};
    use std::vec;

    #[test]
    fn verify_finds_a_line_that_leads_elsewhere() {
        let mut lines = vec![Line::ZERO; 64];
        let cycle = Cycle::new(Pattern::Random, 4096, LineSize::Bytes64, 1).unwrap();
        let chase = Chase::build(cycle, &mut lines).unwrap();
        assert_eq!(chase.verify(), Ok(()));
        let base = chase.memory.addr().get();
        let elsewhere = [base, base + 8, base + 4096, base - 64, 0];
        for (node, wrong) in [3, 10, 20, 30, 40].into_iter().zip(elsewhere) {
            // SAFETY: the chase is used only here, and no walk is in progress.
            let word = unsafe { chase.memory.add(node).cast::<usize>().as_mut() };
            let right = core::mem::replace(word, wrong);
            let found = chase.verify().unwrap_err();
            let CycleError::NotOneCycle { offset_bytes, nodes: 64, .. } = found else {
                panic!("{found}");
            };
            assert_eq!(offset_bytes, wrong.wrapping_sub(base));
            *word = right;
        }
        assert_eq!(chase.verify(), Ok(()));
    }
}
