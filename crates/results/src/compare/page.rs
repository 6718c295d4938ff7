//! Page of compared runs.

use numalab_page::number::{count, figure, percent, size, trimmed};
use numalab_page::rows::{Holds, Rows, optional};
use numalab_page::text::cut_middle;
use numalab_page::{Lead, Mood, Page, Panel, Part, Table, Terminal};
use numalab_record::{Experiment, Kind};
use numalab_stats::{Interval, Verdict};

use super::document::RunComparison;
use crate::compare::{Answer, Compared, ComparedCell, Comparison, FactDifference};
use crate::document;
use crate::label;
use crate::report::Report;
use crate::run::page::rows::{FIELDS, fields};

/// Width of a cell's name on a terminal, in characters.
const NAME_WIDTH: usize = 55;
/// Maximum number of changed cells listed on a terminal.
const MOST_ROWS: usize = 30;
const KINDS: &str = "All cells of a kind together: the median of their changes, by run";

impl Report for Comparison {
    fn page(&self) -> Page {
        let kinds = Panel::table(kind_table(&self.kinds));
        let cells = Panel::table(cell_table(&self.rows))
            .on_terminal(Terminal::Instead(vec![changed_cells(self)]));
        let facts = Panel::table(environment_table(&self.environment));
        let part = |title: &str, panel: Panel| Part::of(title, vec![panel]);
        let method = Part { title: "Method".to_owned(), notes: notes(self), ..Part::default() };
        let parts = [
            part("By kind", kinds),
            part("Cells", cells),
            part("Differences between the systems", facts),
            Some(method),
        ];
        Page {
            brand: "numalab compare".to_owned(),
            title: title(self),
            meta: names(self),
            lead: [headline(self)].into_iter().chain(far_ends(self)).collect(),
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Comparison, &RunComparison::of(self))
    }

    fn rows(&self) -> Option<Rows> {
        let row = |row: &ComparedCell| {
            let (id, fields) = match &row.of {
                Compared::Cell(cell) => (cell.id.0.clone(), fields(&cell.experiment)),
                Compared::Kind { .. } => (String::new(), FIELDS.map(|_| String::new())),
            };
            let mut fields: Vec<String> =
                [id, label::compared(row)].into_iter().chain(fields).collect();
            fields.extend([
                row.metric.name().to_owned(),
                row.metric.unit().to_string(),
                optional(row.means.map(|[baseline, _]| baseline)),
                optional(row.means.map(|[_, candidate]| candidate)),
                row.change_percent.to_string(),
                optional(row.interval_percent.map(|interval| interval.lo)),
                optional(row.interval_percent.map(|interval| interval.hi)),
                optional(row.spread_percent),
                label::answer_word(row.answer).to_owned(),
            ]);
            fields
        };
        let rows = Rows::new("compared cell")
            .labels(["cell", "what"])
            .labels(FIELDS)
            .with(Holds::Metric, ["metric"])
            .with(Holds::Unit, ["unit"])
            .values("", ["baseline", "candidate"])
            .values("%", ["change_percent", "lo_percent", "hi_percent", "spread_percent"])
            .texts(["verdict"]);
        Some(rows.rows(self.figures().map(row)))
    }
}

fn title(of: &Comparison) -> String {
    let runs = |names: &[String]| count(names.len(), "run");
    format!("{} against {} of the baseline", runs(&of.candidate), runs(&of.baseline))
}

fn names(of: &Comparison) -> String {
    format!("baseline {}; candidate {}", of.baseline.join(", "), of.candidate.join(", "))
}

/// Counts rows by verdict; without verdicts, words the changes and why they are not judged.
fn headline(of: &Comparison) -> Lead {
    if !of.is_judged() {
        let change = |row: &ComparedCell| format!("{} {}", name(row), percent(row.change_percent));
        let changes: Vec<String> = of.kinds.iter().map(change).collect();
        let sentence = format!(
            "{}: not judged, because one run per side does not show how runs of this machine \
             vary. `numalab measure --repeat 5` keeps a baseline that does.",
            if changes.is_empty() { "Each cell's change".to_owned() } else { changes.join(", ") }
        );
        return Lead::new("Not judged", sentence, Mood::Odd);
    }
    let number = |wanted: fn(&Answer) -> bool| of.figures().filter(|r| wanted(&r.answer)).count();
    let worse = number(|answer| *answer == Answer::Judged(Verdict::Worse));
    let better = number(|answer| *answer == Answer::Judged(Verdict::Better));
    let mut sentence = format!(
        "{worse} worse by more than {margin} %, {better} better, {} within {margin} %, {} undecided.",
        number(|answer| *answer == Answer::Judged(Verdict::Equivalent)),
        number(|answer| matches!(answer, Answer::Judged(Verdict::Inconclusive { .. }))),
        margin = trimmed(of.tolerance.as_percent()),
    );
    let once = number(|answer| *answer == Answer::SeenOnce);
    if once > 0 {
        sentence.push_str(&format!(
            " {} out of line in one run: measure again, or with --repeat 2.",
            count(once, "cell")
        ));
    }
    let mood = match (worse, better) {
        (0, 0) => Mood::Plain,
        (0, _) => Mood::Good,
        _ => Mood::Bad,
    };
    Lead::new(count(worse + better, "figure") + " changed", sentence, mood)
}

/// Returns a lead for each kind whose far end is shown to differ.
fn far_ends(of: &Comparison) -> impl Iterator<Item = Lead> {
    let shown = of.kinds.iter().filter_map(|row| Some((row, row.far_end.as_ref()?)));
    shown.filter(|(_, far_end)| far_end.is_shown).map(|(row, far_end)| {
        let values = label::far_values(far_end, |value| format!("{} times", trimmed(value)));
        let sentence = format!("{}: {values} the median of its run.", name(row));
        label::far_end_lead(far_end, sentence)
    })
}

