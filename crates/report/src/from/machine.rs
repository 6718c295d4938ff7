//! A machine file and a run side by side.

use numalab_analysis::machine::{FigurePair, MachineComparison};
use numalab_record::Kind;

use crate::Report;
use crate::documents::document;
use crate::number::{count, figure, percent, trimmed};
use crate::page::{Lead, Mood, Page, Panel, Part};
use crate::rows::{Rows, optional};
use crate::table::Table;

impl Report for MachineComparison {
    fn page(&self) -> Page {
        let part = Part::of("Figures", vec![Panel::table(table(self))]);
        Page {
            brand: "numalab compare".to_owned(),
            title: "A machine file and a run".to_owned(),
            lead: vec![lead(self)],
            parts: part.into_iter().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::MachineComparison, self)
    }

    fn rows(&self) -> Option<Rows> {
        let row = |pair: &FigurePair| {
            vec![
                pair.what.clone(),
                pair.unit.to_owned(),
                optional(pair.file),
                optional(pair.result),
                optional(pair.percent),
            ]
        };
        let rows = Rows::new("machine figure")
            .labels(["what"])
            .with(crate::rows::Holds::Unit, ["unit"])
            .values("", ["file", "result"])
            .values("%", ["difference_percent"]);
        Some(rows.rows(self.pairs.iter().map(row)))
    }
}

fn lead(of: &MachineComparison) -> Lead {
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

fn table(of: &MachineComparison) -> Table {
    let side = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
    let rows = of.pairs.iter().map(|pair| {
        vec![
            pair.what.clone(),
            side(pair.file),
            side(pair.result),
            pair.unit.to_owned(),
            pair.percent.map_or_else(|| "–".to_owned(), percent),
        ]
    });
    Table::new("What the file says, and what the run measured")
        .words("what")
        .figures("file")
        .figures("run")
        .words("unit")
        .figures("difference")
        .rows(rows)
}
