//! Page, JSON and rows of a machine file compared with a run.

use numalab_page::number::{count, figure, percent, trimmed};
use numalab_page::rows::{Rows, optional};
use numalab_page::{Lead, Mood, Page, Panel, Part, Table};
use numalab_record::Kind;

use super::document::{self, ComparedMachine};
use crate::machine::{Access, FigurePair, LoadedPlace, MachineComparison, MachineFigure};
use crate::report::Report;

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
        let pairs = self.pairs.iter().map(|pair| document::FigurePair {
            what: words(&pair.what),
            unit: pair.what.unit(),
            file: pair.file,
            result: pair.result,
            percent: pair.percent,
        });
        let (margin_percent, pairs) = (self.margin_percent, pairs.collect());
        crate::document(Kind::MachineComparison, &ComparedMachine { margin_percent, pairs })
    }

    fn rows(&self) -> Option<Rows> {
        let row = |pair: &FigurePair| {
            vec![
                words(&pair.what),
                pair.what.unit().to_owned(),
                optional(pair.file),
                optional(pair.result),
                optional(pair.percent),
            ]
        };
        let rows = Rows::new("machine figure")
            .labels(["what"])
            .with(numalab_page::rows::Holds::Unit, ["unit"])
            .values("", ["file", "result"])
            .values("%", ["difference_percent"]);
        Some(rows.rows(self.pairs.iter().map(row)))
    }
}

/// Returns the name of a figure.
fn words(figure: &MachineFigure) -> String {
    match figure {
        MachineFigure::Latency { access, from, to } => {
            let access = if *access == Access::Load { "load" } else { "store" };
            format!("{access} latency from node {from} to node {to}")
        }
        MachineFigure::Bandwidth { access, from, to } => {
            let access = if *access == Access::Load { "reads" } else { "writes" };
            format!("{access} from node {from} to node {to}")
        }
        MachineFigure::CacheHit(level) => format!("hit in L{level}"),
        MachineFigure::CacheSize(level) => format!("size of L{level}"),
        MachineFigure::TlbEntries { level, page_bytes } => {
            let pages = page_bytes.iter().map(|bytes| format!("{} KiB", bytes >> 10));
            let pages: Vec<String> = pages.collect();
            format!("entries of TLB level {level} for pages of {}", pages.join(", "))
        }
        MachineFigure::LineWithinGroup => "line within an L3 group, one way".to_owned(),
        MachineFigure::LineBetweenNodes(from, to) => {
            format!("line between groups of nodes {from} and {to}, one way")
        }
        MachineFigure::Peak(place) => format!("peak of {}", loaded(place)),
        MachineFigure::LatencyAtPeak(place) => format!("latency at the peak of {}", loaded(place)),
    }
}

fn loaded(place: &LoadedPlace) -> String {
    let LoadedPlace { node, from, writes_percent } = place;
    match from {
        Some(from) => format!("link from node {from} to node {node}, {writes_percent} % writes"),
        None => format!("memory of node {node}, {writes_percent} % writes"),
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
        format!("; the widest is {off}, {}", words(&pair.what))
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
            words(&pair.what),
            side(pair.file),
            side(pair.result),
            pair.what.unit().to_owned(),
            pair.percent.map_or_else(|| "–".to_owned(), percent),
        ]
    });
    Table::new("Machine file and run compared")
        .words("what")
        .figures("file")
        .figures("run")
        .words("unit")
        .figures("difference")
        .rows(rows)
}
