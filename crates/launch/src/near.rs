//! Binding to the node of a device.

use numalab_host::ErrorClass;
use numalab_topology::{CpuSet, Device, Machine, NodeId, NodeSet};

/// Names that a message has at most.
const MOST_NAMES: usize = 8;

/// A node that has a device, with its cpus and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The node.
    pub node: NodeId,
    /// Its cpus that this process may use.
    pub cpus: CpuSet,
    /// The device's name and address.
    pub device: String,
}

/// Why a process cannot be bound to the node of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NearError {
    /// No device is called so.
    #[error("--near {name}: no such device; {}", there_are(known))]
    NoDevice {
        /// The name.
        name: String,
        /// Names of devices, the most alike first.
        known: Vec<String>,
    },
    /// It is not known which node the device is near.
    #[error(
        "--near {name}: {device} is near no node that the firmware names (its numa_node is -1){}",
        alone(*nodes)
    )]
    NoNode {
        /// The name.
        name: String,
        /// The device.
        device: String,
        /// The nodes of the machine.
        nodes: usize,
    },
    /// The node has no memory, or none that this process may take.
    #[error(
        "--near {name}: {device} is near node {node}, which has no memory for this process; nodes {present} have: --numa=NODE binds to one"
    )]
    NoMemory {
        /// The name.
        name: String,
        /// The device.
        device: String,
        /// Its node.
        node: NodeId,
        /// Nodes with memory.
        present: NodeSet,
    },
}

fn there_are(known: &[String]) -> String {
    match known {
        [] => "this machine has none on PCI that is near a node".to_owned(),
        known => format!("there are {}", known.join(", ")),
    }
}

fn alone(nodes: usize) -> &'static str {
    match nodes {
        0 | 1 => "; this machine has one node",
        _ => "; --numa=NODE binds to one",
    }
}

impl NearError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NoDevice { .. } => ErrorClass::BadInput,
            Self::NoNode { .. } | Self::NoMemory { .. } => ErrorClass::Lacking,
        }
    }
}

impl Near {
    /// The node of the device that is called `name`.
    ///
    /// # Errors
    /// [`NearError`] if there is no such device, or no memory near it that is known of.
    pub fn of(machine: &Machine, name: &str) -> Result<Self, NearError> {
        let name = name.to_owned();
        let Some(device) = machine.device(&name) else {
            return Err(NearError::NoDevice { known: alike(machine, &name), name });
        };
        let described = described(device);
        let Some(node) = device.node else {
            let nodes = machine.nodes.len();
            return Err(NearError::NoNode { name, device: described, nodes });
        };
        let present = machine.usable_memory_nodes();
        if !present.contains(node) {
            return Err(NearError::NoMemory { name, device: described, node, present });
        }
        let cpus = machine.node(node).map(|node| node.cpus.clone()).unwrap_or_default();
        let cpus = cpus.intersection(&machine.usable_cpus());
        Ok(Self { node, cpus, device: described })
    }
}

/// `eth0 (network, 0000:41:00.0)`
fn described(device: &Device) -> String {
    let Device { kind, address, .. } = device;
    match device.names.as_slice() {
        [] => format!("{address} ({kind})"),
        [name, ..] => format!("{name} ({kind}, {address})"),
    }
}

/// What devices are called, those that begin as `name` does first.
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
    use numalab_topology::{Cpu, CpuId, DeviceKind, Node};

    use super::*;

    /// A machine with memory on node 0 and devices near nodes 0 and 1 and near none.
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
        let cpu = |id: u32| Cpu { id: CpuId(id), online: id != 1, ..Cpu::default() };
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
            assert_eq!((near.node, near.cpus.to_string()), (NodeId(0), "0".to_owned()));
            assert_eq!(near.device, "eth0 (network, 0000:01:00.0)");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_answered_with_those_that_begin_alike() {
        let error = Near::of(&machine(), "mlx5_1").unwrap_err();
        assert_eq!(error.class(), ErrorClass::BadInput);
        let said = error.to_string();
        assert!(said.ends_with("there are mlx5_0, eth0, eth1, 0000:03:00.0"), "{said}");
        let said = Near::of(&machine(), "0000:02:00.7").unwrap_err().to_string();
        assert!(said.contains("there are 0000:02:00.0, 0000:0"), "{said}");
        let said = Near::of(&Machine::default(), "eth0").unwrap_err().to_string();
        assert!(said.ends_with("this machine has none on PCI that is near a node"), "{said}");
    }

    #[test]
    fn a_device_of_no_node_and_one_of_a_node_without_memory_are_refused_with_the_reason() {
        let error = Near::of(&machine(), "03:00.0").unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("numa_node is -1); --numa=NODE"), "{error}");
        let error = Near::of(&machine(), "eth1").unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("node 1, which has no memory"), "{error}");
    }
}
