//! Labels of devices in drawings.

use numalab_topology::Device;

/// Returns a label such as `network eth0 · 0000:41:00.0`.
pub(crate) fn label_of(device: &Device) -> String {
    let Device { kind, address, .. } = device;
    match device.names.first() {
        Some(name) => format!("{kind} {name} · {address}"),
        None => format!("{kind} {address}"),
    }
}
