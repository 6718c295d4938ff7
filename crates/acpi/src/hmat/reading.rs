//! Matrix values in physical units.

use core::fmt;

/// What a matrix of the HMAT holds (ACPI 6.5 table 5.146, "Data Type").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Latency of reads and writes alike.
    AccessLatency,
    /// Latency of reads.
    ReadLatency,
    /// Latency of writes.
    WriteLatency,
    /// Bandwidth of reads and writes alike.
    AccessBandwidth,
    /// Bandwidth of reads.
    ReadBandwidth,
    /// Bandwidth of writes.
    WriteBandwidth,
}

impl DataType {
    /// The type of a code, or `None` for a reserved one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::AccessLatency,
            1 => Self::ReadLatency,
            2 => Self::WriteLatency,
            3 => Self::AccessBandwidth,
            4 => Self::ReadBandwidth,
            5 => Self::WriteBandwidth,
            _ => return None,
        })
    }

    /// Whether it is a latency, in picoseconds, not a bandwidth, in MB/s.
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::AccessLatency | Self::ReadLatency | Self::WriteLatency)
    }
}

impl From<DataType> for u8 {
    fn from(data_type: DataType) -> Self {
        match data_type {
            DataType::AccessLatency => 0,
            DataType::ReadLatency => 1,
            DataType::WriteLatency => 2,
            DataType::AccessBandwidth => 3,
            DataType::ReadBandwidth => 4,
            DataType::WriteBandwidth => 5,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AccessLatency => "access latency",
            Self::ReadLatency => "read latency",
            Self::WriteLatency => "write latency",
            Self::AccessBandwidth => "access bandwidth",
            Self::ReadBandwidth => "read bandwidth",
            Self::WriteBandwidth => "write bandwidth",
        })
    }
}

/// A direction of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// From memory.
    Read,
    /// To memory.
    Write,
}

impl Access {
    pub(super) fn latency(self) -> DataType {
        match self {
            Self::Read => DataType::ReadLatency,
            Self::Write => DataType::WriteLatency,
        }
    }

    pub(super) fn bandwidth(self) -> DataType {
        match self {
            Self::Read => DataType::ReadBandwidth,
            Self::Write => DataType::WriteBandwidth,
        }
    }
}

/// What a matrix cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Picoseconds or MB/s.
    Value(u64),
    /// The firmware gives none (0).
    Unknown,
    /// The target cannot be reached (0xffff).
    Unreachable,
    /// Cell times base unit exceeds 64 bits, or the data type is reserved.
    Meaningless,
}

impl Reading {
    /// A latency's unit in revision 1 is a tenth of a nanosecond.
    const REVISION_1_LATENCY_PS: u64 = 100;
    /// A bandwidth's unit in revision 1 is a tenth of a MB/s.
    const REVISION_1_BANDWIDTH_DIVISOR: u64 = 10;

    /// A cell in picoseconds or MB/s.
    ///
    /// Since revision 2 a cell times the base unit is picoseconds or MB/s (ACPI 6.5 table 5.146).
    /// In revision 1 it is tenths of a nanosecond or of a MB/s, as Linux reads it
    /// (`hmat_normalize`), rounded up as there.
    #[must_use]
    pub fn new(revision: u8, data_type: u8, base_unit: u64, value: u16) -> Self {
        match value {
            0 => return Self::Unknown,
            u16::MAX => return Self::Unreachable,
            _ => {}
        }
        let Some(data_type) = DataType::from_code(data_type) else {
            return Self::Meaningless;
        };
        let product = u64::from(value).checked_mul(base_unit);
        let scaled = match (revision, data_type.is_latency()) {
            (2.., _) => product,
            (_, true) => product.and_then(|tenths| tenths.checked_mul(Self::REVISION_1_LATENCY_PS)),
            (_, false) => product.map(|tenths| tenths.div_ceil(Self::REVISION_1_BANDWIDTH_DIVISOR)),
        };
        scaled.map_or(Self::Meaningless, Self::Value)
    }

    /// Picoseconds or MB/s, if the cell gives any.
    #[must_use]
    pub fn value(self) -> Option<u64> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }
}
