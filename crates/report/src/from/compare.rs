//! Two runs compared.

use numalab_analysis::compare::{Compared, ComparedCell, Comparison, FactDifference};
use numalab_record::Kind;
use numalab_stats::Verdict;
use serde_json::{Value, json};

use crate::csv::csv_line;
use crate::label;
use crate::number::{count, figure, percent, size, trimmed};
use crate::page::{Lead, Mood, Page, Panel, Part, Report, Terminal};
use crate::table::Table;
use crate::terminal::layout::cut;

/// Characters of a cell's name on the terminal.
const NAME_WIDTH: usize = 30;
/// Changed cells shown on the terminal.
const MOST_ROWS: usize = 30;
const KINDS: &str = "All cells of a kind together, one pair a cell";
const HEADER: &str = "cell,what,metric,unit,baseline,candidate,change_percent,lo_percent,hi_percent,\
                      values,verdict\n";

impl Report for Comparison {
    fn page(&self) -> Page {
        let kinds = Panel::table(full_table(KINDS, &self.kinds))
            .on_terminal(Terminal::Instead(vec![short_table(KINDS, self.kinds.iter())]));
        let cells = Panel::table(full_table("Cell by cell", &self.rows))
            .on_terminal(Terminal::Instead(vec![changed_cells(self)]));
        let facts = Panel::table(environment_table(&self.environment));
        let part = |title: &str, panel: Panel| Part::of(title, vec![panel]);
        let method = Part { title: "Method".to_owned(), notes: notes(self), ..Part::default() };
        let parts = [
            part("By kind", kinds),
            part("Cells", cells),
            part("What differs between the systems", facts),
            Some(method),
        ];
        Page {
            brand: "numalab compare".to_owned(),
            title: "Comparison of two runs".to_owned(),
            lead: vec![headline(self)],
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        let rows = |rows: &[ComparedCell]| rows.iter().map(row_json).collect::<Vec<Value>>();
        super::json(&json!({
            "schema": Kind::Comparison,
            "tolerance_percent": self.tolerance.as_percent(),
            "any_worse": self.any_worse(),
            "kinds": rows(&self.kinds),
            "cells": rows(&self.rows),
            "only_in_baseline": self.only_in_baseline,
            "only_in_candidate": self.only_in_candidate,
            "environment": facts_json(&self.environment),
        }))
    }

    fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let line = |row: &ComparedCell| {
            csv_line(&[
                row.of.cell().map_or_else(String::new, |cell| cell.0.clone()),
                what(&row.of),
                row.metric.name().to_owned(),
                row.metric.unit().to_string(),
                row.baseline.to_string(),
                row.candidate.to_string(),
                number(row.change_percent),
                number(row.interval_percent.map(|interval| interval.lo)),
                number(row.interval_percent.map(|interval| interval.hi)),
                row.values.to_string(),
                label::verdict_word(row.verdict).to_owned(),
            ])
        };
        HEADER.to_owned() + &self.judged().map(line).collect::<String>()
    }
}

/// Facts that differ, for programs.
pub(super) fn facts_json(facts: &[FactDifference]) -> Vec<Value> {
    let fact = |fact: &FactDifference| json!({ "name": fact.name, "baseline": fact.baseline, "candidate": fact.candidate });
    facts.iter().map(fact).collect()
}

/// How many rows got each verdict.
fn headline(of: &Comparison) -> Lead {
    let number = |wanted: fn(&Verdict) -> bool| of.judged().filter(|r| wanted(&r.verdict)).count();
    let worse = number(|verdict| *verdict == Verdict::Worse);
    let better = number(|verdict| *verdict == Verdict::Better);
    let sentence = format!(
        "{worse} worse, {better} better, {} within {} %, {} undecided.",
        number(|verdict| *verdict == Verdict::Equivalent),
        trimmed(of.tolerance.as_percent()),
        number(|verdict| matches!(verdict, Verdict::Inconclusive { .. })),
    );
    let mood = match (worse, better) {
        (0, 0) => Mood::Plain,
        (0, _) => Mood::Good,
        _ => Mood::Bad,
    };
    Lead::new(count(worse + better, "figure") + " changed", sentence, mood)
}

