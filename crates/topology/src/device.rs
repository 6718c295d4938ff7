//! Devices that are near a node.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::id::NodeId;

/// A device on PCI that should be used from its own node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// The device's PCI address, such as `0000:41:00.0`.
    pub address: String,
    /// The purpose of the device.
    pub kind: DeviceKind,
    /// Vendor and product ids on PCI, such as `15b3:101b`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub id: Option<String>,
    /// The kernel driver bound to the device.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub driver: Option<String>,
    /// The nearest node, if the firmware gives it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub node: Option<NodeId>,
    /// The system's names of its interfaces, disks and device files: `eth0`, `mlx5_0`, `nvme0n1`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub names: Vec<String>,
}

/// The purpose of a device, by its class on PCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DeviceKind {
    /// Graphics processors and similar compute devices.
    Gpu,
    /// Other processors.
    Accelerator,
    /// Networks, including `InfiniBand`.
    Network,
    /// Disks and their controllers.
    Storage,
    /// Memory on CXL.
    Memory,
}

impl DeviceKind {
    /// Returns the kind for a PCI class (PCI Code and ID Assignment, section 1): base class,
    /// subclass and interface, one byte each. `None` for bridges and the like.
    pub const fn of_class(class: u32) -> Option<Self> {
        match (class >> 16, (class >> 8) & 0xff) {
            (0x01, _) => Some(Self::Storage),
            (0x02, _) | (0x0c, 0x06) => Some(Self::Network),
            (0x03, _) => Some(Self::Gpu),
            (0x05, 0x02) => Some(Self::Memory),
            (0x0b, 0x40) | (0x12, _) => Some(Self::Accelerator),
            _ => None,
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Network => "network",
            Self::Storage => "storage",
            Self::Memory => "CXL memory",
        })
    }
}

impl Device {
    /// Returns true if `name` is one of the device's names, also with its directory (`/dev/nvme0n1`) or
    /// a port (UCX's `mlx5_0:1`), or its address, with any number of digits for the domain (eight
    /// by nvidia-smi) or without the domain 0000.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.rsplit('/').next().unwrap_or(name);
        let is_same = |(domain, rest): (u32, &str)| {
            let own = domain_and_rest(&self.address);
            own.is_some_and(|own| own.0 == domain && own.1.eq_ignore_ascii_case(rest))
        };
        let is_port = |rest: &str| {
            let port = rest.strip_prefix(':');
            rest.is_empty() || port.is_some_and(|port| port.parse::<u32>().is_ok())
        };
        let is_named = |own: &String| name.strip_prefix(own.as_str()).is_some_and(is_port);
        domain_and_rest(name).is_some_and(is_same) || self.names.iter().any(is_named)
    }

    /// Returns the device's first name, or its address if it has none.
    pub fn name(&self) -> &str {
        self.names.first().unwrap_or(&self.address)
    }
}

/// Splits a PCI address into its domain, which is 0 if it is omitted, and bus, device and function.
fn domain_and_rest(address: &str) -> Option<(u32, &str)> {
    let (first, rest) = address.split_once(':')?;
    match rest.contains(':') {
        true => u32::from_str_radix(first, 16).ok().map(|domain| (domain, rest)),
        false => Some((0, address)),
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use super::*;

    #[test]
    fn the_pci_class_gives_the_kind_of_a_device_and_bridges_have_none() {
        let kinds = [0x03_0200, 0x12_0000, 0x02_0700, 0x01_0802, 0x05_0210, 0x06_0400, 0x05_0000];
        let kinds = kinds.map(DeviceKind::of_class);
        use DeviceKind::{Accelerator, Gpu, Memory, Network, Storage};
        let expected = [Some(Gpu), Some(Accelerator), Some(Network), Some(Storage), Some(Memory)];
        assert_eq!(kinds[..5], expected);
        assert_eq!(kinds[5..], [None, None]);
    }

    #[test]
    fn a_device_is_found_by_its_address_and_all_its_names() {
        let device = Device {
            address: "0000:4a:00.0".to_owned(),
            kind: DeviceKind::Network,
            id: None,
            driver: None,
            node: None,
            names: Vec::from(["eth0".to_owned(), "mlx5_0".to_owned()]),
        };
        for name in ["0000:4A:00.0", "4a:00.0", "00000000:4A:00.0", "eth0", "/dev/eth0", "mlx5_0:1"]
        {
            assert!(device.is_called(name), "{name}");
        }
        for name in ["eth", "eth01", "0000:4a:00.1", "0001:4a:00.0", "mlx5_0:x", ""] {
            assert!(!device.is_called(name), "{name}");
        }
        assert_eq!(device.name(), "eth0");
    }
}
