//! Page of two runs of a study, such as on another machine, kernel or day.

use numalab_page::number::{figure, percent, trimmed};
use numalab_page::rows::{Field, Holds, Rows};
use numalab_page::{Lead, Mood, Page, Panel, Part, Table};
use numalab_stats::Interval;

use super::words;
use crate::compare::AnswerWord;
use crate::compare::page::environment_table;
use crate::document::document_of;
use crate::label;
use crate::report::Report;
use crate::study::document::{PairedValue, StudyComparison};

/// Maximum number of changes named in a sentence.
const LISTED: usize = 6;
/// The caveat of runs that were not interleaved.
const APART: &str = "The two runs were not interleaved, so a drift of the machine between them \
     looks like a difference. Within each run, treatments were interleaved.";

impl Report for StudyComparison {
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
            title: self.question.clone(),
            meta: "Two runs of a study".to_owned(),
            lead: lead(self),
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    document_of!(StudyComparison);

    fn rows(&self) -> Option<Rows> {
        let row = |row: &PairedValue| {
            vec![
                Field::from(row.metric.as_str()),
                row.treatment.as_str().into(),
                row.baseline_median.into(),
                row.candidate_median.into(),
                row.change_percent.into(),
                row.interval_percent.map(|[lo, _]| lo).into(),
                row.interval_percent.map(|[_, hi]| hi).into(),
                row.verdict.name().into(),
                row.unit.as_str().into(),
            ]
        };
        Some(columns().rows(self.values.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("compared studies")
        .labels(["metric", "treatment"])
        .values(
            "",
            [
                ("baseline_median", "the median of the first run"),
                ("candidate_median", "the median of the second run"),
            ],
        )
        .values(
            "%",
            [
                ("change_percent", "the change from the first run to the second"),
                ("lo_percent", "the lower end of the change's 95 % interval"),
                ("hi_percent", "the upper end of the change's 95 % interval"),
            ],
        )
        .texts(["verdict"])
        .with(Holds::Unit, ["unit"])
}

/// Describes the changes for the worse and the better, or their absence; with one session per side,
/// the changes and the reason for the lack of a verdict.
fn lead(of: &StudyComparison) -> Vec<Lead> {
    if !of.judged {
        let changes: Vec<String> = of.values.iter().map(change).take(LISTED).collect();
        let more = of.values.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let sentence = format!(
            "{}{more}: not judged, because one session per side does not show how much sessions \
             of this machine vary. `numalab study resume DIR --blocks N` adds a session to a run.",
            changes.join(", ")
        );
        return vec![Lead::new("Not judged", sentence, Mood::Odd)];
    }
    let named = |(name, verdict, mood): (&str, AnswerWord, Mood)| {
        let rows = of.values.iter().filter(move |row| row.verdict == verdict);
        let names = rows.map(change).collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| Lead::new(name, format!("{names}."), mood))
    };
    let changed =
        [("Worse", AnswerWord::Worse, Mood::Bad), ("Better", AnswerWord::Better, Mood::Good)];
    let mut lead: Vec<Lead> = changed.into_iter().filter_map(named).collect();
    let tails: Vec<Lead> = tails(of).collect();
    if lead.is_empty() {
        let margin = trimmed(of.margin_percent);
        let medians = if tails.is_empty() { "Nothing" } else { "No median" };
        let nothing = format!("{medians} is shown to differ by more than {margin} %.");
        lead.push(Lead::new("Change", nothing, Mood::Plain));
    }
    // The worse half of an answer comes first.
    let at = if tails.iter().any(|lead| lead.mood == Mood::Bad) { 0 } else { lead.len() };
    lead.splice(at..at, tails);
    lead
}

/// Returns a lead for each value whose tail is shown to differ.
fn tails(of: &StudyComparison) -> impl Iterator<Item = Lead> {
    let shown = of.values.iter().filter_map(|row| Some((row, row.tail.as_ref()?)));
    shown.filter(|(_, tail)| tail.is_shown).map(|(row, tail)| {
        let values = label::tail_values(tail, trimmed);
        let sentence = format!("{} under {}: {values}.", row.metric, row.treatment);
        label::tail_lead(tail, sentence)
    })
}

/// Describes one change: `chase latency under pages=2m -3.1 %`.
fn change(row: &PairedValue) -> String {
    let change = row.change_percent.map_or_else(|| "–".to_owned(), percent);
    format!("{} under {} {change}", row.metric, row.treatment)
}

fn values(of: &StudyComparison) -> Table {
    let rows = of.values.iter().map(|row| {
        let interval = row.interval_percent.map(|[lo, hi]| Interval { lo, hi });
        vec![
            row.metric.clone(),
            row.treatment.clone(),
            figure(row.baseline_median),
            figure(row.candidate_median),
            row.change_percent.map_or_else(|| "–".to_owned(), percent),
            interval.as_ref().map_or_else(|| "–".to_owned(), words::range),
            row.sessions.map(|sessions| sessions.to_string()).join(", "),
            label::with_tail(row.verdict.name(), row.tail.as_ref()),
        ]
    });
    Table::new(
        "The second run compared with the first; intervals are from the variation between \
         sessions",
    )
    .words(["metric", "treatment"])
    .figures(["first", "second", "change", "interval", "sessions"])
    .words("verdict")
    .rows(rows)
    .moods(of.values.iter().map(|row| label::answer_mood(row.verdict)))
}

/// Tabulates what each run found on its own.
fn answers(of: &StudyComparison) -> Table {
    let rows = of.answers.iter().map(|answer| {
        let [first, second] = [&answer.baseline, &answer.candidate].map(|own| own.words.clone());
        vec![answer.metric.clone(), answer.change.clone(), first, second]
    });
    Table::new("Results of each run").words(["metric", "change", "first", "second"]).rows(rows)
}
