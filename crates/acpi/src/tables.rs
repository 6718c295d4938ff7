//! The kinds of tables that this crate reads, and the tables of one machine as a set.

use core::fmt;

use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::problem::Problem;
use crate::record::Record;
use crate::slit::Slit;
use crate::table::{Format, Table, refusal};

/// Lists and counts the entries of a table of any kind.
trait Kind {
    /// Prints a line for each entry, with a line feed before it.
    fn list(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Returns the number of entries.
    fn count(&self) -> usize;
}

impl<F: Format> Kind for Table<'_, F> {
    fn list(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries().try_for_each(|at| write!(f, "\n{:#06x} {}", at.offset, at.entry))
    }

    fn count(&self) -> usize {
        self.walk().count()
    }
}

/// Its rows are not entries, and checking them needs no scratch memory.
impl Kind for Slit<'_> {
    fn list(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }

    fn count(&self) -> usize {
        0
    }
}

/// Defines every kind of table by one row: its module, its type, the name of its signature, and the
/// signature.
macro_rules! tables {
    ($($(#[$doc:meta])* $field:ident, $kind:ident, $name:ident = $bytes:literal;)*) => {
        impl Signature {
            $($(#[$doc])* pub const $name: Self = Self(*$bytes);)*
            /// The kinds of tables that this crate reads.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        /// A table of any kind that this crate reads.
        #[derive(Clone, Copy, Debug)]
        pub enum AnyTable<'a> {
            $($(#[$doc])* $kind(crate::$field::$kind<'a>),)*
        }

        impl<'a> AnyTable<'a> {
            /// Reads a table tolerantly, as the kind that its signature gives.
            ///
            /// # Errors
            /// A [`Finding`] of [`Severity::Error`](crate::Severity::Error) if this crate does not
            /// support the signature, or the table cannot be read.
            pub fn read(bytes: &'a [u8]) -> Result<Self, Finding> {
                let signature = Signature::read(&mut &*bytes).ok_or_else(|| {
                    let problem = Problem::TooShort { length: bytes.len(), minimum: Header::SIZE };
                    refusal(Signature(*b"????"), 0, problem)
                })?;
                match signature {
                    $(Signature::$name => crate::$field::$kind::read(bytes).map(Self::$kind),)*
                    found => Err(refusal(found, 0, Problem::SignatureUnknown { found })),
                }
            }

            /// Returns the header.
            pub fn header(&self) -> &Header {
                match self {
                    $(Self::$kind(table) => table.header(),)*
                }
            }

            fn kind(&self) -> &dyn Kind {
                match self {
                    $(Self::$kind(table) => table,)*
                }
            }
        }

        /// The tables of one machine; a later table of a kind replaces an earlier one.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Tables<'a> {
            $($(#[$doc])* pub $field: Option<crate::$field::$kind<'a>>,)*
        }

        impl<'a> Tables<'a> {
            /// Adds a table.
            pub fn insert(&mut self, table: AnyTable<'a>) {
                match table {
                    $(AnyTable::$kind(table) => self.$field = Some(table),)*
                }
            }

            /// Removes the table of a kind.
            pub fn remove(&mut self, signature: Signature) {
                match signature {
                    $(Signature::$name => self.$field = None,)*
                    _ => {}
                }
            }

            /// Returns the number of scratch slots that [`check`](crate::check()) needs for these
            /// tables.
            pub fn scratch_slots(&self) -> usize {
                let each = [$(self.$field.as_ref().map_or(0, Kind::count)),*];
                each.into_iter().max().unwrap_or(0)
            }
        }
    };
}

tables! {
    /// System Resource Affinity Table: the nodes of processors and memory.
    srat, Srat, SRAT = b"SRAT";
    /// System Locality Information Table: distances between nodes.
    slit, Slit, SLIT = b"SLIT";
    /// Heterogeneous Memory Attribute Table: latencies, bandwidths and memory-side caches.
    hmat, Hmat, HMAT = b"HMAT";
    /// Multiple APIC Description Table, which has a signature different from its name: processors.
    madt, Madt, MADT = b"APIC";
    /// CXL Early Discovery Table: host bridges and windows of CXL.
    cedt, Cedt, CEDT = b"CEDT";
}

impl Signature {
    /// Returns the signatures of all kinds that this crate reads as text: "SRAT, SLIT or HMAT".
    pub fn choice() -> impl fmt::Display {
        struct Choice;
        impl fmt::Display for Choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let last = Signature::ALL.len().saturating_sub(1);
                Signature::ALL.iter().enumerate().try_for_each(|(at, signature)| match at {
                    0 => write!(f, "{signature}"),
                    at if at == last => write!(f, " or {signature}"),
                    _ => write!(f, ", {signature}"),
                })
            }
        }
        Choice
    }
}

/// Prints the header, then a line per entry (per row of a SLIT), each with its offset.
impl fmt::Display for AnyTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.header())?;
        self.kind().list(f)
    }
}

impl<'a> From<AnyTable<'a>> for Tables<'a> {
    fn from(table: AnyTable<'a>) -> Self {
        let mut tables = Self::default();
        tables.insert(table);
        tables
    }
}
