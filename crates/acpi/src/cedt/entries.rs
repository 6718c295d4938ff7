//! The entries of a CEDT that memory windows need.

use core::fmt;

use crate::entry::{EntryHead, RawEntry};
use crate::list::List;
use crate::record::Record;
use crate::size::Size;
use crate::writer::Writer;

flags! {
    /// Permitted uses of a window (CXL 3.1 table 9-22).
    pub struct WindowRestrictions(u16), none "unrestricted" {
        /// Memory of CXL devices that maintain coherence themselves (type 2, HDM-D or HDM-DB).
        DEVICE_COHERENT = 1, "device coherent";
        /// Memory for which the host maintains coherence (type 3, HDM-H).
        HOST_COHERENT = 1 << 1, "host coherent";
        /// Volatile memory.
        VOLATILE = 1 << 2, "volatile";
        /// Persistent memory.
        PERSISTENT = 1 << 3, "persistent";
        /// The configuration is fixed.
        FIXED = 1 << 4, "fixed";
    }
}

record! {
    /// CXL Host Bridge Structure (CHBS), type 0 (CXL 3.1 §9.18.1.2).
    pub struct HostBridge == 32, head 4 => {
        /// UID of the host bridge in the ACPI namespace.
        pub uid: u32,
        /// 0 for CXL 1.1, 1 for CXL 2.0 and later.
        pub version: u32,
        /// Reserved.
        pub reserved: u32,
        /// Address of the registers.
        pub base: u64,
        /// Length of the registers.
        pub length_bytes: u64,
    }
}

headed! {
    /// CXL Fixed Memory Window Structure (CFMWS), type 1 (CXL 3.1 §9.18.1.3): host addresses that
    /// firmware has reserved for CXL memory.
    pub struct FixedMemoryWindow<'a>, WindowHead == 36, head 4 => {
        /// Reserved.
        pub reserved1: u32,
        /// First host physical address, a multiple of 256 MiB.
        pub base: u64,
        /// Size, a multiple of 256 MiB times the number of interleave ways.
        pub size_bytes: u64,
        /// See [`interleave_ways`].
        pub encoded_ways: u8,
        /// 0 for modulo, 1 for XOR.
        pub arithmetic: u8,
        /// Reserved.
        pub reserved2: u16,
        /// Log2 of the bytes that go to one host bridge before the next, less 8; 6 at most.
        pub encoded_granularity: u32,
        /// Permitted uses of the window.
        pub restrictions: WindowRestrictions,
        /// QoS throttling group.
        pub qos_group: u16,
    } then {
        /// UIDs of the host bridges that the window is interleaved over.
        pub targets: List<'a, u32>,
    }
}

impl<'a> FixedMemoryWindow<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let head = WindowHead::read(&mut bytes)?;
        let targets = usize::from(interleave_ways(head.encoded_ways)?).checked_mul(4)?;
        Some(Self::of(head, List::Bytes(bytes.get(..targets)?)))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let body = self.targets.size_bytes().saturating_add(WindowHead::SIZE);
        EntryHead::Word.write(writer, 1, body);
        self.fixed().write(writer);
        self.targets.write(writer);
    }
}

/// Returns the number of host bridges a window is interleaved over, or `None` for a reserved
/// encoding (CXL 3.1 table 9-22, "ENIW").
pub fn interleave_ways(encoded: u8) -> Option<u8> {
    Some(match encoded {
        0..=4 => 1_u8.checked_shl(encoded.into())?,
        8 => 3,
        9 => 6,
        10 => 12,
        _ => return None,
    })
}

/// An entry of a CEDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// Type 0.
    HostBridge(HostBridge),
    /// Type 1.
    Window(FixedMemoryWindow<'a>),
    /// Any other type, or an entry too short for its type and interleave ways.
    Raw(RawEntry<'a>),
}

/// Returns the size in bytes that an entry's type and interleave ways require, head included.
pub(crate) fn expected_size(raw: &RawEntry<'_>) -> Option<usize> {
    let mut body = raw.bytes.get(EntryHead::Word.size()..)?;
    match raw.kind {
        0 => Some(32),
        1 => {
            let head = WindowHead::read(&mut body);
            let ways = head.map_or(Some(0), |head| interleave_ways(head.encoded_ways));
            ways.map(|ways| usize::from(ways).saturating_mul(4).saturating_add(36))
        }
        _ => None,
    }
}

entries! {
    Word {
        0 => HostBridge,
        varying 1 => Window(FixedMemoryWindow),
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostBridge(bridge) => {
                let (uid, base) = (bridge.uid, bridge.base);
                write!(
                    f,
                    "CXL host bridge {uid:#x}: registers {base:#x} + {:#x}",
                    bridge.length_bytes
                )
            }
            Self::Window(window) => {
                let size = Size(window.size_bytes);
                write!(f, "CXL window {:#014x} ({size}): {}", window.base, window.restrictions)?;
                write!(f, ", targets")?;
                window.targets.iter().try_for_each(|uid| write!(f, " {uid:#x}"))
            }
            Self::Raw(raw) => raw.fmt(f),
        }
    }
}
