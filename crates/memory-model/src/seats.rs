//! Alternative cpus for threads: node after node, or on one node.

use alloc::vec::Vec;

use crate::machine::Machine;

/// The place of a cpu in the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    /// Position of the node.
    pub node: usize,
    /// L3 group of the cpu.
    pub group: usize,
}

/// The seats that threads take in turn, cyclically.
#[derive(Debug)]
pub(crate) struct Seats(Vec<Seat>);

impl Seats {
    /// Returns the seats of these cpus, node after node.
    pub(crate) fn packed(machine: &Machine, cpus: &[usize]) -> Self {
        let mut seats = Self::in_order(machine, cpus);
        seats.0.sort_unstable();
        seats
    }

    /// Returns the seats of the first cpu's node among these cpus; `None` if those are all.
    pub(crate) fn on_one_node(machine: &Machine, cpus: &[usize]) -> Option<Self> {
        let seats = Self::in_order(machine, cpus).0;
        let node = seats.first()?.node;
        let of_node: Vec<Seat> = seats.iter().copied().filter(|seat| seat.node == node).collect();
        (of_node.len() < seats.len()).then_some(Self(of_node))
    }

    fn in_order(machine: &Machine, cpus: &[usize]) -> Self {
        let groups = machine.groups();
        let seat = |&cpu: &usize| Seat { node: machine.cpus[cpu], group: groups[cpu] };
        Self(cpus.iter().map(seat).collect())
    }

    /// Returns the seat of the thread with this number.
    pub(crate) fn of(&self, thread: usize) -> Seat {
        self.0[thread % self.0.len()]
    }

    /// Returns the L3 group of each seat.
    pub(crate) fn groups(&self) -> Vec<usize> {
        self.0.iter().map(|seat| seat.group).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::machine_of;

    #[test]
    fn neighbours_are_on_one_node_and_every_round_is_the_same() {
        let machine =
            machine_of("cpus=0.0.1.1,memory=1G.1G,distances=10.20/20.10,l3-groups=0.1.2.3");
        let seats = Seats::packed(&machine, &[0, 2, 1, 3]);
        let nodes: Vec<usize> = (0..8).map(|thread| seats.of(thread).node).collect();
        assert_eq!(nodes, [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(seats.groups(), [0, 1, 2, 3]);
        let one = Seats::on_one_node(&machine, &[2, 0, 3, 1]).unwrap();
        assert_eq!(one.groups(), [2, 3]);
        assert!(Seats::on_one_node(&machine, &[0, 1]).is_none());
    }
}
