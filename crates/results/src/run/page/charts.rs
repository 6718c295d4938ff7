//! Charts of a run.

use numalab_page::number::{figure, interval_text};
use numalab_page::{
    Chart, CurveLevel, CurvePoint, Figure, Heatmap, HeatmapEntry, LoadPoint, Panel, SizeCurve,
    Table,
};

use crate::label;
use crate::run::{self, Curve, LoadedPoint, Matrix, MatrixEntry};

/// Returns a matrix as a heat map with its table.
pub(crate) fn matrix_panel(matrix: &Matrix, caption: String) -> Panel {
    Panel::drawn(heatmap(matrix), matrix_table(matrix, caption))
}

fn heatmap(matrix: &Matrix) -> Chart {
    let entry = |entry: &MatrixEntry| {
        let spread = interval_text(entry.spread);
        let detail = match entry.cells.as_slice() {
            [] => String::new(),
            [cell] => format!("95 % interval {spread}\ncell {cell}"),
            cells => format!("median of {} cells, {spread}", cells.len()),
        };
        HeatmapEntry { value: entry.value, detail }
    };
    let row =
        |row: &Vec<Option<MatrixEntry>>| row.iter().map(|of| of.as_ref().map(entry)).collect();
    Chart::Heatmap(Heatmap {
        unit: matrix.unit.to_string(),
        rows_are: matrix.rows_are.name(),
        rows: matrix.rows.clone(),
        columns_are: matrix.columns_are.name(),
        columns: matrix.columns.clone(),
        entries: matrix.entries.iter().map(row).collect(),
    })
}

fn matrix_table(matrix: &Matrix, caption: String) -> Table {
    let corner = format!("{} \\ {}", matrix.rows_are.name(), matrix.columns_are.name());
    let table = matrix
        .columns
        .iter()
        .fold(Table::new(caption).words(corner), |table, column| table.figures(column.to_string()));
    let rows = matrix.rows.iter().zip(&matrix.entries);
    table.rows(rows.map(|(row, entries)| {
        let value = |entry: &Option<MatrixEntry>| {
            entry.as_ref().map_or_else(|| "–".to_owned(), |entry| figure(entry.value))
        };
        let label = format!("{} {row}", matrix.rows_are.name());
        core::iter::once(label).chain(entries.iter().map(value)).collect()
    }))
}

impl From<&run::Figure> for Figure {
    fn from(figure: &run::Figure) -> Self {
        Self { value: figure.median, interval: figure.interval }
    }
}

pub(super) fn size_curves(curves: &[Curve]) -> Chart {
    let curve = |curve: &Curve| SizeCurve {
        name: label::worker(curve.worker),
        points: curve
            .points
            .iter()
            .map(|point| CurvePoint {
                size_bytes: point.size_bytes,
                figure: (&point.figure).into(),
                cell: point.cell.0.clone(),
            })
            .collect(),
        levels: curve
            .levels
            .iter()
            .map(|level| CurveLevel {
                name: format!("{}{}", level.name, if level.at_most { ", at most" } else { "" }),
                latency_ns: level.latency_ns,
                from_bytes: level.from_bytes,
                to_bytes: level.to_bytes,
                capacity_bytes: level.capacity_bytes,
            })
            .collect(),
    };
    Chart::LatencyOverSize(curves.iter().map(curve).collect())
}

pub(super) fn load_points(points: &[LoadedPoint]) -> Vec<LoadPoint> {
    let point = |point: &LoadedPoint| LoadPoint {
        load: label::delay(point.delay),
        traffic_gb_per_s: point.traffic_gb_per_s,
        latency: (&point.latency).into(),
        cell: point.cell.0.clone(),
    };
    points.iter().map(point).collect()
}
