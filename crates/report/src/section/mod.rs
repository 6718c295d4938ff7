//! The parts of a report in the order in which every format shows them.

mod latency;
mod provenance;
mod traffic;

use numalab_record::Unit;
use numalab_stats::Interval;

use crate::number::figure;
use crate::table::Table;
use numalab_analysis::run::{Curve, Figure, LoadedCurve, Matrix, Summary};

/// One part of a report.
pub(crate) struct Section<'a> {
    /// Its name in links.
    pub(crate) id: &'static str,
    /// Its heading.
    pub(crate) title: &'static str,
    /// What must be said beside the figures.
    pub(crate) notes: Vec<String>,
    /// Its charts and tables.
    pub(crate) panels: Vec<Panel<'a>>,
    /// How much room it deserves.
    pub(crate) weight: Weight,
}

/// How much room a section deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Results: shown everywhere.
    Result,
    /// Background: left out on the terminal.
    Background,
}

/// A chart and the table with its figures.
pub(crate) struct Panel<'a> {
    /// The chart, where one helps.
    pub(crate) chart: Chart<'a>,
    /// The table with the same figures.
    pub(crate) table: Table,
    /// What the table has beyond the chart.
    pub(crate) beyond_chart: Beyond,
}

/// What a table has beyond a chart with values written beside its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// More than what matters most: a terminal shows both.
    More,
    /// Nothing that a terminal must show.
    Nothing,
}

impl<'a> Panel<'a> {
    /// A table without chart.
    pub(crate) fn plain(table: Table) -> Self {
        Self::drawn(Chart::None, table)
    }

    /// A chart with its table.
    pub(crate) fn drawn(chart: Chart<'a>, table: Table) -> Self {
        Self { chart, table, beyond_chart: Beyond::More }
    }

    /// A chart that a terminal shows without its table.
    pub(crate) fn told_by_chart(chart: Chart<'a>, table: Table) -> Self {
        Self { beyond_chart: Beyond::Nothing, ..Self::drawn(chart, table) }
    }
}

/// What a picture is drawn of.
pub(crate) enum Chart<'a> {
    /// None: the table says it all.
    None,
    /// Values between rows and columns.
    Heatmap(&'a Matrix),
    /// The same, made for this report.
    OwnHeatmap(Matrix),
    /// Latency over size.
    Curves(&'a [Curve]),
    /// Bars in groups.
    Bars(Vec<BarGroup>),
    /// Latency over bandwidth.
    Loaded(&'a LoadedCurve<'a>),
}

/// Bars under one heading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BarGroup {
    /// The heading.
    pub(crate) title: String,
    /// The bars.
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// Its label.
    pub(crate) label: String,
    /// Its value.
    pub(crate) figure: Figure,
    /// The unit of the value.
    pub(crate) unit: Unit,
    /// The name of the cell it comes from.
    pub(crate) cell: String,
}

/// The sections for which `summary` has anything, in order.
pub(crate) fn sections<'a>(summary: &'a Summary<'a>) -> Vec<Section<'a>> {
    let all = [
        latency::matrix(summary),
        latency::curve(summary),
        latency::walk(summary),
        traffic::bandwidth(summary),
        traffic::loaded(summary),
        traffic::c2c(summary),
        provenance::oddities(summary),
        provenance::placement(summary),
        provenance::unfinished(summary),
        provenance::environment(summary),
        provenance::method(summary),
    ];
    all.into_iter().flatten().collect()
}

/// `97.9 – 98.6`, with as many digits as it takes to tell the bounds apart, or a
/// dash where there is no interval.
pub(crate) fn interval_text(interval: Option<Interval>) -> String {
    let Some(Interval { lo, hi }) = interval else {
        return "–".to_owned();
    };
    let decimals = (0..4).find(|&decimals| (hi - lo) * 10_f64.powi(decimals) >= 1.0);
    match decimals.map(|decimals| decimals.unsigned_abs() as usize) {
        Some(decimals) if decimals > 0 && hi.abs() < 1e5 => {
            format!("{lo:.decimals$} – {hi:.decimals$}")
        }
        _ => format!("{} – {}", figure(lo), figure(hi)),
    }
}

/// A matrix as a table.
pub(crate) fn matrix_table(matrix: &Matrix, caption: String) -> Table {
    let corner = format!("{} \\ {}", matrix.rows_are.name(), matrix.columns_are.name());
    let table = matrix
        .columns
        .iter()
        .fold(Table::new(caption).words(corner), |table, column| table.figures(column.to_string()));
    let rows = matrix.rows.iter().zip(&matrix.entries);
    table.rows(rows.map(|(row, entries)| {
        let value = |entry: &Option<numalab_analysis::run::Entry>| {
            entry.as_ref().map_or_else(|| "–".to_owned(), |entry| figure(entry.value))
        };
        let label = format!("{} {row}", matrix.rows_are.name());
        core::iter::once(label).chain(entries.iter().map(value)).collect()
    }))
}
