//! Records to terminal text, Markdown, HTML, CSV and JSON.
//!
//! [`Summary::of`] analyses a run; [`terminal`], [`markdown`], [`html`] and [`csv`]
//! show it, [`json`] gives everything raw. [`compare`] sets two runs side by side,
//! and [`topology`] shows a machine. Nothing here reads or writes files, asks the
//! time or measures: the same record always gives the same text.
#![forbid(unsafe_code)]

mod compare;
mod csv;
mod html;
mod json;
mod label;
mod markdown;
pub mod memory;
mod number;
pub mod page;
mod ranks;
pub mod samples;
pub mod scaling;
mod section;
pub mod study;
mod summary;
mod table;
mod terminal;
pub mod text;
pub mod topology;

pub use compare::{ComparedCell, Comparison, FactDifference, Tolerance, compare};
pub use csv::csv;
pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use ranks::{
    mapping_check, memory_by_node, ranks_csv, ranks_csv_header, ranks_csv_row, ranks_disturbed,
    ranks_table,
};
pub use summary::{
    Axis, BandwidthRow, Bandwidths, CellSummary, Core, CoreToCore, Curve, CurvePoint, Entry,
    Figure, Home, LatencyMatrix, Level, LevelName, LoadedCurve, LoadedPoint, Matrix, MetricFigures,
    Nearness, NearnessFigure, Oddity, OddityKind, PageWalk, Progress, Proof, Remote, RemoteCost,
    RemotePair, State, Summary,
};
pub use terminal::{Style, latency_table, terminal};
