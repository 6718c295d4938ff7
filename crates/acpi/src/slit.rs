//! System Locality Information Table (ACPI 6.5 §5.2.17): distances between domains.

use core::fmt;

use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::problem::{LimitProblem, MAX_DOMAINS, Problem};
use crate::record::Record;
use crate::table::{read_header, refusal};
use crate::writer::{BuildError, Writer};

/// Distance of a locality to itself.
pub const LOCAL_DISTANCE: u8 = 10;

/// A System Locality Information Table; row and column are proximity domains.
#[derive(Clone, Copy, Debug)]
pub struct Slit<'a> {
    header: Header,
    bytes: &'a [u8],
    localities: usize,
    matrix: &'a [u8],
    excess: usize,
}

impl<'a> Slit<'a> {
    /// Size in bytes of the part before the matrix: the header and the number of localities.
    pub const MATRIX_OFFSET: usize = 44;

    /// Reads a table tolerantly: it may be longer than its matrix.
    ///
    /// # Errors
    /// A [`Finding`] of [`Severity::Error`](crate::Severity::Error) if the signature differs, bytes
    /// are missing, or the matrix is empty, does not fit into the table or has more than
    /// [`MAX_DOMAINS`] rows.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Finding> {
        let (header, bytes, excess) = read_header(bytes, Signature::SLIT, Self::MATRIX_OFFSET)?;
        let refuse = |problem| refusal(Signature::SLIT, Header::SIZE, problem);
        let length = bytes.len();
        let (_, mut rest) = bytes.split_at_checked(Header::SIZE).unwrap_or_default();
        let localities = u64::read(&mut rest)
            .ok_or_else(|| refuse(Problem::TooShort { length, minimum: Self::MATRIX_OFFSET }))?;
        if localities == 0 {
            return Err(refuse(Problem::NoLocalities));
        }
        let overrun = || {
            let expected = table_size(localities);
            refuse(Problem::MatrixOverruns { localities, expected, length })
        };
        let rows = usize::try_from(localities).map_err(|_| overrun())?;
        let cells = rows.checked_mul(rows).ok_or_else(overrun)?;
        let matrix = rest.get(..cells).ok_or_else(overrun)?;
        if localities > u64::from(MAX_DOMAINS) {
            return Err(refuse(LimitProblem::TooManyLocalities { localities }.into()));
        }
        Ok(Self { header, bytes, localities: rows, matrix, excess })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the whole table.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of rows, which is that of columns; at least 1.
    pub fn localities(&self) -> usize {
        self.localities
    }

    /// Returns the distance from one domain to another: 10 is local, 255 unreachable; `None`
    /// outside the matrix.
    pub fn distance(&self, from: u32, to: u32) -> Option<u8> {
        let to = usize::try_from(to).ok()?;
        self.row(usize::try_from(from).ok()?)?.get(to).copied()
    }

    /// Returns one row: the distances from a domain to each domain.
    pub fn row(&self, from: usize) -> Option<&'a [u8]> {
        let start = from.checked_mul(self.localities)?;
        self.matrix.get(start..start.checked_add(self.localities)?)
    }

    /// Returns all rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.matrix.chunks_exact(self.localities)
    }

    /// Returns the number of bytes beyond the length that the header gives.
    pub(crate) fn excess(&self) -> usize {
        self.excess
    }

    /// Returns the size of the table in bytes that its matrix requires.
    pub(crate) fn expected_size(&self) -> u64 {
        table_size(u64::try_from(self.localities).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Slit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (from, row) in self.rows().enumerate() {
            if from > 0 {
                writeln!(f)?;
            }
            write!(f, "domain {from:>3}:")?;
            row.iter().try_for_each(|distance| write!(f, " {distance:>3}"))?;
        }
        Ok(())
    }
}

fn table_size(localities: u64) -> u64 {
    localities.checked_mul(localities).and_then(|cells| cells.checked_add(44)).unwrap_or(u64::MAX)
}

/// Returns the size in bytes of a table with this number of localities, or `None` if it exceeds the
/// largest table.
pub fn size_bytes(localities: usize) -> Option<usize> {
    localities.checked_mul(localities)?.checked_add(Slit::MATRIX_OFFSET)
}

/// Writes a table into `buffer` and returns its bytes; `distances` contains the matrix row by row.
///
/// # Errors
/// [`BuildError::ListLength`] if `distances` does not have `localities` squared items,
/// [`BuildError::BufferTooSmall`] with the required length.
pub fn build<'b>(
    buffer: &'b mut [u8],
    header: Header,
    localities: usize,
    distances: &[u8],
) -> Result<&'b [u8], BuildError> {
    let mut writer = Writer::new(buffer);
    let expected = localities.saturating_mul(localities);
    if distances.len() != expected {
        writer.refuse(BuildError::ListLength { items: distances.len(), expected });
    }
    Header { signature: Signature::SLIT, ..header }.write(&mut writer);
    u64::try_from(localities).unwrap_or(u64::MAX).write(&mut writer);
    writer.bytes(distances);
    crate::builder::finish(writer)
}