/// What changed, largest change first, for a terminal.
fn changed_cells(of: &Comparison) -> Table {
    let is_changed = |row: &&ComparedCell| matches!(row.verdict, Verdict::Better | Verdict::Worse);
    let mut rows: Vec<&ComparedCell> = of.rows.iter().filter(is_changed).collect();
    let size = |row: &ComparedCell| row.change_percent.unwrap_or(0.0).abs();
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let hidden = rows.len().saturating_sub(MOST_ROWS);
    let caption = match hidden {
        0 => "Cells that changed, largest change first".to_owned(),
        hidden => format!("Cells that changed, largest change first; {hidden} more not shown"),
    };
    short_table(&caption, rows.into_iter().take(MOST_ROWS))
}

/// Facts that differ.
pub(super) fn environment_table(facts: &[FactDifference]) -> Table {
    let absent = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
    Table::new("Facts that are not the same")
        .words("fact")
        .words("baseline")
        .words("candidate")
        .rows(facts.iter().map(|f| vec![f.name.clone(), absent(&f.baseline), absent(&f.candidate)]))
}

fn notes(of: &Comparison) -> Vec<String> {
    let mut notes = vec![format!(
        "A figure is better or worse only if the whole 95 % interval of its change lies \
         beyond {} %, and the test holds after Holm's adjustment over {}. One run's windows \
         do not show how runs of the same system differ; the {} % stand for that.",
        trimmed(of.tolerance.as_percent()),
        count(of.rows.len() + of.kinds.len(), "row"),
        trimmed(of.tolerance.as_percent())
    )];
    for (ids, which) in [(&of.only_in_baseline, "baseline"), (&of.only_in_candidate, "candidate")] {
        if let Some(first) = ids.first() {
            notes.push(format!(
                "{} with figures in the {which} only, the first `{first}`: not judged.",
                count(ids.len(), "cell")
            ));
        }
    }
    notes
}

/// Rows as a terminal has room for.
fn short_table<'a>(caption: &str, rows: impl Iterator<Item = &'a ComparedCell>) -> Table {
    let line = |row: &ComparedCell| {
        vec![
            cut(&name(row), NAME_WIDTH),
            figure(row.baseline),
            figure(row.candidate),
            row.metric.unit().to_string(),
            row.change_percent.map_or_else(|| "–".to_owned(), percent),
            label::verdict_word(row.verdict).to_owned(),
        ]
    };
    Table::new(caption)
        .words("what")
        .figures("baseline")
        .figures("candidate")
        .words("unit")
        .figures("change")
        .words("verdict")
        .rows(rows.map(line))
}

fn full_table(caption: &str, rows: &[ComparedCell]) -> Table {
    let line = |row: &ComparedCell| {
        let interval = row.interval_percent;
        let interval = interval.map(|i| format!("{} to {}", percent(i.lo), percent(i.hi)));
        let mut verdict = label::verdict_word(row.verdict).to_owned();
        if let Some(note) = note(row) {
            verdict.push_str(&format!(" ({note})"));
        }
        vec![
            name(row),
            figure(row.baseline),
            figure(row.candidate),
            row.metric.unit().to_string(),
            row.change_percent.map_or_else(|| "–".to_owned(), percent),
            interval.unwrap_or_else(|| "–".to_owned()),
            verdict,
        ]
    };
    Table::new(caption)
        .words("what")
        .figures("baseline")
        .figures("candidate")
        .words("unit")
        .figures("change")
        .figures("95 % interval")
        .words("verdict")
        .rows(rows.iter().map(line))
        .moods(rows.iter().map(|row| label::mood(row.verdict)))
}

fn name(row: &ComparedCell) -> String {
    row.of.cell().map_or_else(|| what(&row.of), |id| id.0.clone())
}

fn what(of: &Compared) -> String {
    match of {
        Compared::Cell(cell) => label::experiment(&cell.experiment),
        Compared::Kind { kind, cells } => format!("all {cells} {kind} cells"),
    }
}

fn note(row: &ComparedCell) -> Option<String> {
    let (old, new) = row.pages_differ?;
    Some(format!("pages of {} became {}", size(old), size(new)))
}

fn row_json(row: &ComparedCell) -> Value {
    json!({
        "cell": row.of.cell(),
        "what": what(&row.of),
        "metric": row.metric,
        "unit": row.metric.unit().to_string(),
        "baseline": row.baseline,
        "candidate": row.candidate,
        "change_percent": row.change_percent,
        "interval_percent": row.interval_percent.map(|interval| [interval.lo, interval.hi]),
        "values": row.values,
        "verdict": label::verdict_word(row.verdict),
        "note": note(row),
    })
}
