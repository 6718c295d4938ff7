//! Checks that every table gets: header, entry lengths, fields with fixed demands.

use super::rules::{Rule, broken};
use crate::entry::RawEntry;
use crate::finding::Finding;
use crate::header::{Header, Signature, checksum};
use crate::problem::{LimitProblem, MAX_PROCESSORS, Problem};
use crate::table::{Format, Table};

/// Where findings of one table go.
pub(super) struct Reporter<'v> {
    pub(super) table: Signature,
    pub(super) visit: &'v mut dyn FnMut(Finding),
}

impl Reporter<'_> {
    /// Not inlined: it has some forty callers.
    #[inline(never)]
    pub(super) fn report(&mut self, offset: usize, problem: Problem) {
        (self.visit)(Finding { table: self.table, offset, problem });
    }
}

/// Reports more processors than are read.
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

/// Checks a table's header, and each entry's length and fields; `expected_size` gives the bytes an
/// entry should have, or `None` for a type of which that is not known.
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
