//! Two runs of a study compared: another machine, another kernel, another day.

use numalab_analysis::study::{PairRow, StudyPair, Subject};
use numalab_record::Kind;
use numalab_stats::{Comparison, Verdict};

use super::words;
use crate::documents::{StudyComparison, document};
use crate::from::compare::environment_table;
use crate::label;
use crate::number::{figure, trimmed};
use crate::page::{Lead, Mood, Page, Panel, Part};
use crate::report::Report;
use crate::rows::{Rows, optional};
use crate::table::Table;

/// What cannot be known of two runs that were not taken in turns.
const APART: &str = "The two runs were taken apart, so that a drift of the machine between them looks \
     like a difference. What each of them found by itself was taken in turns.";

impl Report for StudyPair<'_> {
    fn page(&self) -> Page {
        let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
        let values = part("Values", values(self)).map(|part| part.noted(vec![APART.to_owned()]));
        let parts = [
            values,
            part("What each run found by itself", answers(self)),
            part("What differs between the systems", environment_table(&self.environment)),
        ];
        Page {
            brand: "numalab compare".to_owned(),
            title: self.before.document.run.question.clone(),
            meta: "Two runs of a study".to_owned(),
            lead: lead(self),
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::StudyComparison, &StudyComparison::of(self))
    }

    fn rows(&self) -> Option<Rows> {
        let row = |row: &PairRow| {
            let interval = row.found.percent_interval();
            vec![
                row.metric.clone(),
                row.treatment.clone(),
                row.medians[0].to_string(),
                row.medians[1].to_string(),
                optional(row.found.percent()),
                optional(interval.map(|interval| interval.lo)),
                optional(interval.map(|interval| interval.hi)),
                label::verdict_word(row.verdict).to_owned(),
            ]
        };
        let rows = Rows::new("compared studies")
            .labels(["metric", "treatment"])
            .values("", ["baseline_median", "candidate_median"])
            .values("%", ["change_percent", "lo_percent", "hi_percent"])
            .texts(["verdict"]);
        Some(rows.rows(self.rows.iter().map(row)))
    }
}

/// What is worse, what is better, or that nothing is shown to differ.
fn lead(of: &StudyPair<'_>) -> Vec<Lead> {
    let named = |(name, verdict, mood): (&str, Verdict, Mood)| {
        let rows = of.rows.iter().filter(move |row| row.verdict == verdict);
        let names = rows.map(|row| {
            format!("{} under {} {}", row.metric, row.treatment, words::change(&row.found))
        });
        let names = names.collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| Lead::new(name, format!("{names}."), mood))
    };
    let changed = [("Worse", Verdict::Worse, Mood::Bad), ("Better", Verdict::Better, Mood::Good)];
    let lead: Vec<Lead> = changed.into_iter().filter_map(named).collect();
    if !lead.is_empty() {
        return lead;
    }
    let margin = trimmed(of.tolerance.as_percent());
    let nothing = format!("Nothing is shown to differ by more than {margin} %.");
    vec![Lead::new("Change", nothing, Mood::Plain)]
}

fn values(of: &StudyPair<'_>) -> Table {
    let margin = of.tolerance.as_percent();
    let rows = of.rows.iter().map(|row| {
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
    Table::new("The second run compared with the first")
        .words("metric")
        .words("treatment")
        .figures("first")
        .figures("second")
        .figures("change")
        .words("verdict")
        .rows(rows)
        .moods(of.rows.iter().map(|row| label::mood(row.verdict)))
}

/// What each run found by itof.
fn answers(of: &StudyPair<'_>) -> Table {
    let rows = of.before.answers().filter_map(|(subject, effect)| {
        let title = subject.title();
        let mut others = of.after.answers();
        let (other_subject, other) = others
            .find(|(other, found)| other.title() == title && found.change == effect.change)?;
        let said = |subject: &Subject, found: &Comparison| {
            let verdict = words::verdict(found, subject.margin_percent);
            format!("{}, {verdict}", words::change(found))
        };
        let (first, second) = (said(subject, &effect.found), said(other_subject, &other.found));
        Some(vec![title, words::label(effect), first, second])
    });
    Table::new("What each run found")
        .words("metric")
        .words("change")
        .words("first")
        .words("second")
        .rows(rows)
}
