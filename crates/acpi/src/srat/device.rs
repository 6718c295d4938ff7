//! Devices in a SRAT: generic initiators and ports.

use core::fmt;

flags! {
    /// Flags of generic initiators and ports (ACPI 6.5 table 5.64).
    pub struct DeviceFlags(u32), none "disabled" {
        /// The entry is enabled.
        ENABLED = 1, "enabled";
        /// The device's transactions are architectural, as those of a processor are.
        ARCHITECTURAL_TRANSACTIONS = 1 << 1, "architectural transactions";
    }
}

record! {
    /// Generic Initiator Affinity, type 5 (ACPI 6.5 §5.2.16.6), and Generic Port Affinity, type 6
    /// (§5.2.16.7), which share one layout.
    pub struct DeviceAffinity == 32, head 2 => {
        /// Reserved.
        pub reserved1: u8,
        /// 0 for an ACPI, 1 for a PCI handle.
        pub handle_type: u8,
        /// Proximity domain.
        pub domain: u32,
        /// The device; see [`handle`](Self::handle).
        pub handle: [u8; 16],
        /// State of the entry.
        pub flags: DeviceFlags,
        /// Reserved.
        pub reserved2: u32,
    }
}

/// Identification of an initiator or port (ACPI 6.5 tables 5.65 and 5.66).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceHandle {
    /// By its ids in the ACPI namespace.
    Acpi {
        /// Hardware id.
        hid: [u8; 8],
        /// Unique id.
        uid: [u8; 4],
    },
    /// By its address on PCI.
    Pci {
        /// Segment group.
        segment: u16,
        /// Bus in the high byte, device and function in the low one.
        bdf: u16,
    },
    /// A type that the specification does not define.
    Unknown,
}

impl DeviceAffinity {
    /// Returns the device's handle.
    pub fn handle(&self) -> DeviceHandle {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.handle;
        match self.handle_type {
            0 => DeviceHandle::Acpi { hid: [a, b, c, d, e, f, g, h], uid: [i, j, k, l] },
            1 => DeviceHandle::Pci {
                segment: u16::from_le_bytes([a, b]),
                bdf: u16::from_be_bytes([c, d]),
            },
            _ => DeviceHandle::Unknown,
        }
    }
}

impl fmt::Display for DeviceAffinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: domain {}, {}", self.handle(), self.domain, self.flags)
    }
}

impl fmt::Display for DeviceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acpi { hid, uid } => {
                write!(f, "ACPI {} UID {:#x}", hid.escape_ascii(), u32::from_le_bytes(*uid))
            }
            Self::Pci { segment, bdf } => {
                let [bus, slot] = bdf.to_be_bytes();
                write!(f, "PCI {segment:04x}:{bus:02x}:{:02x}.{}", slot >> 3, slot & 7)
            }
            Self::Unknown => f.write_str("unknown device"),
        }
    }
}
