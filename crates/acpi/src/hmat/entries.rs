//! The entries of an HMAT, with one structure for each type.

use core::fmt;

use super::cache::{Cache, CacheHead};
use super::locality::{ListSizes, Locality, LocalityHead};
use crate::entry::{EntryHead, RawEntry};
use crate::record::Record;
use crate::writer::Writer;

flags! {
    /// Flags of proximity domain attributes (ACPI 6.5 table 5.145; bits 1 and 2 in revision 1
    /// only).
    pub struct ProximityFlags(u16), none "no flags" {
        /// The initiator's domain is given.
        INITIATOR_VALID = 1, "initiator valid";
        /// The memory's domain is given (revision 1; later it always is).
        MEMORY_VALID = 1 << 1, "memory valid";
        /// Hint to keep the range for special use (revision 1).
        RESERVATION_HINT = 1 << 2, "reservation hint";
    }
}

record! {
    /// Memory Proximity Domain Attributes, type 0 (ACPI 6.5 §5.2.28.3); in revision 1 the "Memory
    /// Subsystem Address Range" (ACPI 6.2 §5.2.27.3).
    pub struct ProximityAttributes == 40, head 8 => {
        /// The domains that are given.
        pub flags: ProximityFlags,
        /// Reserved.
        pub reserved1: u16,
        /// Domain of the initiator nearest to the memory.
        pub initiator: u32,
        /// Domain of the memory.
        pub memory: u32,
        /// Reserved.
        pub reserved2: u32,
        /// First address (revision 1), then reserved.
        pub base: u64,
        /// Length of the range (revision 1), then reserved.
        pub length_bytes: u64,
    }
}

/// An entry of an HMAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// Type 0.
    Proximity(ProximityAttributes),
    /// Type 1.
    Locality(Locality<'a>),
    /// Type 2.
    Cache(Cache<'a>),
    /// An unknown type, or an entry too short for its type and counts.
    Raw(RawEntry<'a>),
}

/// Returns the size in bytes that an entry's type and counts require, head included; `usize::MAX`
/// if the size does not fit.
pub(crate) fn expected_size(raw: &RawEntry<'_>) -> Option<usize> {
    let mut body = raw.bytes.get(EntryHead::Double.size()..)?;
    Some(match raw.kind {
        0 => 40,
        1 => LocalityHead::read(&mut body).map_or(32, |head| {
            let lists = ListSizes::new(&head).and_then(|sizes| sizes.total());
            lists.and_then(|lists| lists.checked_add(32)).unwrap_or(usize::MAX)
        }),
        2 => CacheHead::read(&mut body).map_or(32, |head| {
            usize::from(head.smbios_handles).saturating_mul(2).saturating_add(32)
        }),
        _ => return None,
    })
}

entries! {
    Double {
        0 => Proximity,
        varying 1 => Locality(Locality),
        varying 2 => Cache(Cache),
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proximity(link) => {
                write!(f, "memory domain {}, initiator {}", link.memory, link.initiator)?;
                write!(f, ", {}", link.flags)
            }
            Self::Locality(locality) => locality.fmt(f),
            Self::Cache(cache) => cache.fmt(f),
            Self::Raw(raw) => raw.fmt(f),
        }
    }
}
