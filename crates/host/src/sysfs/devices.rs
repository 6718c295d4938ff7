//! Reads PCI devices with their nodes, from `sys/bus/pci/devices`.

mod names;

use std::fs;

use numalab_topology::{Device, DeviceKind, Node, NodeId};

use super::reader::{Reader, shortened};
use crate::root::Root;

const DIRECTORY: &str = "sys/bus/pci/devices";

/// Returns true if the system has an interface or a disk of this name, on whatever bus.
pub fn has_interface_or_disk(root: &Root, name: &str) -> bool {
    let directories = ["sys/class/net", "sys/block"].into_iter();
    let mut names = directories.flat_map(|directory| root.names(directory));
    names.any(|known| known == name)
}

/// Reads the devices for which locality matters ([`DeviceKind::of_class`]), by address. A device
/// for which the firmware gives no node (-1) has none.
pub(super) fn read(reader: &mut Reader<'_>, nodes: &[Node]) -> Vec<Device> {
    let addresses = reader.root.names(DIRECTORY);
    addresses.into_iter().filter_map(|address| device(reader, nodes, address)).collect()
}

/// Reads a device; `None` for a bridge and the like, and for a link to a part that a copied tree
/// lacks.
fn device(reader: &mut Reader<'_>, nodes: &[Node], address: String) -> Option<Device> {
    let directory = format!("{DIRECTORY}/{address}");
    let class = hexadecimal(reader, &format!("{directory}/class"))?;
    let kind = DeviceKind::of_class(class)?;
    let number =
        |reader: &mut Reader<'_>, name| hexadecimal(reader, &format!("{directory}/{name}"));
    let id = number(reader, "vendor").zip(number(reader, "device"));
    Some(Device {
        kind,
        id: id.map(|(vendor, product)| format!("{vendor:04x}:{product:04x}")),
        driver: driver(reader, &directory),
        node: node(reader, nodes, &directory),
        names: names::device_names(reader.root, &directory, &address),
        address,
    })
}

/// Reads a number such as `0x020000`.
fn hexadecimal(reader: &mut Reader<'_>, path: &str) -> Option<u32> {
    let text = reader.text(path).filter(|text| !text.is_empty())?;
    let number = text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    if number.is_none() {
        let message =
            format!("`{}`: expected a hexadecimal number such as 0x020000", shortened(&text));
        reader.warn("not-hexadecimal", path, message);
    }
    number
}

fn node(reader: &mut Reader<'_>, nodes: &[Node], directory: &str) -> Option<NodeId> {
    let path = format!("{directory}/numa_node");
    let text = reader.text(&path).filter(|text| !text.is_empty() && text != "-1")?;
    let node = text.parse().ok().map(NodeId);
    let known = node.filter(|node| nodes.iter().any(|known| known.id == *node));
    if known.is_none() {
        let message = format!("`{}`: expected a node of the machine, or -1", shortened(&text));
        reader.warn("device-node", &path, message);
    }
    known
}

/// Returns the target of the link `driver`, or the driver in `uevent` if a copied tree has no
/// links.
fn driver(reader: &mut Reader<'_>, directory: &str) -> Option<String> {
    let link = fs::read_link(reader.root.path(&format!("{directory}/driver")));
    if let Some(name) = link.ok().and_then(|link| Some(link.file_name()?.to_str()?.to_owned())) {
        return Some(name);
    }
    let text = reader.document(&format!("{directory}/uevent"))?;
    text.lines().find_map(|line| Some(line.strip_prefix("DRIVER=")?.to_owned()))
}
