//! Binds to the node of a device.

use numalab_host::{Classed, ErrorClass, Root, has_interface_or_disk};
use numalab_topology::{CpuSet, Device, DeviceKind, Machine, NodeId, NodeSet};

/// Maximum number of names in a message.
const MOST_NAMES: usize = 8;

/// Cpus and memory near a device, which may be on different nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The device's name and address.
    pub device: String,
    pub device_node: NodeId,
    /// The nearest node with cpus that this process may use.
    pub cpu_node: NodeId,
    /// The cpus of that node that this process may use.
    pub cpus: CpuSet,
    /// The nearest node with memory for programs.
    pub memory_node: NodeId,
    /// True if the device's node has memory but no cpus. It is then the device's memory, which
    /// programs do not use.
    pub is_device_memory: bool,
}

/// Reason why a process cannot be bound to the node of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NearError {
    #[error("--near {name}: no such device; {}", expected(known))]
    NoDevice {
        name: String,
        /// Names of devices, the most similar first.
        known: Vec<String>,
    },
    /// The name is that of an interface or disk that is not on PCI, such as `lo`.
    #[error(
        "--near {name}: not on PCI but virtual or on another bus, and so near no node; {}",
        expected(known)
    )]
    NotOnPci {
        name: String,
        /// Names of devices, the most similar first.
        known: Vec<String>,
    },
    #[error(
        "--near {name}: the firmware names no node for {device} (its numa_node is -1); --numa=NODE \
         binds to one"
    )]
    NoNode { name: String, device: String },
    /// No node other than the device's has memory that this process may use, or none has cpus.
    #[error(
        "--near {name}: {device} is near node {node}, and no other node has cpus and memory for this process; nodes {present} have memory: --numa=NODE binds to one"
    )]
    NoMemory { name: String, device: String, node: NodeId, present: NodeSet },
}

fn expected(known: &[String]) -> String {
    match known {
        [] => "this machine has no PCI device near a node".to_owned(),
        known => format!("expected one of {}", known.join(", ")),
    }
}

impl Classed for NearError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoDevice { .. } | Self::NotOnPci { .. } => ErrorClass::BadInput,
            Self::NoNode { .. } | Self::NoMemory { .. } => ErrorClass::Lacking,
        }
    }
}

impl NearError {
    /// Distinguishes an interface or disk of this system that is not on PCI from an unknown name.
    pub fn seen_on(self, root: &Root) -> Self {
        match self {
            Self::NoDevice { name, known } if has_interface_or_disk(root, &name) => {
                Self::NotOnPci { name, known }
            }
            other => other,
        }
    }
}

/// Returns the nodes whose memory belongs to a device: they have no cpus, and are either the node of a
/// GPU or another accelerator, or one from which a device accesses memory (`initiators`).
pub fn device_memory(machine: &Machine, initiators: &NodeSet) -> NodeSet {
    let computes =
        |device: &&Device| matches!(device.kind, DeviceKind::Gpu | DeviceKind::Accelerator);
    let mut nodes: NodeSet =
        machine.devices.iter().filter(computes).filter_map(|device| device.node).collect();
    nodes.extend_from(initiators);
    nodes.intersection(&machine.memory_nodes()).difference(&machine.cpu_nodes())
}

impl Near {
    /// Finds the cpus and memory near the device called `name`.
    ///
    /// # Errors
    /// [`NearError`] if there is no such device, or no memory near it.
    pub fn of(machine: &Machine, name: &str) -> Result<Self, NearError> {
        let name = name.to_owned();
        let Some(device) = machine.device(&name) else {
            return Err(NearError::NoDevice { known: alike(machine, &name), name });
        };
        let described = described(device);
        let node = match (device.node, machine.nodes.as_slice()) {
            (Some(node), _) => node,
            // Firmware of machines with one node often names none.
            (None, [only]) => only.id,
            (None, _) => return Err(NearError::NoNode { name, device: described }),
        };
        let present = machine.usable_memory_nodes();
        let has_cpus = machine.cpu_nodes();
        let is_device_memory = machine.memory_nodes().contains(node) && !has_cpus.contains(node);
        let is_own = |other: NodeId| other == node && is_device_memory;
        let for_all: Vec<NodeId> = present.iter().filter(|other| !is_own(*other)).collect();
        let for_programs: Vec<NodeId> = present.intersection(&has_cpus).iter().collect();
        // The memory of a node without cpus may belong to another device, so it is the last resort.
        let memory_node =
            nearest(machine, node, &for_programs).or_else(|| nearest(machine, node, &for_all));
        let cpus_of = |node| machine.node(node).map(|node| node.cpus.clone()).unwrap_or_default();
        let usable = |node| cpus_of(node).intersection(&machine.usable_cpus());
        let with_cpus = machine.nodes.iter().map(|node| node.id);
        let with_cpus: Vec<NodeId> = with_cpus.filter(|node| !usable(*node).is_empty()).collect();
        let found = memory_node.zip(nearest(machine, node, &with_cpus));
        let Some((memory_node, cpu_node)) = found else {
            return Err(NearError::NoMemory { name, device: described, node, present });
        };
        let (device, cpus) = (described, usable(cpu_node));
        Ok(Self { device, device_node: node, cpu_node, cpus, memory_node, is_device_memory })
    }

