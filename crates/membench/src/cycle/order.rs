//! The order in which a cycle visits its nodes: the successor of each, by pattern.

use super::permutation::{BATCH, Permutation};
use super::round::mix;

/// The order of a cycle over nodes `0..nodes`, as a successor function without tables.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// A random order of all nodes.
    Random(Permutation),
    /// All nodes of one block, then all of the next.
    Blocks(Blocks),
    /// Every `stride`-th node, then those one further on.
    Columns {
        /// Number of nodes.
        nodes: u64,
        /// Distance in nodes from one visited node to the next.
        stride: u64,
    },
}

impl Order {
    /// Returns the number of nodes.
    pub fn nodes(&self) -> u64 {
        match self {
            Order::Random(permutation) => permutation.size(),
            Order::Blocks(blocks) => blocks.nodes(),
            Order::Columns { nodes, .. } => *nodes,
        }
    }

    /// Writes the successors of node `first` and of the nodes after it into `nodes`, and returns
    /// their number.
    pub fn successors(&self, first: u64, nodes: &mut [u64; BATCH]) -> usize {
        match self {
            Order::Random(permutation) => permutation.successors(first, nodes),
            Order::Blocks(blocks) => blocks.successors(first, nodes),
            Order::Columns { nodes: all, stride } => columns(first, *all, *stride, nodes),
        }
    }
}

fn columns(first: u64, all: u64, stride: u64, nodes: &mut [u64; BATCH]) -> usize {
    let mut count = 0;
    for (node, next) in (first..all).zip(nodes) {
        *next = if node + stride < all {
            node + stride
        } else {
            // The end of the column: continue at the start of the next column, if there is one.
            let head = node % stride + 1;
            if head < stride.min(all) { head } else { 0 }
        };
        count += 1;
    }
    count
}

/// Random order inside blocks of equal size, and of the blocks. Nodes that do not fill a block are
/// visited last.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The order of the full blocks; `None` if there are none.
    blocks: Option<Permutation>,
    /// The order in one full block, to be keyed by its number.
    inside: Permutation,
    /// The order of the nodes after the full blocks; `None` if there are none.
    rest: Option<Permutation>,
    seed: u64,
}

impl Blocks {
    /// Creates an order of `nodes` in blocks of `block_nodes`, both at least 1.
    pub fn new(nodes: u64, block_nodes: u64, seed: u64) -> Blocks {
        let part = |size, seed| (size > 0).then(|| Permutation::new(size, seed));
        Blocks {
            blocks: part(nodes / block_nodes, mix(seed)),
            inside: Permutation::new(block_nodes, 0),
            rest: part(nodes % block_nodes, mix(seed ^ 1)),
            seed,
        }
    }

    fn nodes(&self) -> u64 {
        self.first_of_rest() + self.rest.map_or(0, |rest| rest.size())
    }

    fn successors(&self, first: u64, nodes: &mut [u64; BATCH]) -> usize {
        let in_rest = first >= self.first_of_rest();
        let block = first / self.inside.size();
        let (start, order) = match self.rest {
            Some(rest) if in_rest => (self.first_of_rest(), rest),
            _ => (block * self.inside.size(), self.inside_of(block)),
        };
        let count = order.successors(first - start, nodes);
        for node in &mut nodes[..count] {
            *node += start;
        }
        // The block's last node leads to the next block.
        let last = start + order.forward(order.size() - 1);
        if let Some(lane) = last.checked_sub(first).and_then(|lane| usize::try_from(lane).ok())
            && lane < count
        {
            nodes[lane] = self.entry_after((!in_rest).then_some(block));
        }
        count
    }

    /// Returns the first node visited after all of `block`, or after the rest.
    #[cold]
    fn entry_after(&self, block: Option<u64>) -> u64 {
        let Some(blocks) = self.blocks else {
            return self.entry_of_rest();
        };
        let next = match block {
            Some(block) if self.rest.is_some() && block == blocks.forward(blocks.size() - 1) => {
                return self.entry_of_rest();
            }
            Some(block) => blocks.successor(block),
            None => blocks.forward(0),
        };
        next * self.inside.size() + self.inside_of(next).forward(0)
    }

    fn entry_of_rest(&self) -> u64 {
        self.first_of_rest() + self.rest.map_or(0, |rest| rest.forward(0))
    }

    fn first_of_rest(&self) -> u64 {
        self.blocks.map_or(0, |blocks| blocks.size()) * self.inside.size()
    }

    fn inside_of(&self, block: u64) -> Permutation {
        self.inside.with_seed(mix(self.seed ^ mix(block)))
    }
}
