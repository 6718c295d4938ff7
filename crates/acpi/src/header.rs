//! The header that every system description table begins with (ACPI 6.5 §5.2.6).

use core::fmt;

/// The four characters that identify a kind of table.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub [u8; 4]);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl crate::record::Record for Signature {
    const SIZE: usize = 4;

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        crate::record::Record::read(bytes).map(Self)
    }

    fn write(&self, writer: &mut crate::writer::Writer<'_>) {
        crate::record::Record::write(&self.0, writer);
    }
}

record! {
    /// The 36 bytes that every table begins with (ACPI 6.5 §5.2.6, table 5.4).
    ///
    /// A [`Builder`](crate::Builder) takes identity and revision from it and fills in length and
    /// checksum itself.
    pub struct Header == 36, head 0 => {
        /// Kind of table.
        pub signature: Signature,
        /// Length of the whole table in bytes, this header included.
        pub length: u32,
        /// Revision of the table's layout.
        pub revision: u8,
        /// The byte that makes the table sum to zero.
        pub checksum: u8,
        /// The manufacturer, padded with spaces or NUL.
        pub oem_id: [u8; 6],
        /// The manufacturer's name for this table.
        pub oem_table_id: [u8; 8],
        /// The manufacturer's revision of this table.
        pub oem_revision: u32,
        /// The tool that made the table.
        pub creator_id: [u8; 4],
        /// The revision of that tool.
        pub creator_revision: u32,
    }
}

impl Header {
    /// Size of a header in bytes.
    pub const LENGTH: usize = 36;
    /// Offset of the checksum byte.
    pub const CHECKSUM_OFFSET: usize = 9;

    /// Creates a header with the OEM and creator ids of this crate's writers.
    pub const fn new(signature: Signature, revision: u8) -> Self {
        Self {
            signature,
            length: 0,
            revision,
            checksum: 0,
            oem_id: *b"NUMALB",
            oem_table_id: *b"NUMALAB ",
            oem_revision: 1,
            creator_id: *b"NMLB",
            creator_revision: 1,
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} revision {}, {} bytes, OEM \"{}\" \"{}\" revision {:#x}, creator \"{}\" revision {:#x}",
            self.signature,
            self.revision,
            self.length,
            self.oem_id.escape_ascii(),
            self.oem_table_id.escape_ascii(),
            self.oem_revision,
            self.creator_id.escape_ascii(),
            self.creator_revision,
        )
    }
}

/// Returns the byte that makes a table sum to zero, given all its other bytes.
///
/// For a whole table with a correct checksum the result is zero (ACPI 6.5 §5.2.6).
pub fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg()
}
