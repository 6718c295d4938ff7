//! The entries of a HMAT, one structure each.

use core::fmt;

use super::reading::DataType;
use crate::builder::{BuildError, Writer};
use crate::entry::{EntryHead, RawEntry};
use crate::list::List;
use crate::record::Record;
use crate::size::Size;

flags! {
    /// Flags of proximity domain attributes (ACPI 6.5 table 5.145; bits 1 and 2 in revision 1
    /// only).
    pub struct ProximityFlags(u16), none "no flags" {
        /// The initiator's domain is given.
        INITIATOR_VALID = 1, "initiator valid";
        /// The memory's domain is given (revision 1; later it always is).
        MEMORY_VALID = 1 << 1, "memory valid";
        /// Keep the range for special use (revision 1).
        RESERVATION_HINT = 1 << 2, "reservation hint";
    }
}

flags! {
    /// Flags of a latency and bandwidth matrix (ACPI 6.5 table 5.146), bits above the hierarchy.
    pub struct LocalityFlags(u8), none "no flags" {
        /// The transfer size must be at least the minimum to reach these values.
        MINIMUM_TRANSFER_SIZE = 1 << 4, "minimum transfer size";
        /// The values hold for accesses that do not follow one upon the other.
        NON_SEQUENTIAL = 1 << 5, "non-sequential";
    }
}

impl LocalityFlags {
    /// Bits 3:0: 0 for memory, n for its n-th level memory-side cache.
    #[must_use]
    pub fn hierarchy(self) -> u8 {
        self.0 & 0xf
    }

    /// Whether the values are of memory, not of a memory-side cache.
    #[must_use]
    pub fn is_memory(self) -> bool {
        self.hierarchy() == 0
    }
}

record! {
    /// Memory Proximity Domain Attributes, type 0 (ACPI 6.5 §5.2.28.3); in revision 1 the "Memory
    /// Subsystem Address Range" (ACPI 6.2 §5.2.27.3).
    pub struct ProximityAttributes == 40, head 8 => {
        /// Which domains are given.
        pub flags: ProximityFlags,
        /// Reserved.
        pub reserved1: u16,
        /// Domain of the initiator next to the memory.
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

record! {
    /// The part of a [`Locality`] before its lists.
    pub struct LocalityHead == 32, head 8 => {
        /// Hierarchy and conditions.
        pub flags: LocalityFlags,
        /// See [`DataType`].
        pub data_type: u8,
        /// Exponent of two of the least transfer size.
        pub minimum_transfer_size: u8,
        /// Reserved.
        pub reserved1: u8,
        /// Number of initiators.
        pub initiators: u32,
        /// Number of targets.
        pub targets: u32,
        /// Reserved.
        pub reserved2: u32,
        /// What a matrix value is multiplied by.
        pub base_unit: u64,
    }
}

/// System Locality Latency and Bandwidth Information, type 1 (ACPI 6.5 §5.2.28.4): a matrix of
/// latencies or bandwidths, a row per initiator, a column per target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality<'a> {
    /// Hierarchy and conditions.
    pub flags: LocalityFlags,
    /// See [`DataType`].
    pub data_type: u8,
    /// Exponent of two of the least transfer size.
    pub minimum_transfer_size: u8,
    /// Reserved.
    pub reserved1: u8,
    /// Reserved.
    pub reserved2: u32,
    /// What a matrix value is multiplied by.
    pub base_unit: u64,
    /// Domains of the initiators.
    pub initiators: List<'a, u32>,
    /// Domains of the targets.
    pub targets: List<'a, u32>,
    /// The matrix, row by row.
    pub values: List<'a, u16>,
}

impl<'a> Locality<'a> {
    /// What the matrix holds, or `None` for a reserved type.
    #[must_use]
    pub fn data_type(&self) -> Option<DataType> {
        DataType::from_code(self.data_type)
    }

    /// The cell of two domains, as stored.
    #[must_use]
    pub fn value(&self, initiator: u32, target: u32) -> Option<u16> {
        let row = self
            .initiators
            .iter()
            .position(|domain| domain == initiator)?;
        let column = self.targets.iter().position(|domain| domain == target)?;
        self.values
            .get(row.checked_mul(self.targets.len())?.checked_add(column)?)
    }

