//! Two runs of a study side by side: another machine, another kernel, another day.

use std::ops::Deref;

use numalab_analysis::compare::FactDifference;
use numalab_analysis::study::{PairRow, StudyPair, Subject};
use numalab_record::Kind;
use numalab_stats::{Comparison, Verdict};
use serde_json::{Value, json};

use super::words;
use crate::html::markup;
use crate::html::page::page;
use crate::label::verdict_word;
use crate::markdown;
use crate::number::figure;
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::layout::{table, wrap};

/// What cannot be known of two runs that were not taken in turns.
const APART: &str = "The two runs were taken apart, so that a drift of the machine between them looks \
     like a difference. What each of them found by itself was taken in turns.";

/// Two runs of a study as a page shows them.
#[derive(Debug)]
pub struct PairPage<'a>(pub &'a StudyPair<'a>);

impl<'a> Deref for PairPage<'a> {
    type Target = StudyPair<'a>;

    fn deref(&self) -> &StudyPair<'a> {
        self.0
    }
}

impl PairPage<'_> {
    /// As text of at most 80 columns.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let headline = wrap(&self.headline(), 0);
        let mut out = match (self.any_worse(), self.any_better()) {
            (true, _) => style.bad(&headline),
            (false, true) => style.good(&headline),
            (false, false) => style.heading(&headline),
        };
        out.push('\n');
        for part in self.tables() {
            out.push_str(&format!("\n{}\n{}", style.faint(&part.caption), table(&part, style)));
        }
        out.push_str(&format!("\n{}\n", wrap(APART, 0)));
        out
    }

    /// As Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("**{}**\n", markdown::escape(&self.headline()));
        for part in self.tables() {
            out.push_str(&format!("\n## {}\n{}", part.caption, markdown::table(&part)));
        }
        out.push_str(&format!("\n{APART}\n"));
        out
    }

    /// As one self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        let section = |part: &Table| {
            format!("<section><h2>{}</h2>\n{}</section>\n", part.caption, markup::table(part))
        };
        let sections: String = self.tables().iter().map(section).collect();
        let question = markup::escape(&self.before.document.run.question);
        let body = format!(
            "<header><p class=\"brand\">numalab compare</p><h1>{question}</h1></header>\n<main>\n\
             <ol class=\"lead\"><li>{}</li></ol>\n{sections}<p>{APART}</p>\n</main>\n",
            markup::escape(&self.headline())
        );
        page("Two runs of a study", &body)
    }

    /// As JSON.
    ///
    /// # Errors
    /// Whatever `serde_json` cannot write.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let row = |row: &PairRow| {
            json!({
                "metric": row.metric,
                "treatment": row.treatment,
                "baseline_median": row.medians[0],
                "candidate_median": row.medians[1],
                "change_percent": row.found.percent(),
                "interval_percent": row.found.percent_interval().map(|i| [i.lo, i.hi]),
                "rank_sum_p": row.found.difference.p,
                "verdict": verdict_word(row.verdict),
            })
        };
        let fact = |fact: &FactDifference| json!({ "name": fact.name, "baseline": fact.baseline, "candidate": fact.candidate });
        let value: Value = json!({
            "schema": Kind::StudyComparison,
            "margin_percent": self.tolerance.as_percent(),
            "values": self.rows.iter().map(row).collect::<Vec<_>>(),
            "environment": self.environment.iter().map(fact).collect::<Vec<_>>(),
            "any_worse": self.any_worse(),
        });
        serde_json::to_string_pretty(&value)
    }

    fn headline(&self) -> String {
        let named = |verdict: Verdict| {
            let rows = self.rows.iter().filter(move |row| row.verdict == verdict);
            let names = rows.map(|row| {
                format!("{} under {} {}", row.metric, row.treatment, words::change(&row.found))
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let parts = [("Worse", Verdict::Worse), ("Better", Verdict::Better)];
        let parts = parts.map(|(word, verdict)| (word, named(verdict)));
        let said: Vec<String> = parts
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(word, names)| format!("{word}: {names}."))
            .collect();
        match said.is_empty() {
            true => format!(
                "Nothing is shown to differ by more than {} %.",
                crate::number::trimmed(self.tolerance.as_percent())
            ),
            false => said.join(" "),
        }
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.values(), self.answers()];
        if !self.environment.is_empty() {
            tables.push(self.facts());
        }
        tables
    }

    fn values(&self) -> Table {
        let margin = self.tolerance.as_percent();
        let rows = self.rows.iter().map(|row| {
            let mut judged = row.found.clone();
            judged.verdict = row.verdict;
            vec![
                row.metric.clone(),
                row.treatment.clone(),
                figure(row.medians[0]),
                figure(row.medians[1]),
                words::change_with_interval(&row.found),
                match row.verdict {
                    Verdict::Inconclusive { .. } => "inconclusive".to_owned(),
                    _ => words::verdict(&judged, margin),
                },
            ]
        });
        Table::new("The second run against the first")
            .words("metric")
            .words("treatment")
            .figures("first")
            .figures("second")
            .figures("change")
            .words("verdict")
            .rows(rows)
    }

    /// What each run found by itself.
    fn answers(&self) -> Table {
        let rows = self.before.answers().filter_map(|(subject, effect)| {
            let title = subject.title();
            let mut others = self.after.answers();
            let (other_subject, other) = others
                .find(|(other, found)| other.title() == title && found.label == effect.label)?;
            let said = |subject: &Subject, found: &Comparison| {
                let verdict = words::verdict(found, subject.margin_percent);
                format!("{}, {verdict}", words::change(found))
            };
            let (first, second) = (said(subject, &effect.found), said(other_subject, &other.found));
            Some(vec![title, effect.label.clone(), first, second])
        });
        Table::new("What each run found")
            .words("metric")
            .words("change")
            .words("first")
            .words("second")
            .rows(rows)
    }

    fn facts(&self) -> Table {
        let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
        let rows = self
            .environment
            .iter()
            .map(|fact| vec![fact.name.clone(), word(&fact.baseline), word(&fact.candidate)]);
        Table::new("What differed").words("fact").words("first").words("second").rows(rows)
    }
}
