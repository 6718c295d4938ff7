//! Matrices of latencies and bandwidths.

use core::fmt;

use super::reading::DataType;
use crate::entry::EntryHead;
use crate::list::List;
use crate::record::Record;
use crate::writer::{BuildError, Writer};

flags! {
    /// Flags of a latency and bandwidth matrix (ACPI 6.5 table 5.146), the bits above the
    /// hierarchy.
    pub struct LocalityFlags(u8), none "no flags" {
        /// The values need transfers of at least the minimum size.
        MINIMUM_TRANSFER_SIZE = 1 << 4, "minimum transfer size";
        /// The values are for non-sequential accesses.
        NON_SEQUENTIAL = 1 << 5, "non-sequential";
    }
}

impl LocalityFlags {
    /// Returns bits 3:0, the hierarchy: 0 for memory, n for its n-th level memory-side cache.
    pub fn hierarchy(self) -> u8 {
        self.0 & 0xf
    }

    /// Returns true if the values are for memory, not for a memory-side cache.
    pub fn is_memory(self) -> bool {
        self.hierarchy() == 0
    }
}

record! {
    /// The part of a [`Locality`] before its lists.
    pub struct LocalityHead == 32, head 8 => {
        /// Hierarchy and conditions.
        pub flags: LocalityFlags,
        /// See [`DataType`].
        pub data_type: u8,
        /// Base-2 logarithm of the least transfer size.
        pub minimum_transfer_size: u8,
        /// Reserved.
        pub reserved1: u8,
        /// Number of initiators.
        pub initiators: u32,
        /// Number of targets.
        pub targets: u32,
        /// Reserved.
        pub reserved2: u32,
        /// Factor of the matrix values.
        pub base_unit: u64,
    }
}

/// System Locality Latency and Bandwidth Information, type 1 (ACPI 6.5 §5.2.28.4): a matrix of
/// latencies or bandwidths with a row per initiator and a column per target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality<'a> {
    /// Hierarchy and conditions.
    pub flags: LocalityFlags,
    /// See [`DataType`].
    pub data_type: u8,
    /// Base-2 logarithm of the least transfer size.
    pub minimum_transfer_size: u8,
    /// Reserved.
    pub reserved1: u8,
    /// Reserved.
    pub reserved2: u32,
    /// Factor of the matrix values.
    pub base_unit: u64,
    /// Domains of the initiators.
    pub initiators: List<'a, u32>,
    /// Domains of the targets.
    pub targets: List<'a, u32>,
    /// The matrix, row by row.
    pub values: List<'a, u16>,
}

impl<'a> Locality<'a> {
    /// Returns the quantity in the matrix, or `None` for a reserved type.
    pub fn data_type(&self) -> Option<DataType> {
        DataType::from_code(self.data_type)
    }

    /// Returns the cell of a pair of domains, as stored.
    pub fn value(&self, initiator: u32, target: u32) -> Option<u16> {
        let row = self.initiators.iter().position(|domain| domain == initiator)?;
        let column = self.targets.iter().position(|domain| domain == target)?;
        self.values.get(row.checked_mul(self.targets.len())?.checked_add(column)?)
    }

    /// Returns all cells row by row: initiator's domain, target's domain, value as stored.
    pub fn cells(&self) -> impl Iterator<Item = (u32, u32, u16)> + use<'a> {
        let (targets, values) = (self.targets, self.values);
        let pairs = self
            .initiators
            .iter()
            .flat_map(move |initiator| targets.iter().map(move |target| (initiator, target)));
        pairs.zip(values.iter()).map(|((initiator, target), value)| (initiator, target, value))
    }

    pub(super) fn read(mut bytes: &'a [u8]) -> Option<Self> {
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

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        let (rows, columns) = (self.initiators.len(), self.targets.len());
        let expected = rows.saturating_mul(columns);
        if self.values.len() != expected {
            writer.refuse(BuildError::ListLength { items: self.values.len(), expected });
        }
        let head = LocalityHead {
            flags: self.flags,
            data_type: self.data_type,
            minimum_transfer_size: self.minimum_transfer_size,
            reserved1: self.reserved1,
            initiators: writer.count(rows),
            targets: writer.count(columns),
            reserved2: self.reserved2,
            base_unit: self.base_unit,
        };
        let lists = self.initiators.size_bytes().saturating_add(self.targets.size_bytes());
        let body = lists.saturating_add(self.values.size_bytes());
        EntryHead::Double.write(writer, 1, body.saturating_add(LocalityHead::SIZE));
        head.write(writer);
        self.initiators.write(writer);
        self.targets.write(writer);
        self.values.write(writer);
    }
}

/// Sizes in bytes of the lists for the counts of a [`LocalityHead`].
pub(super) struct ListSizes {
    initiators: usize,
    targets: usize,
    values: usize,
}

impl ListSizes {
    pub(super) fn new(head: &LocalityHead) -> Option<Self> {
        let rows = usize::try_from(head.initiators).ok()?;
        let columns = usize::try_from(head.targets).ok()?;
        Some(Self {
            initiators: rows.checked_mul(4)?,
            targets: columns.checked_mul(4)?,
            values: rows.checked_mul(columns)?.checked_mul(2)?,
        })
    }

    pub(super) fn total(&self) -> Option<usize> {
        self.initiators.checked_add(self.targets)?.checked_add(self.values)
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
        write!(f, ", {rows} initiators, {columns} targets, base unit {}:", self.base_unit)?;
        self.cells().try_for_each(|(from, to, value)| write!(f, " {from}->{to}={value}"))
    }
}
