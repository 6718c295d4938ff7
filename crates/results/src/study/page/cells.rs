//! A metric by two factors.

use numalab_page::Table;
use numalab_page::number::{figure, percent};
use numalab_record::study::{Factor, FactorKind};

use crate::study::{Effect, StudySummary, Subject};

/// Returns the two factors of a study that has just these, unless one is a number: that has a
/// trend.
fn two<'s>(summary: &'s StudySummary<'_>) -> Option<[&'s Factor; 2]> {
    let [rows, columns] = &summary.document.run.factors[..] else { return None };
    let is_choice = |factor: &Factor| factor.kind == FactorKind::Choice;
    (is_choice(rows) && is_choice(columns)).then_some([rows, columns])
}

/// Returns the medians of a study of two factors by the levels of both, each with its change from
/// the first, and the published figures likewise; `None` for other studies.
pub(super) fn table(summary: &StudySummary<'_>, subject: &Subject) -> Option<Table> {
    let [rows, columns] = two(summary)?;
    let treatments = &summary.document.run.treatments;
    let at = |levels: [usize; 2]| treatments.iter().position(|of| of.levels == levels);
    let published = summary.published_figures(subject);
    let here = |levels| subject.median(at(levels)?);
    let there = |levels| published?.values.get(&treatments[at(levels)?].name).copied();
    let heads = |prefix: &'static str| {
        let head = move |level: &String| format!("{prefix}{} {level}", columns.name);
        columns.levels.iter().map(head)
    };
    let row = |(at, level): (usize, &String)| {
        let levels = || (0..columns.levels.len()).map(move |column| [at, column]);
        let of = levels().map(|levels| cell(levels, here));
        let published = levels().filter_map(|levels| published.map(|_| cell(levels, there)));
        core::iter::once(format!("{} {level}", rows.name)).chain(of).chain(published).collect()
    };
    let source =
        published.map_or_else(String::new, |of| format!("; published: {}, {}", of.unit, of.source));
    let table = Table::new(format!(
        "{} in {} by {} and {}, medians; change of the median from the first{source}",
        subject.quantity.metric, subject.quantity.unit, rows.name, columns.name
    ))
    .words(&*rows.name);
    let heads = heads("").chain(heads("published: ").filter(|_| published.is_some()));
    let table = heads.fold(table, |table, head| table.figures(&*head));
    Some(table.rows(rows.levels.iter().enumerate().map(row)))
}

/// Returns a value with its change from the first one.
fn cell(levels: [usize; 2], value: impl Fn([usize; 2]) -> Option<f64>) -> String {
    match (value(levels), value([0, 0])) {
        (Some(value), Some(first)) if levels != [0, 0] && first > 0.0 => {
            format!("{}, {}", figure(value), percent(100.0 * (value / first - 1.0)))
        }
        (value, _) => value.map_or_else(|| "–".to_owned(), figure),
    }
}

/// Returns the effects of all other cells against the first, in the order of treatments; none for
/// other studies.
pub(super) fn effects<'s>(
    summary: &'s StudySummary<'_>,
    subject: &'s Subject,
) -> Vec<(&'s Subject, &'s Effect)> {
    if two(summary).is_none() {
        return Vec::new();
    }
    let of = |at| {
        let mut effects = subject.effects.iter();
        effects.find(|effect| effect.sides == Some((0, at)))
    };
    let found = (1..summary.document.run.treatments.len()).filter_map(of);
    found.map(|effect| (subject, effect)).collect()
}
