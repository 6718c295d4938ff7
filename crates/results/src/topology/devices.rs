//! Devices and the nodes that they are close to.

use numalab_page::Table;
use numalab_topology::{Device, Machine};

/// Returns one row per device, by node; those without a known node come last.
pub(super) fn devices(machine: &Machine) -> Table {
    let mut order: Vec<&Device> = machine.devices.iter().collect();
    order.sort_by_key(|device| (device.node.is_none(), device.node));
    let row = |device: &&Device| {
        vec![
            device.node.map_or_else(|| "–".to_owned(), |node| node.to_string()),
            device.kind.to_string(),
            device.names.join(" "),
            device.driver.clone().unwrap_or_default(),
            device.address.clone(),
        ]
    };
    Table::new("PCI devices; numalab bind --near DEVICE runs a program close to one")
        .figures("node")
        .words(["kind", "names", "driver", "address"])
        .rows(order.iter().map(row))
}
