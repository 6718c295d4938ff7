//! A comparison as text, Markdown, HTML and JSON.

use std::ops::Deref;

use numalab_record::Kind;
use numalab_stats::Verdict;
use serde_json::{Value, json};

use crate::html::markup;
use crate::html::page::page;
use crate::label;
use crate::markdown;
use crate::number::{count, figure, percent, size, trimmed};
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::layout::{cut, table, wrap};
use numalab_analysis::compare::{Compared, ComparedCell, Comparison};

/// Characters of a cell's name on the terminal.
const NAME_WIDTH: usize = 30;
/// Changed cells shown on the terminal.
const MOST_ROWS: usize = 30;

/// Two runs compared, as a page shows them.
#[derive(Debug)]
pub struct RunsPage<'a>(pub &'a Comparison);

impl Deref for RunsPage<'_> {
    type Target = Comparison;

    fn deref(&self) -> &Comparison {
        self.0
    }
}

impl RunsPage<'_> {
    /// The comparison as text of at most 80 columns: every kind, and the cells that
    /// are better or worse.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut out = format!("{}\n", self.headline(style));
        for part in [self.short_kinds(), self.changed_cells(), self.environment_table()] {
            if !part.rows.is_empty() {
                let caption = style.faint(&wrap(&part.caption, 0));
                out.push_str(&format!("\n{caption}\n{}", table(&part, style)));
            }
        }
        for note in self.notes() {
            out.push_str(&format!("\n{}\n", wrap(&note, 0)));
        }
        out
    }

    /// The comparison as Markdown, every cell included.
    #[must_use]
    pub fn markdown(&self) -> String {
        let headline = markdown::escape(&self.headline(Style::Plain));
        let mut out = format!("# Comparison of two runs\n\n**{headline}**\n");
        for part in self.full_tables() {
            out.push_str(&markdown::table(&part));
        }
        for note in self.notes() {
            out.push_str(&format!("\n{}\n", markdown::escape(&note)));
        }
        out
    }

    /// The comparison as one self-contained page, every cell included.
    #[must_use]
    pub fn html(&self) -> String {
        let mut body = format!(
            "<header><p class=\"brand\">numalab compare</p><h1>Comparison of two runs</h1>\
             </header>\n<main>\n<ol class=\"lead\"><li>{}</li></ol>\n",
            markup::escape(&self.headline(Style::Plain))
        );
        for part in self.full_tables() {
            body.push_str(&format!(
                "<section><h2>{}</h2>\n{}</section>\n",
                markup::escape(&part.caption),
                markup::table(&part)
            ));
        }
        let notes = self.notes();
        let notes: String =
            notes.iter().map(|n| format!("<p>{}</p>\n", markup::escape(n))).collect();
        body.push_str(&format!("<section><h2>Method</h2>\n{notes}</section>\n</main>\n"));
        page("Comparison of two runs", &body)
    }

    /// The comparison as JSON.
    ///
    /// # Errors
    /// Whatever `serde_json` cannot write.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let rows = |rows: &[ComparedCell]| rows.iter().map(row_json).collect::<Vec<Value>>();
        let facts = self.environment.iter().map(|fact| {
            json!({ "name": fact.name, "baseline": fact.baseline, "candidate": fact.candidate })
        });
        let value = json!({
            "schema": Kind::Comparison,
            "tolerance_percent": self.tolerance.as_percent(),
            "any_worse": self.any_worse(),
            "kinds": rows(&self.kinds),
            "cells": rows(&self.rows),
            "only_in_baseline": self.only_in_baseline,
            "only_in_candidate": self.only_in_candidate,
            "environment": facts.collect::<Vec<Value>>(),
        });
        serde_json::to_string_pretty(&value).map(|text| text + "\n")
    }

    /// How many rows got each verdict.
    fn headline(&self, style: Style) -> String {
        let number =
            |wanted: fn(&Verdict) -> bool| self.judged().filter(|row| wanted(&row.verdict)).count();
        let worse = number(|verdict| *verdict == Verdict::Worse);
        let better = number(|verdict| *verdict == Verdict::Better);
        let paint = |marked: usize, text: String, as_mark: &dyn Fn(&str) -> String| {
            if marked > 0 { as_mark(&text) } else { text }
        };
        format!(
            "{}, {}, {} within {} %, {} undecided",
            paint(worse, format!("{} worse", count(worse, "figure")), &|text| style.bad(text)),
            paint(better, format!("{better} better"), &|text| style.good(text)),
            number(|verdict| *verdict == Verdict::Equivalent),
            trimmed(self.tolerance.as_percent()),
            number(|verdict| matches!(verdict, Verdict::Inconclusive { .. })),
        )
    }

    fn kinds_table(&self) -> Table {
        full_table("All cells of a kind together, one pair a cell", &self.kinds)
    }

    /// What changed, largest change first, for a terminal.
    fn changed_cells(&self) -> Table {
        let is_changed =
            |row: &&ComparedCell| matches!(row.verdict, Verdict::Better | Verdict::Worse);
        let mut rows: Vec<&ComparedCell> = self.rows.iter().filter(is_changed).collect();
        let size = |row: &ComparedCell| row.change_percent.unwrap_or(0.0).abs();
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let hidden = rows.len().saturating_sub(MOST_ROWS);
        let caption = match hidden {
            0 => "Cells that changed, largest change first".to_owned(),
            hidden => format!("Cells that changed, largest change first; {hidden} more not shown"),
        };
        short_table(&caption, rows.into_iter().take(MOST_ROWS))
    }

    fn short_kinds(&self) -> Table {
        short_table("All cells of a kind together, one pair a cell", self.kinds.iter())
    }

    fn environment_table(&self) -> Table {
        let absent = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
        let facts = self.environment.iter();
        Table::new("What differs between the systems")
            .words("fact")
            .words("baseline")
            .words("candidate")
            .rows(facts.map(|f| vec![f.name.clone(), absent(&f.baseline), absent(&f.candidate)]))
    }

    fn full_tables(&self) -> Vec<Table> {
        let cells = full_table("Cell by cell", &self.rows);
        let tables = [self.kinds_table(), cells, self.environment_table()];
        tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "A figure is better or worse only if the whole 95 % interval of its change lies \
             beyond {} %, and the test holds after Holm's adjustment over {}. One run's windows \
             do not show how runs of the same system differ; the {} % stand for that.",
            trimmed(self.tolerance.as_percent()),
            count(self.rows.len() + self.kinds.len(), "row"),
            trimmed(self.tolerance.as_percent())
        )];
        for (ids, which) in
            [(&self.only_in_baseline, "baseline"), (&self.only_in_candidate, "candidate")]
        {
            if let Some(first) = ids.first() {
                notes.push(format!(
                    "{} with figures in the {which} only, the first `{first}`: not judged.",
                    count(ids.len(), "cell")
                ));
            }
        }
        notes
    }
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
            verdict_text(row.verdict),
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
        let mut verdict = verdict_text(row.verdict);
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

fn verdict_text(verdict: Verdict) -> String {
    match verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Equivalent => "equivalent".to_owned(),
        Verdict::Inconclusive { .. } => "inconclusive".to_owned(),
    }
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
        "verdict": verdict_text(row.verdict),
        "note": note(row),
    })
}
