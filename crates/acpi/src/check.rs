//! Checks of tables: each separately, and together.

mod cedt;
mod cross;
mod hmat;
mod layout;
mod madt;
mod rules;
mod scratch;
mod slit;
mod srat;

use thiserror::Error;

pub use scratch::Slot;

use crate::finding::{Finding, Severity};
use crate::tables::{AnyTable, Tables};

/// The caller's scratch memory holds fewer slots than the tables need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("scratch of {have} slots, expected at least {needed}")]
pub struct ScratchTooShort {
    /// Slots required, from [`Tables::scratch_slots`].
    pub needed: usize,
    /// Slots given.
    pub have: usize,
}

/// Reasons why a strict reader refuses a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The first finding of severity [`Severity::Warning`] or above.
    #[error("{0}")]
    Found(Finding),
    /// The caller's scratch memory is too small for the check.
    #[error(transparent)]
    Scratch(#[from] ScratchTooShort),
}

/// Reports every finding about `tables` to `visit`, first for each table separately, then for all
/// together.
///
/// Covers the checks of fwts for these tables and the reasons for which Linux refuses them. Works
/// in the caller's `scratch`, which has at least [`Tables::scratch_slots`] slots, and takes O(n log
/// n) in the number of entries, O(n²) in the rows of a SLIT.
///
/// # Errors
/// [`ScratchTooShort`], before any finding.
pub fn check(
    tables: &Tables<'_>,
    scratch: &mut [Slot],
    visit: &mut dyn FnMut(Finding),
) -> Result<(), ScratchTooShort> {
    let (needed, have) = (tables.scratch_slots(), scratch.len());
    if have < needed {
        return Err(ScratchTooShort { needed, have });
    }
    // A kind of table that is missing here does not compile.
    let Tables { srat, slit, hmat, madt, cedt } = tables;
    macro_rules! each {
        ($($kind:ident)*) => {$(if let Some(table) = $kind {
            $kind::check(table, scratch, visit);
        })*};
    }
    each!(srat slit hmat madt cedt);
    cross::check(tables, scratch, visit);
    Ok(())
}

impl<'a> AnyTable<'a> {
    /// Reads a table and refuses it if it has a finding of severity [`Severity::Warning`] or above.
    ///
    /// # Errors
    /// [`Refusal::Found`] with the first such finding, [`Refusal::Scratch`] if `scratch` is shorter
    /// than [`Tables::scratch_slots`] of this table.
    pub fn read_strict(bytes: &'a [u8], scratch: &mut [Slot]) -> Result<Self, Refusal> {
        let table = Self::read(bytes).map_err(Refusal::Found)?;
        let mut first = None;
        check(&table.into(), scratch, &mut |finding| {
            if first.is_none() && finding.severity() >= Severity::Warning {
                first = Some(finding);
            }
        })?;
        first.map_or(Ok(table), |finding| Err(Refusal::Found(finding)))
    }
}