/// Lists changed cells for a terminal, largest change first.
fn changed_cells(of: &Comparison) -> Table {
    let is_shown = |row: &&ComparedCell| match row.answer {
        Answer::Judged(verdict) => matches!(verdict, Verdict::Better | Verdict::Worse),
        Answer::SeenOnce | Answer::NotJudged => true,
    };
    let mut rows: Vec<&ComparedCell> = of.rows.iter().filter(is_shown).collect();
    rows.sort_by(|a, b| b.change_percent.abs().total_cmp(&a.change_percent.abs()));
    let hidden = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        hidden => format!("; {hidden} more not shown"),
    };
    let which = if of.is_judged() { "Cells that changed" } else { "Cells" };
    let line = |row: &ComparedCell| {
        let name = cut_middle(&name(row), NAME_WIDTH);
        vec![name, percent(row.change_percent), label::answer_word(row.answer).to_owned()]
    };
    Table::new(format!("{which}, largest change first{hidden}"))
        .words("what")
        .figures("change")
        .words("verdict")
        .rows(rows.into_iter().take(MOST_ROWS).map(line))
}

/// Tabulates the facts that differ.
pub(crate) fn environment_table(facts: &[FactDifference]) -> Table {
    let absent = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
    Table::new("Facts that differ")
        .words("fact")
        .words("baseline")
        .words("candidate")
        .rows(facts.iter().map(|f| vec![f.name.clone(), absent(&f.baseline), absent(&f.candidate)]))
}

fn notes(of: &Comparison) -> Vec<String> {
    let margin = trimmed(of.tolerance.as_percent());
    let mut notes = vec![
        "A run's figure is its median, a side's is the geometric mean over its runs, and the \
         change is the ratio of the sides."
            .to_owned(),
    ];
    if of.is_judged() {
        notes.push(format!(
            "The unit of analysis is the run. The spread is one standard deviation between runs \
             of a side: for a kind, of all its cells together; for a cell, of its deviation from \
             them, shrunk towards that of the other cells. A figure is better or worse if its \
             change is shown to exceed {margin} %, with a chance of 5 % for any false verdict \
             among {}.",
            count(of.rows.len() + of.kinds.len(), "row"),
        ));
    }
    for (ids, which) in [
        (&of.only_in_baseline, "in the baseline only, not compared"),
        (&of.only_in_candidate, "in the candidate only, not compared"),
        (&of.not_in_every_run, "not in every run, compared over the runs that have them"),
    ] {
        if let Some(first) = ids.first() {
            let cells = count(ids.len(), "cell");
            notes.push(format!("{cells} with figures {which}; the first is `{first}`."));
        }
    }
    notes
}

fn kind_table(kinds: &[ComparedCell]) -> Table {
    let line = |row: &ComparedCell| {
        vec![
            name(row),
            percent(row.change_percent),
            interval(row),
            row.spread_percent.map_or_else(dash, spread),
            label::with_far_end(label::answer_word(row.answer), row.far_end.as_ref()),
        ]
    };
    Table::new(KINDS)
        .words("what")
        .figures("change")
        .figures("95 % interval")
        .figures("spread")
        .words("verdict")
        .rows(kinds.iter().map(line))
        .moods(kinds.iter().map(|row| mood(row.answer)))
}

fn cell_table(rows: &[ComparedCell]) -> Table {
    let line = |row: &ComparedCell| {
        let mut answer = label::answer_word(row.answer).to_owned();
        if let Some(note) = note(row) {
            answer.push_str(&format!(" ({note})"));
        }
        let value = |value: f64| format!("{} {}", figure(value), row.metric.unit());
        let [baseline, candidate] =
            row.means.map_or_else(|| [dash(), dash()], |means| means.map(value));
        vec![
            name(row),
            baseline,
            candidate,
            percent(row.change_percent),
            interval(row),
            row.spread_percent.map_or_else(dash, spread),
            answer,
        ]
    };
    Table::new("Cell by cell")
        .words("what")
        .figures("baseline")
        .figures("candidate")
        .figures("change")
        .figures("95 % interval")
        .figures("spread")
        .words("verdict")
        .rows(rows.iter().map(line))
        .moods(rows.iter().map(|row| mood(row.answer)))
}

fn dash() -> String {
    "–".to_owned()
}

fn spread(percent: f64) -> String {
    if percent < 0.01 { "under 0.01 %".to_owned() } else { format!("{} %", figure(percent)) }
}

fn interval(row: &ComparedCell) -> String {
    let words = |i: Interval| {
        let low = percent(i.lo);
        format!("{} to {}", low.trim_end_matches(" %"), percent(i.hi))
    };
    row.interval_percent.map_or_else(dash, words)
}

fn mood(answer: Answer) -> Mood {
    match answer {
        Answer::NotJudged => Mood::Plain,
        Answer::SeenOnce => Mood::Odd,
        Answer::Judged(verdict) => label::mood(verdict),
    }
}

/// Returns the name of the cell or kind, with the metric if the cell has several.
fn name(row: &ComparedCell) -> String {
    match &row.of {
        Compared::Cell(cell) => match cell.experiment {
            Experiment::Core(_) | Experiment::Loaded(_) => {
                format!("{} {}", cell.id.0, row.metric.name())
            }
            _ => cell.id.0.clone(),
        },
        Compared::Kind { .. } => label::compared(row),
    }
}

fn note(row: &ComparedCell) -> Option<String> {
    let (old, new) = row.pages_differ?;
    Some(format!("pages of {} became {}", size(old), size(new)))
}
