//! One row per cell and metric.

use numalab_page::rows::{Field, Holds, Rows};
use numalab_record::{CellId, Experiment, Pages, WorkerPlan};

use crate::label;
use crate::run::{CellState, CellSummary, Figure, MetricFigures, Summary, is_on_node};

/// Columns that distinguish cells beyond their names: see [`fields`].
pub(crate) const FIELDS: [&str; 6] = ["size_bytes", "pages", "pattern", "kernel", "cpu", "node"];

/// Returns one row per cell and metric: median and 95 % interval without disturbed windows, the
/// median with them, and whether memory was proven to be on its node. A cell without samples gets
/// one row without figures.
pub(super) fn rows(summary: &Summary<'_>) -> Rows {
    let of_cell = |cell: &CellSummary<'_>| -> Vec<Vec<Field>> {
        match cell.figures.is_empty() {
            true => vec![row(cell, None)],
            false => cell.figures.iter().map(|figures| row(cell, Some(figures))).collect(),
        }
    };
    columns().rows(summary.cells.iter().flat_map(of_cell))
}

pub(crate) fn columns() -> Rows {
    let effective = "the number of independent windows with the same information";
    Rows::new("cell")
        .labels(["cell"])
        .texts(["what"])
        .labels(FIELDS)
        .texts(["state"])
        .with(Holds::Metric, ["metric"])
        .with(Holds::Unit, ["unit"])
        .values(
            "",
            [
                ("median", "the median of the cell's windows"),
                ("lo", "the lower end of the median's 95 % interval"),
                ("hi", "the upper end of the median's 95 % interval"),
            ],
        )
        .values(
            "windows",
            [
                ("windows", "the number of windows"),
                ("disturbed", "the number of windows disturbed by other load"),
            ],
        )
        .values("", [("median_with_disturbed", "the median of all windows, with disturbed ones")])
        .values("windows", [("effective_size", effective)])
        .texts(["proven_on_node"])
}

fn row(cell: &CellSummary<'_>, figures: Option<&MetricFigures>) -> Vec<Field> {
    let CellId(id) = &cell.cell.id;
    let proven = (!cell.placements.is_empty()).then(|| cell.placements.iter().all(is_on_node));
    let mut row = vec![Field::from(id.as_str()), label::experiment(&cell.cell.experiment).into()];
    row.extend(fields(&cell.cell.experiment));
    row.push(state(cell.state).into());
    row.extend(figures.map_or_else(|| vec![Field::Empty; 9], figure_fields));
    row.push(proven.map(|proven| proven.to_string()).into());
    row
}

/// Returns each worker's buffer size in bytes, pages, visiting order, kernel, and the workers' cpus
/// and nodes; empty for properties that an experiment does not have.
pub(crate) fn fields(experiment: &Experiment) -> [Field; 6] {
    let workers = experiment.workers();
    let list = |number: fn(&WorkerPlan) -> u32| {
        let numbers: Vec<String> = workers.iter().map(|w| number(w).to_string()).collect();
        numbers.join(" ")
    };
    let axes = experiment.description().axes();
    let pages = axes.pages.map(Pages::name);
    [
        axes.size_bytes.into(),
        pages.into(),
        axes.pattern.map(|pattern| pattern.to_string()).into(),
        axes.kernel.map(|kernel| kernel.to_string()).into(),
        list(|worker| worker.cpu.0).into(),
        list(|worker| worker.node.0).into(),
    ]
}

fn figure_fields(figures: &MetricFigures) -> Vec<Field> {
    let best = figures.best();
    let interval = best.and_then(|figure| figure.interval);
    vec![
        figures.metric.name().into(),
        figures.metric.unit().to_string().into(),
        best.map(|figure| figure.median).into(),
        interval.map(|interval| interval.lo).into(),
        interval.map(|interval| interval.hi).into(),
        figures.windows.into(),
        figures.disturbed.into(),
        figures.all.as_ref().map(|figure| figure.median).into(),
        best.and_then(|figure: &Figure| figure.effective_size).into(),
    ]
}

fn state(state: CellState<'_>) -> &'static str {
    match state {
        CellState::Precise => "precise",
        CellState::BudgetSpent => "budget-spent",
        CellState::Failed(_) => "failed",
        CellState::Unmeasured => "unmeasured",
    }
}
