//! Page, JSON and rows of a machine file compared with a run.

use numalab_page::number::{count, figure, percent, trimmed};
use numalab_page::rows::{Field, Holds, Rows};
use numalab_page::{Lead, Mood, Page, Panel, Part, Table};

use super::document::{ComparedMachine, FigurePair};
use crate::document::document_of;
use crate::report::Report;

impl Report for ComparedMachine {
    fn page(&self) -> Page {
        let part = Part::of("Figures", vec![Panel::table(table(self))]);
        Page {
            brand: "numalab compare".to_owned(),
            title: self.names.join(" and "),
            lead: vec![lead(self)],
            parts: part.into_iter().collect(),
            ..Page::default()
        }
    }

    document_of!(MachineComparison);

    fn rows(&self) -> Option<Rows> {
        let row = |pair: &FigurePair| {
            let labels = [&pair.what, &pair.unit].map(|label| Field::from(label.as_str()));
            let values = [pair.file, pair.result, pair.percent].map(Field::from);
            labels.into_iter().chain(values).collect()
        };
        Some(columns().rows(self.pairs.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("machine figure")
        .labels(["what"])
        .with(Holds::Unit, ["unit"])
        .values(
            "",
            [
                ("file", "the machine file's value"),
                ("result", "the value of the run, or of the second machine file"),
            ],
        )
        .values("%", [("difference_percent", "the excess of the second over the first")])
}

fn lead(of: &ComparedMachine) -> Lead {
    let both = of.pairs.iter().filter(|pair| pair.percent.is_some());
    let far = both
        .clone()
        .filter(|pair| pair.percent.is_some_and(|off| off.abs() > of.margin_percent))
        .count();
    let alone = of.pairs.len() - both.clone().count();
    let widest = both.max_by(|a, b| {
        let off = |pair: &FigurePair| pair.percent.unwrap_or_default().abs();
        off(a).total_cmp(&off(b))
    });
    let widest = widest.map_or_else(String::new, |pair| {
        let off = percent(pair.percent.unwrap_or_default());
        format!("; the widest is {off}, {}", pair.what)
    });
    let sentence = format!(
        "{} of {} differ by more than {} %{widest}; {} on one side only.",
        far,
        count(of.pairs.len() - alone, "figure"),
        trimmed(of.margin_percent),
        alone
    );
    let mood = if far == 0 { Mood::Fine } else { Mood::Odd };
    Lead::new("Differences", sentence, mood)
}

fn table(of: &ComparedMachine) -> Table {
    let side = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
    let rows = of.pairs.iter().map(|pair| {
        vec![
            pair.what.clone(),
            side(pair.file),
            side(pair.result),
            pair.unit.clone(),
            pair.percent.map_or_else(|| "–".to_owned(), percent),
        ]
    });
    let [file, result] = &of.names;
    Table::new("The second compared with the first")
        .words("what")
        .figures([file.as_str(), result])
        .words("unit")
        .figures("difference")
        .rows(rows)
}
