//! Memory-side caches.

use core::fmt;

use crate::entry::EntryHead;
use crate::list::List;
use crate::record::Record;
use crate::size::Size;
use crate::writer::Writer;

record! {
    /// The part of a [`Cache`] before its list.
    pub struct CacheHead == 32, head 8 => {
        /// Domain of the memory.
        pub memory: u32,
        /// Reserved.
        pub reserved1: u32,
        /// Size in bytes.
        pub size_bytes: u64,
        /// Levels, associativity, write policy, line size.
        pub attributes: CacheAttributes,
        /// Address mode: 0 reserved, 1 the cache's size is included in the memory's addresses (ACPI
        /// 6.5; reserved before).
        pub address_mode: u16,
        /// Number of SMBIOS handles.
        pub smbios_handles: u16,
    }
}

/// Memory Side Cache Information, type 2 (ACPI 6.5 §5.2.28.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cache<'a> {
    /// Domain of the memory.
    pub memory: u32,
    /// Reserved.
    pub reserved1: u32,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Levels, associativity, write policy, line size.
    pub attributes: CacheAttributes,
    /// Sharing of addresses between the cache and the memory (ACPI 6.5; reserved before).
    pub address_mode: u16,
    /// SMBIOS handles of the devices that form the cache.
    pub smbios_handles: List<'a, u16>,
}

impl<'a> Cache<'a> {
    pub(super) fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let head = CacheHead::read(&mut bytes)?;
        let handles = usize::from(head.smbios_handles).checked_mul(2)?;
        Some(Self {
            memory: head.memory,
            reserved1: head.reserved1,
            size_bytes: head.size_bytes,
            attributes: head.attributes,
            address_mode: head.address_mode,
            smbios_handles: List::Bytes(bytes.get(..handles)?),
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        let head = CacheHead {
            memory: self.memory,
            reserved1: self.reserved1,
            size_bytes: self.size_bytes,
            attributes: self.attributes,
            address_mode: self.address_mode,
            smbios_handles: writer.count(self.smbios_handles.len()),
        };
        let body = self.smbios_handles.size_bytes().saturating_add(CacheHead::SIZE);
        EntryHead::Double.write(writer, 2, body);
        head.write(writer);
        self.smbios_handles.write(writer);
    }
}

record! {
    /// Attributes of a memory-side cache (ACPI 6.5 table 5.147): five fields in 32 bits.
    pub struct CacheAttributes == 4, head 0 => {
        /// All five fields.
        pub bits: u32,
    }
}

/// The associativity of a memory-side cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Associativity {
    /// The firmware does not give it.
    None,
    /// One place for each line.
    DirectMapped,
    /// Complex indexing.
    Complex,
    /// A value that the specification does not define.
    Undefined(u8),
}

/// The write policy of a memory-side cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// The firmware does not give it.
    None,
    /// On eviction.
    WriteBack,
    /// Immediately.
    WriteThrough,
    /// A value that the specification does not define.
    Undefined(u8),
}

impl CacheAttributes {
    /// Packs the five fields; levels and policies are truncated to four bits.
    pub fn new(levels: u8, level: u8, how: Associativity, when: WritePolicy, line: u16) -> Self {
        let how = match how {
            Associativity::None => 0,
            Associativity::DirectMapped => 1,
            Associativity::Complex => 2,
            Associativity::Undefined(other) => other,
        };
        let when = match when {
            WritePolicy::None => 0,
            WritePolicy::WriteBack => 1,
            WritePolicy::WriteThrough => 2,
            WritePolicy::Undefined(other) => other,
        };
        let low = levels & 0xf | (level & 0xf) << 4;
        let high = how & 0xf | (when & 0xf) << 4;
        let [line_low, line_high] = line.to_le_bytes();
        Self { bits: u32::from_le_bytes([low, high, line_low, line_high]) }
    }

    /// Returns bits 3:0, the number of memory-side cache levels.
    pub fn levels(self) -> u8 {
        self.nibble(0)
    }

    /// Returns bits 7:4, the level of this cache.
    pub fn level(self) -> u8 {
        self.nibble(4)
    }

    /// Returns bits 11:8, the associativity.
    pub fn associativity(self) -> Associativity {
        match self.nibble(8) {
            0 => Associativity::None,
            1 => Associativity::DirectMapped,
            2 => Associativity::Complex,
            other => Associativity::Undefined(other),
        }
    }

    /// Returns bits 15:12, the write policy.
    pub fn write_policy(self) -> WritePolicy {
        match self.nibble(12) {
            0 => WritePolicy::None,
            1 => WritePolicy::WriteBack,
            2 => WritePolicy::WriteThrough,
            other => WritePolicy::Undefined(other),
        }
    }

    /// Returns bits 31:16, the line size in bytes.
    pub fn line_bytes(self) -> u16 {
        let [_, _, low, high] = self.bits.to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    fn nibble(self, shift: u32) -> u8 {
        let [low, ..] = self.bits.checked_shr(shift).unwrap_or(0).to_le_bytes();
        low & 0xf
    }
}

impl fmt::Display for Cache<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, attributes) = (Size(self.size_bytes), self.attributes);
        write!(f, "memory-side cache of domain {}: {size}", self.memory)?;
        write!(f, ", level {} of {}", attributes.level(), attributes.levels())?;
        write!(f, ", associativity {:?}", attributes.associativity())?;
        write!(f, ", write policy {:?}", attributes.write_policy())?;
        write!(f, ", lines of {} B", attributes.line_bytes())
    }
}
