//! Placement, environment and method of a run, and its unfinished cells.

use numalab_page::number::{count, duration, share, size, trimmed};
use numalab_page::{Panel, Part, Table, Weight};
use numalab_record::Civil;

use super::oddity::sentence;
use crate::label::whole_sentence;
use crate::run::{CellState, CellSummary, Summary};

/// Maximum number of cells listed by name; the rest are counted.
const LISTED_CELLS: usize = 20;

fn part(title: &str, notes: Vec<String>, table: Option<Table>) -> Part {
    Part {
        title: title.to_owned(),
        notes,
        panels: table.map(Panel::table).into_iter().collect(),
        weight: Weight::Background,
        ..Part::default()
    }
}

pub(super) fn oddities(summary: &Summary<'_>) -> Option<Part> {
    if summary.findings.is_empty() {
        return None;
    }
    let notes = summary.findings.iter().map(|found| whole_sentence(&sentence(found)));
    let mut odd = part("All anomalies", notes.collect(), None);
    // The lead names the first two, so a terminal needs the list only for more.
    if summary.findings.len() > 2 {
        odd.weight = Weight::Result;
    }
    Some(odd)
}

pub(super) fn placement(summary: &Summary<'_>) -> Option<Part> {
    let proof = &summary.proof;
    if proof.workers == 0 {
        return None;
    }
    let mut rows = vec![
        row("workers proven", proof.workers),
        row("affinity read back as one cpu", proof.pinned),
        row("every page checked on the requested node", proof.on_node),
        vec!["pages checked".to_owned(), proof.pages_checked.to_string()],
    ];
    let pages = proof.bytes_per_page_size.iter();
    rows.extend(
        pages.map(|(&page, &bytes)| vec![format!("on pages of {}", size(page)), size(bytes)]),
    );
    let table = Table::new("Placement as the kernel reported it")
        .words("what")
        .figures("amount")
        .rows(rows);
    Some(part("Placement proof", Vec::new(), Some(table)))
}

fn row(what: &str, number: usize) -> Vec<String> {
    vec![what.to_owned(), number.to_string()]
}

pub(super) fn unfinished(summary: &Summary<'_>) -> Option<Part> {
    let rows: Vec<Vec<String>> = summary
        .cells
        .iter()
        .filter_map(|cell| {
            let why = match cell.state {
                CellState::Precise => return None,
                CellState::BudgetSpent => "out of time",
                CellState::Failed(reason) => reason,
                CellState::Unmeasured => "not started",
            };
            Some(vec![cell.cell.id.0.clone(), reached(cell), why.to_owned()])
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let notes = if rows.len() > LISTED_CELLS {
        vec![format!("{} more are in run.json and cells.jsonl.", rows.len() - LISTED_CELLS)]
    } else {
        Vec::new()
    };
    let table = Table::new("Cells that did not reach the requested precision")
        .words("cell")
        .figures("reached")
        .words("why")
        .rows(rows.into_iter().take(LISTED_CELLS));
    Some(part("Unfinished cells", notes, Some(table)))
}

/// Returns the half width of a cell's interval, for the metric that ends the cell.
fn reached(cell: &CellSummary<'_>) -> String {
    let figure = cell.figures.first().and_then(|figures| figures.best());
    let half = figure.and_then(|figure| {
        let interval = figure.interval?;
        Some(50.0 * (interval.hi - interval.lo) / figure.median)
    });
    half.map_or_else(
        || "–".to_owned(),
        |half| format!("± {} %", numalab_page::number::figure(half)),
    )
}

pub(super) fn environment(summary: &Summary<'_>) -> Option<Part> {
    let run = summary.run;
    let fact = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        fact("started", Civil::of(run.started_unix_ms).minute()),
        fact("command", run.command.join(" ")),
        fact("numalab", run.version.clone()),
        fact("nodes", run.machine.nodes.len().to_string()),
        fact("cpus online", run.machine.online_cpus().len().to_string()),
        fact("memory", size(run.machine.memory_bytes())),
    ];
    let facts = run.environment.facts.iter();
    rows.extend(facts.map(|(name, value)| fact(name, value.to_string())));
    let table = Table::new("The system at the start").words("fact").words("value").rows(rows);
    Some(part("Environment", Vec::new(), Some(table)))
}

pub(super) fn method(summary: &Summary<'_>) -> Option<Part> {
    let (run, progress) = (summary.run, &summary.progress);
    let notes = vec![
        "Latency is the time of one load that depends on the previous one, along a random cycle \
         through every cache line of the buffer, which a prefetcher cannot follow. Page-local \
         order visits all of a page before it moves on, so the TLB hits."
            .to_owned(),
        "Buffers are bound to a node and touched once; worker and memory are then read back \
         from the kernel. A cell that is not where it should be gives no figure."
            .to_owned(),
        "A figure is the median of its windows. Its interval holds the median with 95 % \
         confidence and allows for windows that resemble their neighbours. It describes this \
         run only: runs minutes apart can differ by more, and `--repeat` shows by how much."
            .to_owned(),
        format!(
            "Windows disturbed by switches, steal or other load are kept in the samples and left \
             out of the figures, unless too few others remain: {} of {}. Caches are found by the \
             sweep, and only compared with those that the system reports.",
            share(progress.disturbed, progress.windows),
            count(progress.windows, "window")
        ),
        format!(
            "Requested: intervals within {} % in at most {}. Of {}, {} reached this precision, {} \
             did not, {} failed, {} were not reached. Seed {}.",
            trimmed(run.precision * 100.0),
            duration(run.budget_ns),
            count(progress.planned, "cell"),
            progress.precise,
            progress.budget_spent,
            progress.failed,
            progress.unmeasured,
            run.seed
        ),
    ];
    Some(part("Method", notes, None))
}