    /// All cells row by row: initiator's domain, target's domain, value as stored.
    pub fn cells(&self) -> impl Iterator<Item = (u32, u32, u16)> + use<'a> {
        let (targets, values) = (self.targets, self.values);
        let pairs = self
            .initiators
            .iter()
            .flat_map(move |initiator| targets.iter().map(move |target| (initiator, target)));
        pairs
            .zip(values.iter())
            .map(|((initiator, target), value)| (initiator, target, value))
    }

    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let head = LocalityHead::read(&mut bytes)?;
        let sizes = ListSizes::new(&head)?;
        let (initiators, rest) = bytes.split_at_checked(sizes.initiators)?;
        let (targets, rest) = rest.split_at_checked(sizes.targets)?;
        Some(Self {
            flags: head.flags,
            data_type: head.data_type,
            minimum_transfer_size: head.minimum_transfer_size,
            reserved1: head.reserved1,
            reserved2: head.reserved2,
            base_unit: head.base_unit,
            initiators: List::Bytes(initiators),
            targets: List::Bytes(targets),
            values: List::Bytes(rest.get(..sizes.values)?),
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let (rows, columns) = (self.initiators.len(), self.targets.len());
        let expected = rows.saturating_mul(columns);
        if self.values.len() != expected {
            writer.refuse(BuildError::ListLength {
                items: self.values.len(),
                expected,
            });
        }
        let head = LocalityHead {
            flags: self.flags,
            data_type: self.data_type,
            minimum_transfer_size: self.minimum_transfer_size,
            reserved1: self.reserved1,
            initiators: count(writer, rows),
            targets: count(writer, columns),
            reserved2: self.reserved2,
            base_unit: self.base_unit,
        };
        let lists = self
            .initiators
            .size_bytes()
            .saturating_add(self.targets.size_bytes());
        let body = lists.saturating_add(self.values.size_bytes());
        writer.head(
            EntryHead::Double,
            1,
            body.saturating_add(LocalityHead::SIZE),
        );
        head.write(writer);
        self.initiators.write(writer);
        self.targets.write(writer);
        self.values.write(writer);
    }
}

/// Bytes that the counts of a [`LocalityHead`] call for.
struct ListSizes {
    initiators: usize,
    targets: usize,
    values: usize,
}

impl ListSizes {
    fn new(head: &LocalityHead) -> Option<Self> {
        let rows = usize::try_from(head.initiators).ok()?;
        let columns = usize::try_from(head.targets).ok()?;
        Some(Self {
            initiators: rows.checked_mul(4)?,
            targets: columns.checked_mul(4)?,
            values: rows.checked_mul(columns)?.checked_mul(2)?,
        })
    }

    fn total(&self) -> Option<usize> {
        self.initiators
            .checked_add(self.targets)?
            .checked_add(self.values)
    }
}

record! {
    /// The part of a [`Cache`] before its list.
    pub struct CacheHead == 32, head 8 => {
        /// Domain of the memory.
        pub memory: u32,
        /// Reserved.
        pub reserved1: u32,
        /// Size.
        pub size_bytes: u64,
        /// Levels, associativity, write policy, line size.
        pub attributes: CacheAttributes,
        /// 0 reserved, 1 the cache's size is part of the memory's addresses (ACPI 6.5); reserved
        /// before.
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
    /// Size.
    pub size_bytes: u64,
    /// Levels, associativity, write policy, line size.
    pub attributes: CacheAttributes,
    /// How the cache shares addresses with the memory (ACPI 6.5); reserved before.
    pub address_mode: u16,
    /// SMBIOS handles of the devices that make up the cache.
    pub smbios_handles: List<'a, u16>,
}

impl<'a> Cache<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
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

    fn write(&self, writer: &mut Writer<'_>) {
        let head = CacheHead {
            memory: self.memory,
            reserved1: self.reserved1,
            size_bytes: self.size_bytes,
            attributes: self.attributes,
            address_mode: self.address_mode,
            smbios_handles: count(writer, self.smbios_handles.len()),
        };
        let body = self
            .smbios_handles
            .size_bytes()
            .saturating_add(CacheHead::SIZE);
        writer.head(EntryHead::Double, 2, body);
        head.write(writer);
        self.smbios_handles.write(writer);
    }
}

/// A count field for `items`; refuses what it cannot hold.
fn count<T: TryFrom<usize> + Default>(writer: &mut Writer<'_>, items: usize) -> T {
    T::try_from(items).unwrap_or_else(|_| {
        let maximum = if size_of::<T>() == 2 {
            usize::from(u16::MAX)
        } else {
            usize::MAX
        };
        writer.refuse(BuildError::ListLength {
            items,
            expected: maximum,
        });
        T::default()
    })
}

record! {
    /// Attributes of a memory-side cache (ACPI 6.5 table 5.147): five fields in 32 bits.
    pub struct CacheAttributes == 4, head 0 => {
        /// All five.
        pub bits: u32,
    }
}

/// How a memory-side cache finds a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Associativity {
    /// Not given.
    None,
    /// One place for each line.
    DirectMapped,
    /// Complex indexing.
    Complex,
    /// A value that the specification does not define.
    Undefined(u8),
}

/// When a memory-side cache writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// Not given.
    None,
    /// On eviction.
    WriteBack,
    /// At once.
    WriteThrough,
    /// A value that the specification does not define.
    Undefined(u8),
}

