//! The one page model: what every result is made into, and every format made from.

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

/// What stands at the foot of every page.
pub(crate) const FOOT: &str =
    "How often numalab errs, and the tests that measure it: docs/statistics.md in its source.";

/// A page before it has a format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What made it, above the title.
    pub brand: String,
    /// What it is about.
    pub title: String,
    /// Where it comes from.
    pub meta: String,
    /// What matters most, in a few sentences.
    pub lead: Vec<Lead>,
    /// The picture of the first of them, which stands right behind it.
    pub picture: Option<Panel>,
    /// The few figures that are looked up most.
    pub tiles: Vec<Tile>,
    /// What its author wrote about it, line by line.
    pub note: Option<String>,
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// Whether a terminal shows every row of its tables: one that can be scrolled.
    pub whole: bool,
    /// Texts that are left out wherever they occur where the page is redacted.
    pub private: Vec<Private>,
}

/// A text that not everybody should see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Private {
    /// What it is, in a word or two.
    pub what: &'static str,
    /// The text.
    pub text: String,
}

/// One of the sentences that come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// What it is about, in a word or two.
    pub name: String,
    /// The sentence.
    pub sentence: String,
    /// How it is to be taken.
    pub mood: Mood,
    /// A command that follows from it, to be copied as it is.
    pub command: Option<String>,
}

impl Lead {
    /// A sentence under its name.
    #[must_use]
    pub fn new(name: impl Into<String>, sentence: impl Into<String>, mood: Mood) -> Self {
        Self { name: name.into(), sentence: sentence.into(), mood, command: None }
    }
}

/// One figure: what it is, its value, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// What it is.
    pub name: &'static str,
    /// Its value with its unit.
    pub value: String,
    /// Of what.
    pub detail: String,
}

/// A part of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Its heading.
    pub title: String,
    /// The command it is about.
    pub command: Option<String>,
    /// What must be said about the figures.
    pub notes: Vec<String>,
    /// Lines that are shown as they are: a listing, a picture drawn in characters.
    pub listing: Option<String>,
    /// Its charts and tables.
    pub panels: Vec<Panel>,
    /// How much room it deserves.
    pub weight: Weight,
}

impl Part {
    /// A part with those of these panels that have figures; `None` without any.
    #[must_use]
    pub fn of(title: impl Into<String>, mut panels: Vec<Panel>) -> Option<Self> {
        panels.retain(|panel| !panel.table.rows.is_empty());
        let part = Self { title: title.into(), panels, ..Self::default() };
        (!part.panels.is_empty()).then_some(part)
    }

    /// The same with these notes.
    #[must_use]
    pub fn noted(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// The same as background.
    #[must_use]
    pub fn background(self) -> Self {
        Self { weight: Weight::Background, ..self }
    }
}

/// How much room a part deserves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Results: shown everywhere.
    #[default]
    Result,
    /// Background: left out on the terminal.
    Background,
}

/// A table, and a chart of the same figures where one helps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// The chart.
    pub chart: Option<Chart>,
    /// The table; its caption is that of both.
    pub table: Table,
    /// What a terminal shows of it.
    pub terminal: Terminal,
    /// Whether a page folds it away, its picture too where that is not the page's own: evidence
    /// that few readers want.
    pub folded: bool,
}

/// What a terminal shows of a panel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Terminal {
    /// The chart and the table.
    #[default]
    Both,
    /// The chart, which has every figure that matters most.
    Chart,
    /// Narrower tables instead.
    Instead(Vec<Table>),
    /// Nothing.
    Nothing,
}

impl Panel {
    /// A table.
    #[must_use]
    pub fn table(table: Table) -> Self {
        Self { table, ..Self::default() }
    }

    /// A chart with its table.
    #[must_use]
    pub fn drawn(chart: Chart, table: Table) -> Self {
        Self { chart: Some(chart), ..Self::table(table) }
    }

    /// The same, of which a terminal shows this.
    #[must_use]
    pub fn on_terminal(self, terminal: Terminal) -> Self {
        Self { terminal, ..self }
    }

    /// The same, folded away.
    #[must_use]
    pub fn folded(self) -> Self {
        Self { folded: true, ..self }
    }
}

#[cfg(test)]
mod tests;
