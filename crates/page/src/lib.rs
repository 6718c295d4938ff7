//! The page model of all results, and its renderers for every format.
//!
//! Pure: the same page always gives the same text. It does not depend on the subject of a page.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

mod html;
mod markdown;
mod model;
mod mood;
pub mod number;
mod render;
pub mod rows;
mod table;
mod terminal;
pub mod text;

pub use model::{
    AccessMap, Bar, BarGroup, BlockChanges, Chart, CurveLevel, CurvePoint, Curves, Dot, Figure,
    Heatmap, HeatmapEntry, IntervalRow, Lead, LoadPoint, MapCell, MapRow, MemoryOverTime, Moment,
    Page, Panel, Part, PhaseMark, Private, RunOrder, Series, SizeCurve, StripPart, Terminal, Tile,
    TimeRow, Weight, is_private_path,
};
pub use mood::Mood;
pub use table::{Align, Column, Table, one_line};
pub use terminal::Style;
pub use terminal::bar::share_bar;

use rows::Rows;

/// The part of a result that a format renders.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The page, with colours on a terminal.
    Terminal,
    /// The document.
    Document,
    /// The page, redacted if it is to be shared.
    Page(fn(&Page) -> String),
    /// The rows of figures; `None` without the figures that the format needs.
    Rows(fn(&Rows) -> Option<String>),
    /// The functions of a program.
    Program,
}

/// Declares the formats, one per row: name, source and content.
macro_rules! formats {
    ($($format:ident = $name:literal, $source:expr, $content:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = $content] $format,)*
        }

        impl Format {
            /// Every format with its name and its content.
            pub const ALL: [(Self, &'static str, &'static str); [$($name),*].len()] =
                [$((Self::$format, $name, $content)),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$format => $name,)*
                }
            }

            pub const fn source(self) -> Source {
                match self {
                    $(Self::$format => $source,)*
                }
            }

            /// Renders rows of figures; `None` if the format renders something else, or they lack
            /// the figures for it.
            pub fn of_rows(self, rows: &Rows) -> Option<String> {
                match self.source() {
                    Source::Rows(render) => render(rows),
                    _ => None,
                }
            }
        }
    };
}

formats! {
    Text = "text", Source::Terminal, "Text for a terminal";
    Json = "json", Source::Document, "Everything, with the raw samples if there are any";
    Csv = "csv", Source::Rows(|rows| Some(rows.csv())), "A row per measurement, node or host";
    Md = "md", Source::Page(Page::markdown), "Markdown";
    Html = "html", Source::Page(Page::html), "One self-contained page";
    OpenMetrics = "openmetrics", Source::Rows(Rows::openmetrics),
        "Gauges for Prometheus, in the OpenMetrics text format";
    Callgrind = "callgrind", Source::Program,
        "Cost of a program's memory by function, for KCachegrind (emulate and profile)";
}
