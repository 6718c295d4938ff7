//! The tables of one machine as a set.

use core::fmt;

use crate::cedt::Cedt;
use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::hmat::Hmat;
use crate::madt::Madt;
use crate::problem::Problem;
use crate::record::Record;
use crate::slit::Slit;
use crate::srat::Srat;
use crate::table::refusal;

/// A table of any kind that this crate reads.
#[derive(Clone, Copy, Debug)]
pub enum AnyTable<'a> {
    /// Affinities.
    Srat(Srat<'a>),
    /// Distances.
    Slit(Slit<'a>),
    /// Latencies, bandwidths and memory-side caches.
    Hmat(Hmat<'a>),
    /// Processors.
    Madt(Madt<'a>),
    /// CXL host bridges and windows.
    Cedt(Cedt<'a>),
}

impl<'a> AnyTable<'a> {
    /// Reads a table tolerantly, as the kind that its signature gives.
    ///
    /// # Errors
    /// A [`Finding`] of [`Severity::Error`](crate::Severity::Error) if this crate does not support
    /// the signature, or the table cannot be read.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Finding> {
        let signature = Signature::read(&mut &*bytes).ok_or_else(|| {
            let problem = Problem::TooShort { length: bytes.len(), minimum: Header::SIZE };
            refusal(Signature(*b"????"), 0, problem)
        })?;
        Ok(match signature {
            Signature::SRAT => Self::Srat(Srat::read(bytes)?),
            Signature::SLIT => Self::Slit(Slit::read(bytes)?),
            Signature::HMAT => Self::Hmat(Hmat::read(bytes)?),
            Signature::MADT => Self::Madt(Madt::read(bytes)?),
            Signature::CEDT => Self::Cedt(Cedt::read(bytes)?),
            found => return Err(refusal(found, 0, Problem::SignatureUnknown { found })),
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        match self {
            Self::Srat(table) => table.header(),
            Self::Slit(table) => table.header(),
            Self::Hmat(table) => table.header(),
            Self::Madt(table) => table.header(),
            Self::Cedt(table) => table.header(),
        }
    }
}

/// Prints the header, then a line per entry (per row of a SLIT), each with its offset.
impl fmt::Display for AnyTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.header())?;
        let mut line =
            |offset: usize, entry: &dyn fmt::Display| write!(f, "\n{offset:#06x} {entry}");
        match self {
            Self::Srat(table) => table.entries().try_for_each(|e| line(e.offset, &e.entry)),
            Self::Hmat(table) => table.entries().try_for_each(|e| line(e.offset, &e.entry)),
            Self::Madt(table) => table.entries().try_for_each(|e| line(e.offset, &e.entry)),
            Self::Cedt(table) => table.entries().try_for_each(|e| line(e.offset, &e.entry)),
            Self::Slit(table) => write!(f, "\n{table}"),
        }
    }
}

/// The tables of one machine; a later table of a kind replaces an earlier one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tables<'a> {
    /// Affinities.
    pub srat: Option<Srat<'a>>,
    /// Distances.
    pub slit: Option<Slit<'a>>,
    /// Latencies, bandwidths and memory-side caches.
    pub hmat: Option<Hmat<'a>>,
    /// Processors.
    pub madt: Option<Madt<'a>>,
    /// CXL host bridges and windows.
    pub cedt: Option<Cedt<'a>>,
}

impl<'a> Tables<'a> {
    /// Adds a table.
    pub fn insert(&mut self, table: AnyTable<'a>) {
        match table {
            AnyTable::Srat(table) => self.srat = Some(table),
            AnyTable::Slit(table) => self.slit = Some(table),
            AnyTable::Hmat(table) => self.hmat = Some(table),
            AnyTable::Madt(table) => self.madt = Some(table),
            AnyTable::Cedt(table) => self.cedt = Some(table),
        }
    }
}

impl<'a> From<AnyTable<'a>> for Tables<'a> {
    fn from(table: AnyTable<'a>) -> Self {
        let mut tables = Self::default();
        tables.insert(table);
        tables
    }
}
