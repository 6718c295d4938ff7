//! The order in which nodes provide memory when a node has none left.

use alloc::vec;
use alloc::vec::Vec;

use crate::distance::LOCAL_DISTANCE;
use crate::id::NodeId;
use crate::machine::Machine;

/// The distance Linux assumes between two nodes if the firmware does not give one
/// (`REMOTE_DISTANCE` in `include/linux/topology.h`).
pub const REMOTE_DISTANCE: u8 = 20;

/// The nodes that an allocation tries, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackOrder {
    /// The node that the allocation requests.
    pub node: NodeId,
    /// Every online node with memory, once; `node` first if it has memory.
    pub order: Vec<NodeId>,
}

impl Machine {
    /// Returns the fallback order of every online node, by ascending id, as Linux since 5.16 builds
    /// it (`build_zonelists` and `find_next_best_node` in `mm/page_alloc.c`): the node itself, then
    /// always the cheapest of the rest.
    ///
    /// The cost is the distance, plus one for a node with a smaller id than the requesting one.
    /// Equal costs go to the node that was less often the first of its distance group in the orders
    /// built before, then to the smaller id. An unknown distance counts as [`REMOTE_DISTANCE`].
    /// Nodes without cpus are like any other, as after a boot: Linux prefers them in principle, but
    /// builds the orders before it has attached any cpu to its node (seen on x86, Linux 6.1).
    pub fn fallback_orders(&self) -> Vec<FallbackOrder> {
        let mut builder = Builder::new(self);
        let online = self.nodes.iter().enumerate().filter(|(_, node)| node.online);
        online
            .map(|(index, node)| FallbackOrder { node: node.id, order: builder.order(index) })
            .collect()
    }
}

/// State kept between the orders of one machine.
struct Builder<'m> {
    machine: &'m Machine,
    has_memory: Vec<bool>,
    /// The number of times each node was the first of its distance group.
    load: Vec<usize>,
}

impl<'m> Builder<'m> {
    fn new(machine: &'m Machine) -> Self {
        let with_memory = machine.memory_nodes();
        Self {
            machine,
            has_memory: machine.nodes.iter().map(|node| with_memory.contains(node.id)).collect(),
            load: vec![0; machine.nodes.len()],
        }
    }

    /// Returns the order of the node with this dense index.
    fn order(&mut self, local: usize) -> Vec<NodeId> {
        let mut left: Vec<usize> =
            (0..self.load.len()).filter(|&node| self.has_memory[node]).collect();
        let mut order = Vec::new();
        let mut previous = local;
        while let Some(place) = self.cheapest(local, &left) {
            let next = left.remove(place);
            // The first node of a distance group takes the overflow, so another one should come
            // first for the next requesting node.
            if self.distance(local, next) != self.distance(local, previous) {
                self.load[next] += 1;
            }
            order.push(self.machine.nodes[next].id);
            previous = next;
        }
        order
    }

    /// Returns the position in `left` of the node to try next.
    fn cheapest(&self, local: usize, left: &[usize]) -> Option<usize> {
        let key = |node: usize| (node != local, self.cost(local, node), self.load[node]);
        (0..left.len()).min_by_key(|&place| key(left[place]))
    }

    fn cost(&self, local: usize, node: usize) -> u32 {
        u32::from(self.distance(local, node)) + u32::from(node < local)
    }

    fn distance(&self, from: usize, to: usize) -> u8 {
        let assumed = if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE };
        self.machine.distances.get(from, to).unwrap_or(assumed)
    }
}
