//! Devices that a process has open.

use numalab_topology::{DeviceKind, NodeId};
use serde::{Deserialize, Serialize};

/// A device on PCI that a process has open or mapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceUse {
    /// Its address on PCI.
    pub address: String,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub kind: DeviceKind,
    /// The node that it is near, where the firmware says it.
    pub node: Option<NodeId>,
    /// The device files that are open or mapped.
    pub files: Vec<String>,
}
