//! The page model: every result becomes a page, and every format is rendered from it.

mod chart;
mod figures;
mod memory_chart;
mod redact;

pub use chart::{Bar, BarGroup, BlockChanges, Chart, Curves, Dot, IntervalRow, RunOrder, Series};
pub use figures::{CurveLevel, CurvePoint, Figure, Heatmap, HeatmapEntry, LoadPoint, SizeCurve};
pub use memory_chart::{
    AccessMap, MapCell, MapRow, MemoryOverTime, Moment, PhaseMark, StripPart, TimeRow,
};

pub use redact::is_private_path;

use crate::mood::Mood;
use crate::table::Table;

pub(crate) const FOOT: &str =
    "How often numalab errs, and the tests that measure it: docs/statistics.md in its source.";

/// A page, independent of its format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The program and command that produced it, shown above the title.
    pub brand: String,
    pub title: String,
    /// The origin of its data.
    pub meta: String,
    /// The most important results, in a few sentences.
    pub lead: Vec<Lead>,
    /// The picture of the first result, shown directly below it.
    pub picture: Option<Panel>,
    /// The few figures that readers look up most.
    pub tiles: Vec<Tile>,
    /// The author's note, line by line.
    pub note: Option<String>,
    pub parts: Vec<Part>,
    /// True if a terminal shows every row of its tables, because it can scroll.
    pub whole: bool,
    /// Texts that are replaced everywhere if the page is redacted.
    pub private: Vec<Private>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Private {
    /// Kind of the private value, in a word or two.
    pub what: &'static str,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Subject of the sentence, in a word or two.
    pub name: String,
    pub sentence: String,
    pub mood: Mood,
    /// A command that follows from the sentence, to be copied verbatim; alternatives are on
    /// separate lines.
    pub command: Option<String>,
}

impl Lead {
    /// Returns a sentence with its name.
    pub fn new(name: impl Into<String>, sentence: impl Into<String>, mood: Mood) -> Self {
        Self { name: name.into(), sentence: sentence.into(), mood, command: None }
    }
}

/// A figure with its name and context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    pub name: &'static str,
    pub value: String,
    /// Context, in small print.
    pub detail: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    pub title: String,
    pub command: Option<String>,
    pub notes: Vec<String>,
    /// Verbatim lines: a listing, or a picture drawn in characters.
    pub listing: Option<String>,
    /// Charts and tables.
    pub panels: Vec<Panel>,
    /// The prominence of the part.
    pub weight: Weight,
}

impl Part {
    /// Returns a part with those of the panels that have figures; `None` if none has.
    pub fn of(title: impl Into<String>, mut panels: Vec<Panel>) -> Option<Self> {
        panels.retain(|panel| !panel.table.rows.is_empty());
        let part = Self { title: title.into(), panels, ..Self::default() };
        (!part.panels.is_empty()).then_some(part)
    }

    pub fn noted(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    pub fn background(self) -> Self {
        Self { weight: Weight::Background, ..self }
    }
}

/// The prominence of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Results, shown everywhere.
    #[default]
    Result,
    /// Background, left out on a terminal.
    Background,
}

/// A table, with a chart of the same figures if one helps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    pub chart: Option<Chart>,
    /// The table, whose caption applies to both.
    pub table: Table,
    /// The part of it that a terminal shows.
    pub terminal: Terminal,
    /// True if a page folds it, unless its chart is the page's picture: evidence that few readers
    /// need.
    pub folded: bool,
}

/// The part of a panel that a terminal shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Terminal {
    /// The chart and the table.
    #[default]
    Both,
    /// The chart, which has the most important figures.
    Chart,
    Instead(Vec<Table>),
    Nothing,
}

impl Panel {
    /// Returns a panel with a table only.
    pub fn table(table: Table) -> Self {
        Self { table, ..Self::default() }
    }

    /// Returns a panel with a chart and its table.
    pub fn drawn(chart: Chart, table: Table) -> Self {
        Self { chart: Some(chart), ..Self::table(table) }
    }

    /// Sets the part that a terminal shows.
    pub fn on_terminal(self, terminal: Terminal) -> Self {
        Self { terminal, ..self }
    }

    pub fn folded(self) -> Self {
        Self { folded: true, ..self }
    }
}

#[cfg(test)]
mod tests;
