//! A metric by two factors.

use numalab_page::Table;
use numalab_page::number::{figure, percent};
use numalab_record::study::{Factor, FactorKind};

use crate::study::{Effect, StudySummary, Subject};

/// Returns the two factors of a study that has exactly two, unless one is numeric: a number has a
/// trend.
fn two<'s>(summary: &'s StudySummary<'_>) -> Option<[&'s Factor; 2]> {
    let [rows, columns] = &summary.document.run.factors[..] else { return None };
    let is_choice = |factor: &Factor| factor.kind == FactorKind::Choice;
    (is_choice(rows) && is_choice(columns)).then_some([rows, columns])
}

/// Returns the medians of a study of two factors by the levels of both, each with its change from
/// the first cell as the study estimates it, and the published figures in the same form; `None` for
/// other studies.
pub(super) fn table(summary: &StudySummary<'_>, subject: &Subject) -> Option<Table> {
    let [rows, columns] = two(summary)?;
    let treatments = &summary.document.run.treatments;
    let at = |levels: [usize; 2]| treatments.iter().position(|of| of.levels == levels);
    let published = summary.published_figures(subject);
    let first = at([0, 0]);
    let change_here = |to| subject.change_percent((first?, to));
    let change_there = |to| summary.published_percent(subject, (first?, to));
    let here = |levels| {
        let to = at(levels)?;
        Some(cell(subject.median(to)?, change_here(to).filter(|_| first != Some(to))))
    };
    let there = |levels| {
        let to = at(levels)?;
        let value = *published?.values.get(&treatments[to].name)?;
        Some(cell(value, change_there(to).filter(|_| first != Some(to))))
    };
    let heads = |prefix: &'static str| {
        let head = move |level: &String| format!("{prefix}{} {level}", columns.name);
        columns.levels.iter().map(head)
    };
    let row = |(at, level): (usize, &String)| {
        let levels = || (0..columns.levels.len()).map(move |column| [at, column]);
        let of = levels().map(here);
        let there = levels().map(there).filter(|_| published.is_some());
        let shown = of.chain(there).map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
        core::iter::once(format!("{} {level}", rows.name)).chain(shown).collect()
    };
    let source =
        published.map_or_else(String::new, |of| format!("; published: {}, {}", of.unit, of.source));
    let unit = &subject.quantity.unit;
    let of_unit = if unit.is_empty() { String::new() } else { format!(" in {unit}") };
    let table = Table::new(format!(
        "{}{of_unit} by {} and {}, medians; change from the first, from pairs within blocks{source}",
        subject.quantity.metric, rows.name, columns.name
    ))
    .words(&*rows.name);
    let heads = heads("").chain(heads("published: ").filter(|_| published.is_some()));
    let table = heads.fold(table, |table, head| table.figures(&*head));
    Some(table.rows(rows.levels.iter().enumerate().map(row)))
}

fn cell(value: f64, change: Option<f64>) -> String {
    match change {
        Some(change) => format!("{}, {}", figure(value), percent(change)),
        None => figure(value),
    }
}

/// Returns the effects of all other cells compared with the first, in the order of treatments;
/// empty for other studies.
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
