//! Page of two runs of a study, such as on another machine, kernel or day.

use numalab_page::number::{figure, percent, trimmed};
use numalab_page::rows::{Rows, optional};
use numalab_page::{Lead, Mood, Page, Panel, Part, Table};
use numalab_record::Kind;
use numalab_stats::{Comparison, Verdict};

use super::words;
use crate::compare::Answer;
use crate::compare::page::environment_table;
use crate::document;
use crate::label::{self, answer_word};
use crate::report::Report;
use crate::study::document::StudyComparison;
use crate::study::{PairRow, StudyPair, Subject};

/// Maximum number of changes named in a sentence.
const LISTED: usize = 6;
/// The caveat of runs that were not interleaved.
const APART: &str = "The two runs were not interleaved, so a drift of the machine between them \
     looks like a difference. Within each run, treatments were interleaved.";

impl Report for StudyPair<'_> {
    fn page(&self) -> Page {
        let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
        let values = part("Values", values(self)).map(|part| part.noted(vec![APART.to_owned()]));
        let parts = [
            values,
            part("Results of each run on its own", answers(self)),
            part("Differences between the systems", environment_table(&self.environment)),
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
            let interval = row.interval_percent;
            vec![
                row.metric.clone(),
                row.treatment.clone(),
                row.medians[0].to_string(),
                row.medians[1].to_string(),
                optional(row.change_percent),
                optional(interval.map(|interval| interval.lo)),
                optional(interval.map(|interval| interval.hi)),
                answer_word(row.answer).to_owned(),
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

/// Describes the changes for worse and better, or the lack of any; with one session per side, the
/// changes and why there is no verdict.
fn lead(of: &StudyPair<'_>) -> Vec<Lead> {
    if !of.is_judged() {
        let changes: Vec<String> = of.rows.iter().map(change).take(LISTED).collect();
        let more = of.rows.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let sentence = format!(
            "{}{more}: not judged, because one session per side does not show how sessions of \
             this machine vary. `numalab study resume DIR --blocks N` adds a session to a run.",
            changes.join(", ")
        );
        return vec![Lead::new("Not judged", sentence, Mood::Odd)];
    }
    let named = |(name, verdict, mood): (&str, Verdict, Mood)| {
        let rows = of.rows.iter().filter(move |row| row.answer == Answer::Judged(verdict));
        let names = rows.map(change).collect::<Vec<_>>().join(", ");
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

/// Describes one change: `chase latency under pages=2m -3.1 %`.
fn change(row: &PairRow) -> String {
    let change = row.change_percent.map_or_else(|| "–".to_owned(), percent);
    format!("{} under {} {change}", row.metric, row.treatment)
}

fn values(of: &StudyPair<'_>) -> Table {
    let rows = of.rows.iter().map(|row| {
        let interval = row.interval_percent.as_ref();
        vec![
            row.metric.clone(),
            row.treatment.clone(),
            figure(row.medians[0]),
            figure(row.medians[1]),
            row.change_percent.map_or_else(|| "–".to_owned(), percent),
            interval.map_or_else(|| "–".to_owned(), words::range),
            row.sessions.map(|sessions| sessions.to_string()).join(", "),
            label::with_far_end(answer_word(row.answer), row.far_end.as_ref()),
        ]
    });
    Table::new(
        "The second run compared with the first; intervals are from the variation between \
         sessions",
    )
    .words("metric")
    .words("treatment")
    .figures("first")
    .figures("second")
    .figures("change")
    .figures("interval")
    .figures("sessions")
    .words("verdict")
    .rows(rows)
    .moods(of.rows.iter().map(|row| match row.answer {
        Answer::Judged(verdict) => label::mood(verdict),
        Answer::NotJudged | Answer::SeenOnce => Mood::Plain,
    }))
}

/// Tabulates what each run found on its own.
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
    Table::new("Results of each run")
        .words("metric")
        .words("change")
        .words("first")
        .words("second")
        .rows(rows)
}
