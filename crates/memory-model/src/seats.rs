//! The cpus that vCPUs would have if they filled node after node: neighbours are on one node.

use alloc::vec::Vec;

use crate::machine::Machine;

/// A cpu, as far as memory goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    /// Position of its node.
    pub node: usize,
    /// Its L3 group.
    pub group: usize,
}

/// The seat of each vCPU.
#[derive(Debug)]
pub(crate) struct Seats(Vec<Seat>);

impl Seats {
    /// On a machine of so many cpus, which has vCPUs for them over and over.
    pub(crate) fn packed(machine: &Machine, cpus: usize) -> Self {
        let groups = machine.groups();
        let of = machine.cpus.iter().zip(groups).map(|(&node, group)| Seat { node, group });
        let mut seats: Vec<Seat> = of.take(cpus.max(1)).collect();
        seats.sort_unstable();
        Self((0..machine.cpus.len()).map(|vcpu| seats[vcpu % seats.len()]).collect())
    }

    /// That of one.
    pub(crate) fn of(&self, vcpu: usize) -> Seat {
        self.0[vcpu]
    }

    /// The group of each.
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
        let machine = machine_of(
            "cpus=0.1.0.1.0.1.0.1,memory=1G.1G,distances=10.20/20.10,l3-groups=0.2.1.3.0.2.1.3",
        );
        let seats = Seats::packed(&machine, 4);
        let nodes: Vec<usize> = (0..8).map(|vcpu| seats.of(vcpu).node).collect();
        assert_eq!(nodes, [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(seats.groups(), [0, 2, 1, 3, 0, 2, 1, 3]);
    }
}
