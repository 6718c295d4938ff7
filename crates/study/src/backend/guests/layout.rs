//! What a treatment means: a machine, and guests that belong to its nodes.

use numalab_topology::{Cpu, CpuId, CpuSet, Distances, Machine, Node, NodeId};
use numalab_xen::{DomainPlan, Pinning};

use super::settings::{GuestTreatment, GuestsSettings, MachineShape};

/// More nodes than this the seed's machine has not.
const X460_NODES: u32 = 4;
/// What tables and a margin take of a node, in MiB, and the hypervisor and what it was
/// booted with of the first.
const NODE_SPARE_MIB: u64 = 256;
const FIRST_SPARE_MIB: u64 = 256;

/// A machine with guests on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GuestLayout {
    pub machine: Machine,
    pub guests: Vec<PlacedGuest>,
}

/// A guest and the node it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedGuest {
    pub name: String,
    pub home: u32,
    pub cpus: CpuSet,
}

impl GuestLayout {
    /// The guests belong to the nodes in turn, so that a hypervisor which does not know of
    /// nodes puts one on its own by chance as often as there are nodes.
    pub(super) fn of(wanted: &GuestTreatment, settings: &GuestsSettings) -> Self {
        Self::on(machine(wanted, settings), wanted)
    }

    /// The same on a machine that is there; only nodes with cpus and memory have guests.
    pub(super) fn of_host(wanted: &GuestTreatment, host: Machine) -> Self {
        Self::on(host, wanted)
    }

    fn on(machine: Machine, wanted: &GuestTreatment) -> Self {
        let able = |node: &&Node| !node.cpus.is_empty() && node.memory_bytes > 0;
        let nodes: Vec<Node> = machine.nodes.iter().filter(able).cloned().collect();
        let guest = |index: u32| {
            let node = &nodes[index as usize % nodes.len().max(1)];
            PlacedGuest {
                name: format!("g{:02}", index + 1),
                home: node.id.0,
                cpus: node.cpus.clone(),
            }
        };
        let count = if nodes.is_empty() { 0 } else { wanted.guests };
        Self { guests: (0..count).map(guest).collect(), machine }
    }

    /// The guests as domains of Xen.
    pub(super) fn domains(
        &self,
        wanted: &GuestTreatment,
        settings: &GuestsSettings,
    ) -> Vec<DomainPlan> {
        let pool = |home: u32| wanted.splits_pools().then(|| format!("Pool-node{home}"));
        let domain = |guest: &PlacedGuest| DomainPlan {
            name: guest.name.clone(),
            kind: settings.guest_kind,
            memory_mib: settings.guest_memory_mib,
            vcpus: settings.guest_vcpus,
            home: (wanted.pinning != Pinning::None).then_some(guest.home),
            cpus: guest.cpus.to_string(),
            pinning: wanted.pinning,
            pool: pool(guest.home),
        };
        self.guests.iter().map(domain).collect()
    }
}

fn machine(wanted: &GuestTreatment, settings: &GuestsSettings) -> Machine {
    let filled = wanted.guests.div_ceil(settings.guests_per_node);
    let (nodes, cpus) = match wanted.shape {
        MachineShape::X460 => (filled.min(X460_NODES), 4),
        MachineShape::TwoSockets => (2, 8),
        MachineShape::FourSockets => (4, 4),
    };
    let guests = u64::from(wanted.guests.div_ceil(nodes).max(settings.guests_per_node));
    // The guests fill their node; the first one also has the first domain.
    let memory_mib = |node: u32| {
        let first = if node == 0 { settings.dom0_memory_mib + FIRST_SPARE_MIB } else { 0 };
        let all = guests * settings.guest_memory_mib + first + NODE_SPARE_MIB;
        all.next_multiple_of(128)
    };
    let node = |id: u32| Node {
        id: NodeId(id),
        online: true,
        cpus: (id * cpus..(id + 1) * cpus).map(CpuId).collect(),
        memory_bytes: memory_mib(id) << 20,
        ..Node::default()
    };
    let cpu = |id: u32| Cpu {
        id: CpuId(id),
        online: true,
        node: Some(NodeId(id / cpus)),
        package: Some(id / cpus),
        core: Some(id),
        l3_group: Some(id / cpus),
        ..Cpu::default()
    };
    Machine {
        nodes: (0..nodes).map(node).collect(),
        cpus: (0..nodes * cpus).map(cpu).collect(),
        distances: distances(wanted.shape, nodes as usize),
        ..Machine::default()
    }
}

