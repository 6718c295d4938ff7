//! Devices near nodes: a PCI host bridge (`pxb-pcie`) for each node that has some, and a port on it
//! for each device.

use std::collections::BTreeMap;

use numalab_topology::{Device, DeviceKind, Findings, Machine};

use super::backend::add;
use crate::guest::Guest;

/// The number of buses that the machine's own host bridge keeps.
const OWN_BUSES: usize = 16;
const BUSES: usize = 256;
/// The largest number of devices on a bus.
const MOST_PORTS: usize = 32;

/// Returns the words of all devices for a `q35`. Those without a node are on the machine's own host
/// bridge; the devices have no disks and no peers, so they can be found but not used.
pub(super) fn words(machine: &Machine, guest: &Guest, findings: &mut Findings) -> Vec<String> {
    let mut by_node: BTreeMap<Option<usize>, Vec<&str>> = BTreeMap::new();
    for device in &machine.devices {
        let Some(model) = model(device) else {
            let message = format!("QEMU has no {} to show", device.kind);
            findings.warning("device-left-out", &device.address, message);
            continue;
        };
        let index = device.node.and_then(|id| machine.node_index(id));
        by_node.entry(index.filter(|&index| index < guest.nodes.len())).or_default().push(model);
    }
    let mut words = Vec::new();
    let mut next_bus = OWN_BUSES;
    for (node, models) in by_node {
        let Some(node) = node else {
            let own = |model| format!("{model},bus=pcie.0");
            models.into_iter().for_each(|model| add(&mut words, "-device", own(model)));
            continue;
        };
        let room = MOST_PORTS.min(BUSES.saturating_sub(next_bus + 1));
        if models.len() > room {
            let message = format!("{} devices, but QEMU has buses for {room}", models.len());
            findings.warning("devices-beyond-qemu", format!("node {node}"), message);
        }
        if room > 0 {
            let bridge = format!("pxb-pcie,id=node{node},bus=pcie.0,bus_nr={next_bus}");
            add(&mut words, "-device", format!("{bridge},numa_node={node}"));
        }
        for (index, model) in models.into_iter().take(room).enumerate() {
            let port = format!("node{node}port{index}");
            let place = format!("bus=node{node},chassis={node},slot={index}");
            add(&mut words, "-device", format!("pcie-root-port,id={port},{place}"));
            add(&mut words, "-device", format!("{model},bus={port}"));
            next_bus += 1;
        }
        next_bus += 1;
    }
    words
}

/// Returns QEMU's device model of a kind, without a boot ROM, which is in a separate package.
fn model(device: &Device) -> Option<&'static str> {
    match device.kind {
        DeviceKind::Gpu => Some("bochs-display"),
        DeviceKind::Network => Some("virtio-net-pci,romfile="),
        DeviceKind::Storage => Some("virtio-scsi-pci"),
        DeviceKind::Accelerator | DeviceKind::Memory => None,
    }
}
