//! The layout of a treatment: a machine, and guests assigned to its nodes.

use numalab_guest::xen::{DomainPlan, Pinning};
use numalab_topology::{CpuSet, Distances, Machine, Node};

use super::settings::{GuestTreatment, GuestsSettings};

/// The reserve per node for tables and a margin, in MiB; on the first node also for the hypervisor
/// and its boot modules.
const NODE_SPARE_MIB: u64 = 256;
const FIRST_SPARE_MIB: u64 = 256;

/// A machine with guests on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GuestLayout {
    pub machine: Machine,
    pub guests: Vec<PlacedGuest>,
}

/// A guest and its home node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedGuest {
    pub name: String,
    pub home: u32,
    pub cpus: CpuSet,
}

impl GuestLayout {
    /// Assigns the guests to the nodes in turn, so that a hypervisor unaware of nodes puts one on
    /// its home node by chance only once in N times, with N nodes.
    pub(super) fn of(wanted: &GuestTreatment, settings: &GuestsSettings) -> Self {
        Self::on(fitted(wanted, settings), wanted)
    }

    /// Assigns the guests on an existing machine; only nodes with both cpus and memory get guests.
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

    /// Returns the memory that guests, the first domain and the hypervisor touch, which is all that
    /// QEMU takes from this machine.
    pub(super) fn used_bytes(&self, settings: &GuestsSettings) -> u64 {
        let all: u64 = self.machine.nodes.iter().map(|node| node.memory_bytes).sum();
        let guests_mib = self.guests.len() as u64 * settings.guest_memory_mib;
        let spare_mib = FIRST_SPARE_MIB + self.machine.nodes.len() as u64 * NODE_SPARE_MIB;
        let used = (guests_mib + settings.dom0_memory_mib + spare_mib) << 20;
        // Xen keeps 40 bytes per frame, whoever owns the frame.
        all.min(used + all / 4096 * 40)
    }

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

/// Returns the machine with enough memory on its nodes for the guests, or as much as requested.
/// Nodes without a memory size in the file exist only if the guests fill the nodes before them, and
/// so do all nodes of a machine whose memory is known.
fn fitted(wanted: &GuestTreatment, settings: &GuestsSettings) -> Machine {
    let mut machine = wanted.machine.clone();
    let filled = wanted.guests.div_ceil(settings.guests_per_node) as usize;
    let kept = machine.nodes.iter().enumerate();
    let stays = |node: &Node| node.memory_bytes > 0 && !settings.costs.are_like_a_machine();
    let kept = kept.filter(|(at, node)| *at < filled || stays(node));
    let kept: Vec<usize> = kept.map(|(at, _)| at).collect();
    machine.distances = among(&machine.distances, &kept);
    machine.nodes = kept.iter().map(|at| machine.nodes[*at].clone()).collect();
    let nodes = &machine.nodes;
    machine.cpus.retain(|cpu| nodes.iter().any(|node| cpu.node == Some(node.id)));
    let left: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
    for cache in &mut machine.caches {
        cache.cpus = cache.cpus.intersection(&left);
    }
    machine.caches.retain(|cache| !cache.cpus.is_empty());
    machine.access.retain(|pair| {
        [pair.initiator, pair.target].iter().all(|id| nodes.iter().any(|node| node.id == *id))
    });
    let homes = u32::try_from(machine.cpu_nodes().len()).unwrap_or(u32::MAX).max(1);
    let guests = u64::from(wanted.guests.div_ceil(homes).max(settings.guests_per_node));
    for (at, node) in machine.nodes.iter_mut().enumerate() {
        // The guests fill their node; the first node also holds the first domain.
        let first = if at == 0 { settings.dom0_memory_mib + FIRST_SPARE_MIB } else { 0 };
        let all = guests * settings.guest_memory_mib + first + NODE_SPARE_MIB;
        let all = all.next_multiple_of(128).max(settings.node_memory_mib.unwrap_or(0));
        node.memory_bytes = all << 20;
    }
    machine
}

fn among(distances: &Distances, nodes: &[usize]) -> Distances {
    let mut kept = Distances::unknown(nodes.len());
    for (row, from) in nodes.iter().enumerate() {
        for (column, to) in nodes.iter().enumerate() {
            if let Some(distance) = distances.get(*from, *to) {
                kept.set(row, column, distance);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use numalab_guest::HostPages;

    use super::*;
    use crate::guests::machine;

    fn wanted(guests: u32, machine: &str) -> GuestTreatment {
        GuestTreatment {
            numa: "on".to_owned(),
            guests,
            pinning: Pinning::CpusAndMemory,
            dom0_nodes: None,
            pools: false,
            machine: machine::read(machine).unwrap(),
            xen: None,
            pages: HostPages::Normal,
        }
    }

    #[test]
    fn four_guests_fill_a_node_of_the_machine_of_2006() {
        let settings = GuestsSettings::default();
        for (guests, nodes) in [(4, 1), (8, 2), (12, 3), (16, 4), (5, 2), (40, 4)] {
            let layout = GuestLayout::of(&wanted(guests, "x460"), &settings);
            assert_eq!(layout.machine.nodes.len(), nodes, "{guests} guests");
            assert_eq!(layout.machine.cpus.len(), 4 * nodes);
            assert!(layout.machine.validate().is_empty(), "{:?}", layout.machine.validate());
        }
    }

    #[test]
    fn guests_belong_to_the_nodes_in_turn_and_fit_into_them() {
        let settings = GuestsSettings::default();
        let layout = GuestLayout::of(&wanted(16, "x460"), &settings);
        let homes: Vec<u32> = layout.guests.iter().map(|guest| guest.home).collect();
        assert_eq!(homes[..5], [0, 1, 2, 3, 0]);
        assert_eq!(layout.guests[6].cpus.to_string(), "8-11");
        let needed = (4 * settings.guest_memory_mib) << 20;
        assert!(layout.machine.nodes.iter().all(|node| node.memory_bytes > needed));
    }

    #[test]
    fn todays_machines_have_their_nodes_whatever_the_guests() {
        let settings = GuestsSettings::default();
        let two = GuestLayout::of(&wanted(4, "two-sockets"), &settings).machine;
        assert_eq!((two.nodes.len(), two.cpus.len()), (2, 16));
        let four = GuestLayout::of(&wanted(4, "four-sockets"), &settings).machine;
        assert_eq!(four.distances.get(0, 2), Some(31));
        assert_eq!(four.distances.get(0, 1), Some(21));
        assert_eq!(four.distances.get(3, 3), Some(10));
    }

    #[test]
    fn any_machine_file_can_be_the_machine_with_memory_for_its_guests() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "distances = [[10, 30], [30, 10]]\n[[node]]\nid = 0\ncpus = \"0-1\"\n\
                    memory = \"64G\"\n[[node]]\nid = 1\ncpus = \"2-5\"\nmemory = \"64G\"\n";
        std::fs::write(file.path(), text).unwrap();
        let settings = GuestsSettings::default();
        let wanted = wanted(4, file.path().to_str().unwrap());
        let machine = GuestLayout::of(&wanted, &settings).machine;
        assert_eq!((machine.nodes.len(), machine.cpus.len()), (2, 6));
        assert_eq!(machine.distances.get(0, 1), Some(30));
        assert!(machine.nodes.iter().all(|node| node.memory_bytes < 4 << 30));
        let error = machine::read("mainframe").unwrap_err().to_string();
        assert!(error.contains("mainframe: No such file") && error.contains("x460, "), "{error}");
    }

    #[test]
    fn guests_fill_the_nodes_of_a_machine_of_known_memory() {
        let settings = serde_json::json!({ "emulate-like": "x460", "node-memory-mib": 5632 });
        let settings = GuestsSettings::of(settings).unwrap();
        for (guests, nodes) in [(4, 1), (8, 2), (16, 4)] {
            let layout = GuestLayout::of(&wanted(guests, "xeon-8360y-2s"), &settings);
            assert_eq!(layout.machine.nodes.len(), nodes.min(2), "the machine has two");
            let layout = GuestLayout::of(&wanted(guests, "x460"), &settings);
            assert_eq!((layout.machine.nodes.len(), layout.machine.cpus.len()), (nodes, 4 * nodes));
            assert!(layout.machine.nodes.iter().all(|node| node.memory_bytes == 5632 << 20));
            assert!(layout.used_bytes(&settings) < ((nodes as u64 + 1) << 31));
            assert_eq!(layout.machine.validate(), []);
        }
    }

    #[test]
    fn a_domain_in_pools_is_in_that_of_its_node_and_free_ones_have_no_home() {
        let settings = GuestsSettings::default();
        let mut wanted = wanted(8, "x460");
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