    /// Describes the device's node, and the replacement for the resources that it lacks.
    pub fn describe(&self) -> String {
        let Self { device, device_node, cpu_node, cpus, memory_node, .. } = self;
        let mut said = format!("{device} is near node {device_node}");
        if self.is_device_memory {
            said += ", the device's own memory";
        }
        match cpu_node == device_node {
            true => said += &format!(": cpus {cpus}"),
            false => {
                said += &format!(
                    ": cpus {cpus} of node {cpu_node}, the nearest with any that this process may use"
                );
            }
        }
        if memory_node != device_node {
            said += &format!("; memory of node {memory_node}, the nearest for programs");
        }
        said
    }
}

/// Returns the nearest of these nodes, the first of equally near ones.
pub(crate) fn nearest(machine: &Machine, from: NodeId, nodes: &[NodeId]) -> Option<NodeId> {
    let distance = |node: &NodeId| match *node == from {
        true => 0,
        false => machine.distance(from, *node).unwrap_or(u8::MAX),
    };
    nodes.iter().copied().min_by_key(|node| (distance(node), *node))
}

/// Formats `eth0 (network, 0000:41:00.0)`.
fn described(device: &Device) -> String {
    let Device { kind, address, .. } = device;
    match device.names.as_slice() {
        [] => format!("{address} ({kind})"),
        [name, ..] => format!("{name} ({kind}, {address})"),
    }
}

/// Returns names of devices, those with the same beginning as `name` first.
fn alike(machine: &Machine, name: &str) -> Vec<String> {
    let common = |own: &str| own.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let own = |device: &Device| match device.names.is_empty() {
        true => vec![device.address.clone()],
        false => device.names.clone(),
    };
    let mut names: Vec<String> = machine.devices.iter().flat_map(own).collect();
    if name.contains(':') {
        names = machine.devices.iter().map(|device| device.address.clone()).collect();
    }
    names.sort_by_key(|own| std::cmp::Reverse(common(own)));
    names.truncate(MOST_NAMES);
    names
}

#[cfg(test)]
mod tests {
    use numalab_topology::{Cpu, CpuId, DeviceKind, Distances, Node};

    use super::*;

    /// Returns a machine with memory on node 0, and devices near nodes 0 and 1 and near none.
    fn machine() -> Machine {
        let device = |address: &str, node: Option<u32>, names: &[&str]| Device {
            address: address.to_owned(),
            kind: DeviceKind::Network,
            id: None,
            driver: None,
            node: node.map(NodeId),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let node = |id: u32, memory_bytes| Node {
            id: NodeId(id),
            online: true,
            cpus: CpuSet::from_iter([CpuId(2 * id), CpuId(2 * id + 1)]),
            memory_bytes,
            ..Node::default()
        };
        let cpu = |id: u32| Cpu {
            id: CpuId(id),
            online: id != 1,
            node: Some(NodeId(id / 2)),
            ..Cpu::default()
        };
        Machine {
            nodes: vec![node(0, 1 << 30), node(1, 0)],
            cpus: (0..4).map(cpu).collect(),
            devices: vec![
                device("0000:01:00.0", Some(0), &["eth0", "mlx5_0"]),
                device("0000:02:00.0", Some(1), &["eth1"]),
                device("0000:03:00.0", None, &[]),
            ],
            ..Machine::default()
        }
    }

    #[test]
    fn a_device_is_near_the_memory_and_the_online_cpus_of_its_node() {
        for name in ["mlx5_0", "0000:01:00.0", "01:00.0"] {
            let near = Near::of(&machine(), name).unwrap();
            assert_eq!((near.memory_node, near.cpu_node), (NodeId(0), NodeId(0)));
            assert_eq!(near.cpus.to_string(), "0");
            assert_eq!(near.device, "eth0 (network, 0000:01:00.0)");
        }
    }

    #[test]
    fn a_missing_device_is_reported_with_similar_names() {
        let error = Near::of(&machine(), "mlx5_1").unwrap_err();
        assert_eq!(error.class(), ErrorClass::BadInput);
        let said = error.to_string();
        assert!(said.ends_with("expected one of mlx5_0, eth0, eth1, 0000:03:00.0"), "{said}");
        let said = Near::of(&machine(), "0000:02:00.7").unwrap_err().to_string();
        assert!(said.contains("expected one of 0000:02:00.0, 0000:0"), "{said}");
        let said = Near::of(&Machine::default(), "eth0").unwrap_err().to_string();
        assert!(said.ends_with("this machine has no PCI device near a node"), "{said}");
    }

    #[test]
    fn a_virtual_device_is_not_called_missing() {
        let top = tempfile::tempdir().unwrap();
        for name in ["sys/class/net/lo", "sys/block/zram0"] {
            std::fs::create_dir_all(top.path().join(name)).unwrap();
        }
        let said = |name: &str| {
            let error = Near::of(&machine(), name).unwrap_err().seen_on(&Root::at(top.path()));
            assert_eq!(error.class(), ErrorClass::BadInput);
            error.to_string()
        };
        for name in ["lo", "zram0"] {
            assert!(
                said(name)
                    .contains("virtual or on another bus, and so near no node; expected one of")
            );
        }
        for name in ["..", "eth7"] {
            assert!(said(name).contains("no such device"), "{name}");
        }
    }

    #[test]
    fn a_device_of_no_node_is_refused_and_one_of_a_node_without_memory_takes_the_nearest() {
        let error = Near::of(&machine(), "03:00.0").unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("numa_node is -1); --numa=NODE"), "{error}");
        let near = Near::of(&machine(), "eth1").unwrap();
        assert_eq!((near.cpu_node, near.memory_node), (NodeId(1), NodeId(0)));
    }