impl CacheAttributes {
    /// Packs the five fields; levels and policies are cut to four bits.
    #[must_use]
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
        Self {
            bits: u32::from_le_bytes([low, high, line_low, line_high]),
        }
    }

    /// Bits 3:0, number of memory-side cache levels.
    #[must_use]
    pub fn levels(self) -> u8 {
        self.nibble(0)
    }

    /// Bits 7:4, level of this cache.
    #[must_use]
    pub fn level(self) -> u8 {
        self.nibble(4)
    }

    /// Bits 11:8.
    #[must_use]
    pub fn associativity(self) -> Associativity {
        match self.nibble(8) {
            0 => Associativity::None,
            1 => Associativity::DirectMapped,
            2 => Associativity::Complex,
            other => Associativity::Undefined(other),
        }
    }

    /// Bits 15:12.
    #[must_use]
    pub fn write_policy(self) -> WritePolicy {
        match self.nibble(12) {
            0 => WritePolicy::None,
            1 => WritePolicy::WriteBack,
            2 => WritePolicy::WriteThrough,
            other => WritePolicy::Undefined(other),
        }
    }

    /// Bits 31:16, bytes of a line.
    #[must_use]
    pub fn line_bytes(self) -> u16 {
        let [_, _, low, high] = self.bits.to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    fn nibble(self, shift: u32) -> u8 {
        let [low, ..] = self.bits.checked_shr(shift).unwrap_or(0).to_le_bytes();
        low & 0xf
    }
}

/// An entry of a HMAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// Type 0.
    Proximity(ProximityAttributes),
    /// Type 1.
    Locality(Locality<'a>),
    /// Type 2.
    Cache(Cache<'a>),
    /// Of an unknown type, or too short for its type and counts.
    Raw(RawEntry<'a>),
}

/// Bytes that an entry's type and counts call for, head included; `usize::MAX` if that is too
/// small for them.
pub(crate) fn expected_size(raw: &RawEntry<'_>) -> Option<usize> {
    let mut body = raw.bytes.get(EntryHead::Double.size()..)?;
    Some(match raw.kind {
        0 => 40,
        1 => LocalityHead::read(&mut body).map_or(32, |head| {
            let lists = ListSizes::new(&head).and_then(|sizes| sizes.total());
            lists
                .and_then(|lists| lists.checked_add(32))
                .unwrap_or(usize::MAX)
        }),
        2 => CacheHead::read(&mut body).map_or(32, |head| {
            usize::from(head.smbios_handles)
                .saturating_mul(2)
                .saturating_add(32)
        }),
        _ => return None,
    })
}

#[inline]
pub(super) fn decode(raw: RawEntry<'_>) -> Entry<'_> {
    let typed = raw
        .bytes
        .get(EntryHead::Double.size()..)
        .and_then(|mut body| {
            Some(match raw.kind {
                0 => Entry::Proximity(Record::read(&mut body)?),
                1 => Entry::Locality(Locality::read(body)?),
                2 => Entry::Cache(Cache::read(body)?),
                _ => return None,
            })
        });
    typed.unwrap_or(Entry::Raw(raw))
}

pub(super) fn encode(entry: &Entry<'_>, writer: &mut Writer<'_>) {
    match entry {
        Entry::Proximity(body) => writer.entry(EntryHead::Double, 0, body),
        Entry::Locality(body) => body.write(writer),
        Entry::Cache(body) => body.write(writer),
        Entry::Raw(raw) => writer.bytes(raw.bytes),
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proximity(link) => {
                write!(
                    f,
                    "memory domain {}, initiator {}",
                    link.memory, link.initiator
                )?;
                write!(f, ", {}", link.flags)
            }
            Self::Locality(locality) => locality.fmt(f),
            Self::Cache(cache) => cache.fmt(f),
            Self::Raw(raw) => raw.fmt(f),
        }
    }
}

impl fmt::Display for Locality<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.data_type() {
            Some(data_type) => write!(f, "{data_type}")?,
            None => write!(f, "reserved data type {}", self.data_type)?,
        }
        match self.flags.hierarchy() {
            0 => f.write_str(" of memory")?,
            level => write!(f, " of memory-side cache level {level}")?,
        }
        let (rows, columns) = (self.initiators.len(), self.targets.len());
        write!(
            f,
            ", {rows} initiators, {columns} targets, base unit {}:",
            self.base_unit
        )?;
        self.cells()
            .try_for_each(|(from, to, value)| write!(f, " {from}->{to}={value}"))
    }
}

impl fmt::Display for Cache<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, attributes) = (Size(self.size_bytes), self.attributes);
        write!(f, "memory-side cache of domain {}: {size}", self.memory)?;
        write!(
            f,
            ", level {} of {}",
            attributes.level(),
            attributes.levels()
        )?;
        write!(f, ", associativity {:?}", attributes.associativity())?;
        write!(f, ", write policy {:?}", attributes.write_policy())?;
        write!(f, ", lines of {} B", attributes.line_bytes())
    }
}
