//! Blocks of code by address, with their successors: the paths that a core may take after a
//! mispredicted branch.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::pipeline::Passed;
use crate::pipeline::flow::Flow;

/// Maximum number of known blocks.
const BLOCKS: usize = 1 << 10;
/// Maximum number of blocks of a path.
const LONGEST: usize = 16;

/// A block of code, and its successors.
#[derive(Clone, Copy, Debug)]
struct Known {
    address: u64,
    flow: &'static Flow,
    /// The addresses of the last two different blocks after it, the last one first.
    next: [u64; 2],
}

/// The blocks that a core has executed.
#[derive(Clone, Debug)]
pub struct Paths {
    known: Box<[Option<Known>]>,
}

impl Default for Paths {
    fn default() -> Self {
        Self { known: vec![None; BLOCKS].into_boxed_slice() }
    }
}

impl Paths {
    /// Records that a block led to another one.
    pub fn leads(&mut self, (address, flow): (u64, &'static Flow), next: u64) {
        let known = &mut self.known[place(address)];
        match known.as_mut().filter(|known| known.address == address) {
            Some(known) if known.next[0] == next => {}
            Some(known) => known.next = [next, known.next[0]],
            None => *known = Some(Known { address, flow, next: [next; 2] }),
        }
    }

    /// Returns the path from a block that does not begin with `right`, the block that was really
    /// executed next.
    pub fn wrong(&self, address: u64, right: u64) -> Vec<Passed> {
        let Some(from) = self.at(address) else { return Vec::new() };
        let mut at = from.next.into_iter().find(|next| *next != right);
        let (mut changed, mut path) = (0, Vec::new());
        while let Some(address) = at
            && path.len() < LONGEST
        {
            path.push((address, changed));
            let known = self.at(address);
            changed |= known.map_or(0, |known| known.flow.changes());
            // The path leaves a loop after one round.
            let is_new = |next: &u64| path.iter().all(|(there, _)| there != next);
            at = known.and_then(|known| known.next.into_iter().find(is_new));
        }
        path
    }

    fn at(&self, address: u64) -> Option<&Known> {
        self.known[place(address)].as_ref().filter(|known| known.address == address)
    }
}

/// Returns a block's entry.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than BLOCKS")]
fn place(address: u64) -> usize {
    ((address ^ address >> 10) % BLOCKS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Core;
    use crate::pipeline::speeds::Speeds;
    use crate::pipeline::x86::decode;

    #[test]
    fn the_wrong_path_is_where_a_block_led_before_and_what_blocks_on_it_change() {
        // mov %rax,%rcx: register 1
        let flow = Flow::new([decode(&[0x48, 0x89, 0xc1])], &Speeds::of(&Core::TYPICAL));
        let flow: &'static Flow = Box::leak(Box::new(flow));
        let mut paths = Paths::default();
        assert_eq!(paths.wrong(10, 20), []);
        paths.leads((10, flow), 20);
        assert_eq!(paths.wrong(10, 20), [], "it has led nowhere else");
        paths.leads((10, flow), 30);
        paths.leads((20, flow), 30);
        assert_eq!(paths.wrong(10, 30), [(20, 0), (30, 2)]);
        assert_eq!(paths.wrong(10, 20), [(30, 0)]);
        paths.leads((30, flow), 40);
        paths.leads((30, flow), 20);
        assert_eq!(paths.wrong(10, 30), [(20, 0), (30, 2), (40, 2)], "out of the loop");
    }
}
