//! A row per cell and metric.

use numalab_record::{CellId, WorkerPlan};

use crate::csv::quote;
use crate::label;
use numalab_analysis::run::{CellSummary, Figure, MetricFigures, State, Summary, is_on_node};

/// The first line of [`csv`].
const HEADER: &str = "cell,what,cpus,nodes,state,metric,unit,median,lo,hi,windows,disturbed,\
                      median_with_disturbed,effective_size,proven_on_node";

/// One line for each cell and metric: median and 95 % interval without disturbed
/// windows, the median with them, and whether the memory was proven to lie on its
/// node. A cell without samples has one line without figures. RFC 4180 quoting, but
/// lines end in `\n`.
pub(super) fn csv(summary: &Summary<'_>) -> String {
    let mut out = format!("{HEADER}\n");
    for cell in &summary.cells {
        if cell.figures.is_empty() {
            out.push_str(&line(cell, None));
        }
        for figures in &cell.figures {
            out.push_str(&line(cell, Some(figures)));
        }
    }
    out
}

fn line(cell: &CellSummary<'_>, figures: Option<&MetricFigures>) -> String {
    let workers = cell.cell.experiment.workers();
    let list = |number: fn(&WorkerPlan) -> u32| {
        let numbers: Vec<String> = workers.iter().map(|w| number(w).to_string()).collect();
        numbers.join(" ")
    };
    let CellId(id) = &cell.cell.id;
    let proven = (!cell.placements.is_empty()).then(|| cell.placements.iter().all(is_on_node));
    let mut fields = vec![
        quote(id),
        quote(&label::experiment(&cell.cell.experiment)),
        list(|worker| worker.cpu.0),
        list(|worker| worker.node.0),
        state(cell.state).to_owned(),
    ];
    fields.extend(figures.map_or_else(|| vec![String::new(); 9], figure_fields));
    fields.push(proven.map_or_else(String::new, |proven| proven.to_string()));
    fields.join(",") + "\n"
}

fn figure_fields(figures: &MetricFigures) -> Vec<String> {
    let kept = figures.kept.as_ref();
    let interval = kept.and_then(|figure| figure.interval);
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    vec![
        figures.metric.name().to_owned(),
        figures.metric.unit().to_string(),
        number(kept.map(|figure| figure.median)),
        number(interval.map(|interval| interval.lo)),
        number(interval.map(|interval| interval.hi)),
        figures.windows.to_string(),
        figures.disturbed.to_string(),
        number(figures.all.as_ref().map(|figure| figure.median)),
        number(kept.and_then(|figure: &Figure| figure.effective_size)),
    ]
}

fn state(state: State<'_>) -> &'static str {
    match state {
        State::Precise => "precise",
        State::BudgetSpent => "budget-spent",
        State::Failed(_) => "failed",
        State::Unmeasured => "unmeasured",
    }
}
