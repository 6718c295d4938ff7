//! Cells of kinds without a dedicated part.

use numalab_page::number::{figure, interval_text};
use numalab_page::{Panel, Part, Table};
use numalab_record::{Experiment, Metric};

use crate::label;
use crate::run::{CellSummary, Figure, Summary};

/// Lists all figures of these cells.
pub(super) fn part(summary: &Summary<'_>) -> Option<Part> {
    let cells = summary.cells.iter().filter(|cell| !has_part(&cell.cell.experiment));
    let table = Table::new("Each cell, median over its windows")
        .words(["cell", "figure", "unit"])
        .figures(["median", "95 % interval, this run"])
        .rows(cells.flat_map(rows));
    Part::of("Other measurements", vec![Panel::table(table)])
}

fn has_part(experiment: &Experiment) -> bool {
    matches!(
        experiment,
        Experiment::Latency(_)
            | Experiment::Bandwidth(_)
            | Experiment::Loaded(_)
            | Experiment::C2c(_)
            | Experiment::Core(_)
    )
}

fn rows(cell: &CellSummary<'_>) -> Vec<Vec<String>> {
    let figures = cell.figures.iter().filter_map(|figures| Some((figures.metric, figures.best()?)));
    let row = |(metric, found): (Metric, &Figure)| {
        vec![
            label::experiment(&cell.cell.experiment),
            metric.name().to_owned(),
            metric.unit().to_string(),
            figure(found.median),
            interval_text(found.interval),
        ]
    };
    figures.map(row).collect()
}
