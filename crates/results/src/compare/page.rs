//! Page of compared runs.

use numalab_page::number::{count, figure, percent, size, trimmed};
use numalab_page::rows::{Field, Holds, Rows};
use numalab_page::text::cut_middle;
use numalab_page::{Lead, Mood, Page, Panel, Part, Table, Terminal};
use numalab_record::{Experiment, Fact};

use super::document::{ComparedRow, RunComparison};
use crate::compare::{AnswerWord, FactDifference};
use crate::document::document_of;
use crate::label;
use crate::report::Report;
use crate::run::page::rows::{FIELDS, fields};

/// Width of a cell's name on a terminal, in characters.
const NAME_WIDTH: usize = 55;
/// Maximum number of changed cells listed on a terminal.
const MOST_ROWS: usize = 30;
const KINDS: &str = "All cells of a kind together: the median of their changes";
/// Largest minimum detectable change, in percent, that is worth reporting.
const MOST_LEAST: f64 = 100.0;

impl Report for RunComparison {
    fn page(&self) -> Page {
        let kinds = Panel::table(kind_table(&self.kinds));
        let cells = Panel::table(cell_table(&self.cells))
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
            lead: [headline(self)].into_iter().chain(tails(self)).collect(),
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    document_of!(Comparison);

    fn rows(&self) -> Option<Rows> {
        let row = |row: &ComparedRow| {
            let id = row.cell.as_ref().map(|cell| cell.0.clone()).unwrap_or_default();
            let blank = || FIELDS.map(|_| Field::Empty);
            let of_cell = row.experiment.as_ref().map_or_else(blank, fields);
            let names = [id, row.what.clone()].map(Field::from);
            let mut fields: Vec<Field> = names.into_iter().chain(of_cell).collect();
            fields.extend([
                row.metric.name().into(),
                row.unit.clone().into(),
                row.baseline.into(),
                row.candidate.into(),
                row.change_percent.into(),
                row.interval_percent.map(|[lo, _]| lo).into(),
                row.interval_percent.map(|[_, hi]| hi).into(),
                row.spread_percent.into(),
                row.verdict.name().into(),
            ]);
            fields
        };
        Some(columns().rows(self.kinds.iter().chain(&self.cells).map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("compared cell")
        .labels(["cell", "what"])
        .labels(FIELDS)
        .with(Holds::Metric, ["metric"])
        .with(Holds::Unit, ["unit"])
        .values(
            "",
            [
                ("baseline", "the median of the baseline"),
                ("candidate", "the median of the candidate"),
            ],
        )
        .values(
            "%",
            [
                ("change_percent", "the change from the baseline to the candidate"),
                ("lo_percent", "the lower end of the change's 95 % interval"),
                ("hi_percent", "the upper end of the change's 95 % interval"),
                ("spread_percent", "the standard deviation between measurements of the machine"),
            ],
        )
        .texts(["verdict"])
}

fn title(of: &RunComparison) -> String {
    let runs = |names: &[String]| count(names.len(), "run");
    format!("{} against {} of the baseline", runs(&of.candidate), runs(&of.baseline))
}

fn names(of: &RunComparison) -> String {
    format!("baseline {}; candidate {}", of.baseline.join(", "), of.candidate.join(", "))
}

/// Counts rows by verdict; without verdicts, describes the changes and why they are not judged.
fn headline(of: &RunComparison) -> Lead {
    if !of.judged {
        let change = |row: &ComparedRow| format!("{} {}", name(row), percent(row.change_percent));
        let changes: Vec<String> = of.kinds.iter().map(change).collect();
        let sentence = format!(
            "{}: not judged. Runs begun within half an hour share the state of the machine and its \
             neighbours, so these count as {} on {}; it takes four to show how much the machine \
             varies. Measure again at other times: --baseline takes several directories.",
            if changes.is_empty() { "Each cell's change".to_owned() } else { changes.join(", ") },
            count(of.units.iter().sum(), "measurement"),
            count(of.units.iter().filter(|units| **units > 0).count(), "side"),
        );
        return Lead::new("Not judged", sentence, Mood::Odd);
    }
    let among = |rows: &[ComparedRow], wanted: AnswerWord| {
        rows.iter().filter(|row| row.verdict == wanted).count()
    };
    let number = |wanted| among(&of.kinds, wanted) + among(&of.cells, wanted);
    let (worse, better) = (number(AnswerWord::Worse), number(AnswerWord::Better));
    let mut sentence = format!(
        "{worse} worse by more than {margin} %, {better} better, {} within {margin} %, {} undecided.",
        number(AnswerWord::Equivalent),
        number(AnswerWord::Inconclusive),
        margin = trimmed(of.tolerance_percent),
    );
    sentence.push_str(&least_shown(of));
    let once = number(AnswerWord::SeenOnce);
    let is = if once == 1 { "is" } else { "are" };
    let once = (once > 0).then(|| format!("{} {is} out of line in one run", count(once, "cell")));
    let changed = |rows: &[ComparedRow], what: &str| {
        let changed = among(rows, AnswerWord::Worse) + among(rows, AnswerWord::Better);
        format!("{changed} of {}", count(rows.len(), what))
    };
    let changed =
        format!("{} and {} changed", changed(&of.kinds, "kind"), changed(&of.cells, "cell"));
    let (name, mood) = match (worse, better, once) {
        (0, 0, Some(once)) => {
            sentence.push_str(" Measure again, or use --repeat 2.");
            (once, Mood::Odd)
        }
        (worse, better, once) => {
            if let Some(once) = once {
                sentence.push_str(&format!(" {once}: measure again, or use --repeat 2."));
            }
            let mood = match (worse, better) {
                (0, 0) => Mood::Plain,
                (0, _) => Mood::Good,
                _ => Mood::Bad,
            };
            (changed, mood)
        }
    };
    Lead::new(name, sentence, mood)
}

/// Describes the smallest changes that would have been shown.
fn least_shown(of: &RunComparison) -> String {
    let judged = of.kinds.iter().filter(|row| row.verdict != AnswerWord::NotJudged);
    let least = |row: &ComparedRow| match row.least_percent.filter(|least| *least < MOST_LEAST) {
        Some(least) => format!("{}, {} %", row.what, figure(least)),
        None => format!("{}, none", row.what),
    };
    let least: Vec<String> = judged.map(least).collect();
    if least.is_empty() {
        String::new()
    } else {
        format!(" The smallest changes of a kind that these runs can show: {}.", least.join("; "))
    }
}

/// Returns a lead for each kind whose tail is shown to differ.
fn tails(of: &RunComparison) -> impl Iterator<Item = Lead> {
    let shown = of.kinds.iter().filter_map(|row| Some((row, row.tail.as_ref()?)));
    shown.filter(|(_, tail)| tail.is_shown).map(|(row, tail)| {
        let values = label::tail_values(tail, |value| format!("{} times", trimmed(value)));
        let sentence = format!("{}: {values} the median of its run.", name(row));
        label::tail_lead(tail, sentence)
    })
}

/// Lists changed cells for a terminal, largest change first.
fn changed_cells(of: &RunComparison) -> Table {
    let is_shown = |row: &&ComparedRow| match row.verdict {
        AnswerWord::Equivalent | AnswerWord::Inconclusive => false,
        AnswerWord::NotJudged => !of.judged,
        _ => true,
    };
    let mut rows: Vec<&ComparedRow> = of.cells.iter().filter(is_shown).collect();
    rows.sort_by(|a, b| b.change_percent.abs().total_cmp(&a.change_percent.abs()));
    let hidden = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        hidden => format!("; {hidden} more not shown"),
    };
    let which = if of.judged { "Cells that changed" } else { "Cells" };
    let line = |row: &ComparedRow| {
        let name = cut_middle(&name(row), NAME_WIDTH);
        vec![name, percent(row.change_percent), row.verdict.name().to_owned()]
    };
    Table::new(format!("{which}, largest change first{hidden}"))
        .words("what")
        .figures("change")
        .words("verdict")
        .rows(rows.into_iter().take(MOST_ROWS).map(line))
}

pub(crate) fn environment_table(facts: &[FactDifference]) -> Table {
    let absent =
        |fact: &Option<Fact>| fact.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string);
    Table::new("Facts that differ")
        .words(["fact", "baseline", "candidate"])
        .rows(facts.iter().map(|f| vec![f.name.clone(), absent(&f.baseline), absent(&f.candidate)]))
}

fn notes(of: &RunComparison) -> Vec<String> {
    let margin = trimmed(of.tolerance_percent);
    let mut notes = vec![
        "A run's figure is its median, a side's is the geometric mean over its runs, and the \
         change is the ratio of the sides."
            .to_owned(),
    ];
    if of.judged {
        notes.push(format!(
            "Runs begun within half an hour of each other are one unit of analysis, except in \
             virtual time: {} of the baseline, {} of the candidate. The spread is one standard deviation between the units \
             of a side: for a kind, of all its cells together; for a cell, of its deviation from \
             them, shrunk towards that of the other cells. A figure is better or worse if its \
             change is shown to exceed {margin} %, with a chance of 5 % for any false verdict \
             among {}. Round trips from cpu to cpu are not judged: they depend on the lines and the \
             cores that a run happens to use.",
            of.units[0],
            of.units[1],
            count(of.cells.len() + of.kinds.len(), "row"),
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

fn kind_table(kinds: &[ComparedRow]) -> Table {
    let line = |row: &ComparedRow| {
        vec![
            name(row),
            percent(row.change_percent),
            interval(row),
            row.spread_percent.map_or_else(dash, spread),
            label::with_tail(row.verdict.name(), row.tail.as_ref()),
        ]
    };
    Table::new(KINDS)
        .words("what")
        .figures(["change", "95 % interval", "spread"])
        .words("verdict")
        .rows(kinds.iter().map(line))
        .moods(kinds.iter().map(|row| label::answer_mood(row.verdict)))
}

fn cell_table(rows: &[ComparedRow]) -> Table {
    let line = |row: &ComparedRow| {
        let mut answer = row.verdict.name().to_owned();
        if let Some(note) = note(row) {
            answer.push_str(&format!(" ({note})"));
        }
        let value = |mean: Option<f64>| {
            mean.map_or_else(dash, |mean| format!("{} {}", figure(mean), row.unit))
        };
        vec![
            name(row),
            value(row.baseline),
            value(row.candidate),
            percent(row.change_percent),
            interval(row),
            row.spread_percent.map_or_else(dash, spread),
            answer,
        ]
    };
    Table::new("Cell by cell")
        .words("what")
        .figures(["baseline", "candidate", "change", "95 % interval", "spread"])
        .words("verdict")
        .rows(rows.iter().map(line))
        .moods(rows.iter().map(|row| label::answer_mood(row.verdict)))
}

fn dash() -> String {
    "–".to_owned()
}

fn spread(percent: f64) -> String {
    if percent < 0.01 { "under 0.01 %".to_owned() } else { format!("{} %", figure(percent)) }
}

fn interval(row: &ComparedRow) -> String {
    let words = |[lo, hi]: [f64; 2]| {
        let low = percent(lo);
        format!("{} to {}", low.trim_end_matches(" %"), percent(hi))
    };
    row.interval_percent.map_or_else(dash, words)
}

/// Returns the name of the cell or kind, with the metric if the cell has several.
fn name(row: &ComparedRow) -> String {
    match (&row.cell, &row.experiment) {
        (Some(id), Some(Experiment::Core(_) | Experiment::Loaded(_))) => {
            format!("{id} {}", row.metric.name())
        }
        (Some(id), _) => id.to_string(),
        (None, _) => row.what.clone(),
    }
}

fn note(row: &ComparedRow) -> Option<String> {
    let (old, new) = row.pages_differ?;
    Some(format!("pages of {} became {}", size(old), size(new)))
}
