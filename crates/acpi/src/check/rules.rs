//! Constraints on single fields, as tables of rules instead of code.

use crate::entry::RawEntry;
use crate::problem::Problem;

/// A constraint on one field of one type of entry.
pub(super) struct Rule {
    kind: u16,
    /// Offset from the start of the entry.
    offset: usize,
    /// Width of the field in bytes.
    width: usize,
    demand: Demand,
    field: &'static str,
}

enum Demand {
    /// Must be zero.
    Reserved,
    /// Only these bits may be set.
    Flags(u64),
    /// At least one bit must be set.
    NonZero,
    /// Larger values are not defined.
    AtMost(u64),
}

impl Rule {
    /// Creates a rule that the whole field must be zero.
    pub(super) const fn reserved(kind: u16, offset: usize, width: usize) -> Self {
        Self { kind, offset, width, demand: Demand::Reserved, field: "Reserved" }
    }

    /// Creates a rule that only the bits of `mask` may be set.
    pub(super) const fn flags(kind: u16, offset: usize, width: usize, mask: u64) -> Self {
        Self { kind, offset, width, demand: Demand::Flags(mask), field: "Flags" }
    }

    pub(super) const fn non_zero(
        kind: u16,
        offset: usize,
        width: usize,
        field: &'static str,
    ) -> Self {
        Self { kind, offset, width, demand: Demand::NonZero, field }
    }

    pub(super) const fn at_most(
        kind: u16,
        offset: usize,
        width: usize,
        maximum: u64,
        field: &'static str,
    ) -> Self {
        Self { kind, offset, width, demand: Demand::AtMost(maximum), field }
    }

    fn judge(&self, value: u64) -> Option<Problem> {
        let field = self.field;
        match self.demand {
            Demand::Reserved if value != 0 => Some(Problem::ReservedNotZero { field, value }),
            Demand::Flags(mask) if value & !mask != 0 => {
                Some(Problem::FlagsUndefined { field, undefined: value & !mask })
            }
            Demand::NonZero if value == 0 => Some(Problem::FieldZero { field }),
            Demand::AtMost(maximum) if value > maximum => {
                Some(Problem::FieldUndefined { field, value, maximum })
            }
            _ => None,
        }
    }
}

/// Returns the problems of an entry under `rules`, with the offset of each field in the entry.
pub(super) fn broken<'r>(
    rules: &'r [Rule],
    raw: &RawEntry<'r>,
) -> impl Iterator<Item = (usize, Problem)> + use<'r> {
    let raw = *raw;
    rules.iter().filter(move |rule| rule.kind == raw.kind).filter_map(move |rule| {
        let value = field(raw.bytes, rule.offset, rule.width)?;
        rule.judge(value).map(|problem| (rule.offset, problem))
    })
}

/// Reads a little-endian field of up to 8 bytes, or returns `None` if the entry ends before it
/// does.
pub(super) fn field(bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
    let field = bytes.get(offset..offset.checked_add(width)?)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