    #[test]
    fn a_device_of_no_node_is_near_the_only_one() {
        let mut only = machine();
        only.nodes.truncate(1);
        only.cpus.truncate(2);
        let near = Near::of(&only, "03:00.0").unwrap();
        assert_eq!((near.cpus.to_string().as_str(), near.memory_node), ("0", NodeId(0)));
    }

    /// Returns a machine with cpus and memory on node 0, cpus on 1, a GPU's memory on 2, and
    /// nothing on 3.
    fn odd() -> Machine {
        let node = |id: u32, cpus: &str, memory_bytes| Node {
            id: NodeId(id),
            online: true,
            cpus: cpus.parse().unwrap(),
            memory_bytes,
            ..Node::default()
        };
        let cpu = |id: u32| {
            let node = Some(NodeId(id / 4));
            Cpu { id: CpuId(id), online: true, node, ..Cpu::default() }
        };
        let device = |address: &str, node: u32| Device {
            address: address.to_owned(),
            kind: DeviceKind::Network,
            id: None,
            driver: None,
            node: Some(NodeId(node)),
            names: Vec::new(),
        };
        let rows = [[10, 40, 80, 120], [40, 10, 120, 80], [80, 120, 10, 40], [120, 80, 40, 10]];
        Machine {
            nodes: vec![
                node(0, "0-3", 1 << 36),
                node(1, "4-7", 0),
                node(2, "", 1 << 37),
                node(3, "", 0),
            ],
            cpus: (0..8).map(cpu).collect(),
            distances: Distances::from_rows(&rows.map(|row| row.to_vec())).unwrap(),
            devices: (0..4).map(|node| device(&format!("0000:0{node}:00.0"), node)).collect(),
            ..Machine::default()
        }
    }

    #[test]
    fn memory_without_cpus_is_a_devices_if_one_names_its_node_or_starts_accesses_there() {
        let of = |kind, initiators: &str| {
            let mut machine = odd();
            machine.devices.iter_mut().for_each(|device| device.kind = kind);
            device_memory(&machine, &initiators.parse().unwrap()).to_string()
        };
        assert_eq!(of(DeviceKind::Gpu, ""), "2");
        assert_eq!(of(DeviceKind::Network, ""), "");
        assert_eq!(of(DeviceKind::Memory, "0-3"), "2", "only memory without cpus");
    }

    #[test]
    fn a_node_without_cpus_or_memory_is_replaced_by_the_nearest_and_gpu_memory_is_not_used() {
        for (device, cpus, own) in [
            ("00:00.0", "0-3", false),
            ("01:00.0", "4-7", false),
            ("02:00.0", "0-3", true),
            ("03:00.0", "4-7", false),
        ] {
            let near = Near::of(&odd(), device).unwrap();
            assert_eq!(
                (near.cpus.to_string().as_str(), near.memory_node),
                (cpus, NodeId(0)),
                "{device}"
            );
            assert_eq!(near.is_device_memory, own, "{device}");
        }
        let said = Near::of(&odd(), "02:00.0").unwrap().describe();
        assert!(
            said.contains("near node 2, the device's own memory: cpus 0-3 of node 0"),
            "{said}"
        );
        let mut alone = odd();
        alone.nodes[0].memory_bytes = 0;
        let error = Near::of(&alone, "02:00.0").unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("nodes 2 have memory"), "{error}");
    }
}
