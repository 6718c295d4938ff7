//! Devices opened by a process.

use numalab_topology::{DeviceKind, NodeId};
use serde::{Deserialize, Serialize};

/// A PCI device that a process has opened or mapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceUse {
    /// The device's PCI address.
    pub address: String,
    /// The device's usual name.
    pub name: String,
    /// The device's purpose.
    pub kind: DeviceKind,
    /// The node that it is attached to, if the firmware gives it.
    pub node: Option<NodeId>,
    /// The device files that are opened or mapped.
    pub files: Vec<String>,
}
