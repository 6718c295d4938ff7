//! Checks of every table: header, entry lengths, fields with constraints.

use super::rules::{Rule, broken};
use crate::entry::RawEntry;
use crate::finding::Finding;
use crate::header::{Header, Signature, checksum};
use crate::problem::{LimitProblem, MAX_PROCESSORS, Problem};
use crate::table::{Format, Table};

/// The receiver of the findings of one table.
pub(super) struct Reporter<'v> {
    pub(super) table: Signature,
    pub(super) visit: &'v mut dyn FnMut(Finding),
}

impl Reporter<'_> {
    /// Reports a problem. Not inlined, because it has some forty callers.
    #[inline(never)]
    pub(super) fn report(&mut self, offset: usize, problem: Problem) {
        (self.visit)(Finding { table: self.table, offset, problem });
    }
}

/// Reports that there are more processors than are read.
pub(super) fn check_processor_count(processors: usize, reporter: &mut Reporter<'_>) {
    if processors > MAX_PROCESSORS {
        reporter.report(Header::LENGTH, LimitProblem::TooManyProcessors { processors }.into());
    }
}

/// Checks checksum, revision and length.
pub(super) fn check_header(
    header: &Header,
    bytes: &[u8],
    excess: usize,
    (oldest, newest): (u8, u8),
    reporter: &mut Reporter<'_>,
) {
    let revision = header.revision;
    if revision < oldest || revision > newest {
        reporter.report(8, Problem::RevisionUnknown { revision, oldest, newest });
    }
    let found = header.checksum;
    let expected = checksum(bytes).wrapping_add(found);
    if found != expected {
        reporter.report(Header::CHECKSUM_OFFSET, Problem::ChecksumWrong { found, expected });
    }
    if excess > 0 {
        reporter.report(bytes.len(), Problem::BytesAfterTable { bytes: excess });
    }
}

/// Checks a table's header, and the length and fields of each entry. `expected_size` returns the
/// size of an entry in bytes, or `None` for a type of unknown size.
pub(super) fn check_layout<F: Format>(
    table: &Table<'_, F>,
    expected_size: impl Fn(&RawEntry<'_>) -> Option<usize>,
    rules: &[Rule],
    reporter: &mut Reporter<'_>,
) {
    check_header(table.header(), table.bytes(), table.excess(), F::REVISIONS, reporter);
    let mut walk = table.walk();
    for (offset, raw) in walk.by_ref() {
        if let Some(expected) = expected_size(&raw) {
            check_size(offset, &raw, expected, reporter);
        }
        for (at, problem) in broken(rules, &raw) {
            reporter.report(offset.saturating_add(at), problem);
        }
    }
    if let Some(problem) = walk.obstacle() {
        reporter.report(walk.offset(), problem);
    }
}

fn check_size(offset: usize, raw: &RawEntry<'_>, expected: usize, reporter: &mut Reporter<'_>) {
    let (kind, length) = (raw.kind, raw.bytes.len());
    if length < expected {
        reporter.report(offset, Problem::EntryTooShort { kind, length, expected });
    } else if length > expected {
        reporter.report(offset, Problem::EntryTooLong { kind, length, expected });
    }
}
