//! Matrix values in physical units.

use core::fmt;

/// The quantity in a matrix of the HMAT (ACPI 6.5 table 5.146, "Data Type").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Latency of both reads and writes.
    AccessLatency,
    /// Latency of reads.
    ReadLatency,
    /// Latency of writes.
    WriteLatency,
    /// Bandwidth of both reads and writes.
    AccessBandwidth,
    /// Bandwidth of reads.
    ReadBandwidth,
    /// Bandwidth of writes.
    WriteBandwidth,
}

impl DataType {
    /// Returns the type of a code, or `None` for a reserved one.
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

    /// Returns true for a latency, in picoseconds, and false for a bandwidth, in MB/s.
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

/// The meaning of a matrix cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellValue {
    /// Picoseconds or MB/s.
    Value(u64),
    /// Not given by the firmware (0).
    Unknown,
    /// The target cannot be reached (0xffff).
    Unreachable,
    /// The cell times the base unit exceeds 64 bits, or the data type is reserved.
    Meaningless,
}

impl CellValue {
    /// The unit of a latency in revision 1 is a tenth of a nanosecond.
    const REVISION_1_LATENCY_PS: u64 = 100;
    /// The unit of a bandwidth in revision 1 is a tenth of a MB/s.
    const REVISION_1_BANDWIDTH_DIVISOR: u64 = 10;

    /// Converts a cell to picoseconds or MB/s.
    ///
    /// From revision 2 on, a cell times the base unit is in picoseconds or MB/s (ACPI 6.5 table
    /// 5.146). In revision 1 it is in tenths of a nanosecond or of a MB/s, as Linux reads it
    /// (`hmat_normalize`), and rounded up as Linux does.
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

    /// Returns picoseconds or MB/s, if the cell has a value.
    pub fn value(self) -> Option<u64> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }
}
