//! A metric by two factors.

use numalab_page::Table;
use numalab_page::number::{figure, percent};
use numalab_record::study::FactorKind;

use crate::study::{StudySummary, Subject};

/// Returns the medians of a study of two factors by the levels of both, each with its change from
/// the first; `None` for other studies, and where a factor is a number, which has a trend.
pub(super) fn table(summary: &StudySummary<'_>, subject: &Subject) -> Option<Table> {
    let run = &summary.document.run;
    let [rows, columns] = &run.factors[..] else { return None };
    if [rows, columns].iter().any(|factor| factor.kind == FactorKind::Scale) {
        return None;
    }
    let median = |levels: [usize; 2]| {
        let of = run.treatments.iter().position(|treatment| treatment.levels == levels)?;
        subject.median(of)
    };
    let first = median([0, 0]);
    let cell = |levels: [usize; 2]| match (median(levels), first) {
        (Some(value), Some(first)) if levels != [0, 0] && first > 0.0 => {
            format!("{}, {}", figure(value), percent(100.0 * (value / first - 1.0)))
        }
        (value, _) => value.map_or_else(|| "–".to_owned(), figure),
    };
    let row = |(at, level): (usize, &String)| {
        let cells = (0..columns.levels.len()).map(|column| cell([at, column]));
        core::iter::once(format!("{} {level}", rows.name)).chain(cells).collect()
    };
    let table = Table::new(format!(
        "{} in {} by {} and {}, medians; change of the median from the first",
        subject.quantity.metric, subject.quantity.unit, rows.name, columns.name
    ))
    .words(&rows.name);
    let heads = columns.levels.iter().map(|level| format!("{} {level}", columns.name));
    let table = heads.fold(table, |table, head| table.figures(&head));
    Some(table.rows(rows.levels.iter().enumerate().map(row)))
}
