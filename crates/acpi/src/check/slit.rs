//! Checks of a single SLIT.

use super::layout::{Reporter, check_header};
use super::scratch::Slot;
use crate::finding::Finding;
use crate::header::{Header, Signature};
use crate::problem::Problem;
use crate::slit::{LOCAL_DISTANCE, Slit};

pub(super) fn check(table: &Slit<'_>, _: &mut [Slot], visit: &mut dyn FnMut(Finding)) {
    let reporter = &mut Reporter { table: Signature::SLIT, visit };
    check_header(table.header(), table.bytes(), table.excess(), (1, 1), reporter);
    let (expected, length) = (table.expected_size(), table.bytes().len());
    if u64::try_from(length).is_ok_and(|length| length > expected) {
        let localities = u64::try_from(table.localities()).unwrap_or(u64::MAX);
        let problem = Problem::MatrixTooLong { localities, expected, length };
        reporter.report(Header::LENGTH, problem);
    }
    for (from, row) in table.rows().enumerate() {
        let start = Slit::MATRIX_OFFSET.saturating_add(from.saturating_mul(table.localities()));
        for (to, distance) in row.iter().enumerate() {
            if let Some(problem) = judge(table, from, to, *distance) {
                reporter.report(start.saturating_add(to), problem);
            }
        }
    }
}

/// Returns the problem that Linux (`slit_valid`) or fwts finds with a cell; an asymmetric pair is
/// reported once, at its upper cell.
fn judge(table: &Slit<'_>, from: usize, to: usize, distance: u8) -> Option<Problem> {
    if from == to {
        let wrong = distance != LOCAL_DISTANCE;
        return wrong.then_some(Problem::LocalDistanceNotTen { locality: from, distance });
    }
    if distance < LOCAL_DISTANCE {
        return Some(Problem::DistanceReserved { from, to, distance });
    }
    if distance == LOCAL_DISTANCE {
        return Some(Problem::RemoteDistanceTen { from, to });
    }
    let back = *table.row(to)?.get(from)?;
    (to > from && back != distance).then_some(Problem::DistanceAsymmetric {
        from,
        to,
        distance,
        back,
    })
}