fn distances(shape: MachineShape, nodes: usize) -> Distances {
    match shape {
        MachineShape::X460 => Distances::uniform(nodes, 20),
        MachineShape::TwoSockets => Distances::uniform(nodes, 21),
        MachineShape::FourSockets => {
            // One hop to the neighbours in the ring, two to the node across.
            let mut distances = Distances::uniform(nodes, 21);
            for from in 0..nodes {
                distances.set(from, (from + nodes / 2) % nodes, 31);
            }
            distances
        }
    }
}

#[cfg(test)]
mod tests {
    use numalab_guest::HostPages;

    use super::*;

    fn wanted(guests: u32, shape: MachineShape) -> GuestTreatment {
        GuestTreatment {
            numa: "on".to_owned(),
            guests,
            pinning: Pinning::CpusAndMemory,
            dom0_nodes: None,
            pools: false,
            shape,
            xen: None,
            pages: HostPages::Normal,
        }
    }

    #[test]
    fn four_guests_fill_a_node_of_the_seeds_machine() {
        let settings = GuestsSettings::default();
        for (guests, nodes) in [(4, 1), (8, 2), (12, 3), (16, 4), (5, 2), (40, 4)] {
            let layout = GuestLayout::of(&wanted(guests, MachineShape::X460), &settings);
            assert_eq!(layout.machine.nodes.len(), nodes, "{guests} guests");
            assert_eq!(layout.machine.cpus.len(), 4 * nodes);
            assert!(layout.machine.validate().is_empty(), "{:?}", layout.machine.validate());
        }
    }

    #[test]
    fn guests_belong_to_the_nodes_in_turn_and_fit_into_them() {
        let settings = GuestsSettings::default();
        let layout = GuestLayout::of(&wanted(16, MachineShape::X460), &settings);
        let homes: Vec<u32> = layout.guests.iter().map(|guest| guest.home).collect();
        assert_eq!(homes[..5], [0, 1, 2, 3, 0]);
        assert_eq!(layout.guests[6].cpus.to_string(), "8-11");
        let needed = (4 * settings.guest_memory_mib) << 20;
        assert!(layout.machine.nodes.iter().all(|node| node.memory_bytes > needed));
    }

    #[test]
    fn todays_machines_have_their_nodes_whatever_the_guests() {
        let settings = GuestsSettings::default();
        let two = GuestLayout::of(&wanted(4, MachineShape::TwoSockets), &settings).machine;
        assert_eq!((two.nodes.len(), two.cpus.len()), (2, 16));
        let four = GuestLayout::of(&wanted(4, MachineShape::FourSockets), &settings).machine;
        assert_eq!(four.distances.get(0, 2), Some(31));
        assert_eq!(four.distances.get(0, 1), Some(21));
        assert_eq!(four.distances.get(3, 3), Some(10));
    }

    #[test]
    fn a_domain_in_pools_is_in_that_of_its_node_and_free_ones_have_no_home() {
        let settings = GuestsSettings::default();
        let mut wanted = wanted(8, MachineShape::X460);
        wanted.pools = true;
        wanted.pinning = Pinning::None;
        let domains = GuestLayout::of(&wanted, &settings).domains(&wanted, &settings);
        assert_eq!(domains[1].pool.as_deref(), Some("Pool-node1"));
        assert_eq!(domains[1].home, None);
        wanted.numa = "off".to_owned();
        let domains = GuestLayout::of(&wanted, &settings).domains(&wanted, &settings);
        assert_eq!(domains[1].pool, None);
    }
}
