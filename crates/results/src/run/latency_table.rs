//! The latency table of the NUMA benchmarking suite: a line per rank, a column per size.

use std::collections::{BTreeMap, BTreeSet};

use numalab_page::number::size;
use numalab_record::{Document, LatencyCell, Metric, Team};

use crate::run::CellSummary;

/// A rank's identity: its worker, chasing alone or with the others.
type Rank = (Team, numalab_record::WorkerPlan);

/// Returns latency by rank and size as text: rank, core, cpu node, address and node of the memory,
/// then one column per size.
///
/// Columns are as wide as their contents. The text is empty for a run without latency cells. Ranks
/// measured both one at a time and all at once give two tables, one below the other.
pub fn latency_table(document: &Document) -> String {
    let cells: Vec<CellSummary<'_>> = document.cells.iter().map(CellSummary::of).collect();
    let mut ranks: BTreeMap<Rank, BTreeMap<u64, &CellSummary<'_>>> = BTreeMap::new();
    for cell in &cells {
        if let Some(latency) = cell.latency().filter(|latency| is_first_kind(latency, &cells)) {
            let sizes = ranks.entry((latency.team, latency.worker)).or_default();
            sizes.entry(latency.size_bytes).or_insert(cell);
        }
    }
    let sizes: BTreeSet<u64> = ranks.values().flat_map(|row| row.keys().copied()).collect();
    [Team::Serial, Team::Concurrent]
        .into_iter()
        .filter_map(|team| {
            let rows: Vec<Vec<String>> = ranks
                .iter()
                .filter(|((of, _), _)| *of == team)
                .enumerate()
                .map(|(number, ((_, worker), row))| {
                    let cpu_node = document.run.machine.cpu(worker.cpu).and_then(|cpu| cpu.node);
                    let cpu_node = cpu_node.map_or_else(|| "-".to_owned(), |node| node.to_string());
                    let mut line = vec![
                        format!("{number:03}"),
                        worker.cpu.to_string(),
                        cpu_node,
                        address(row.values().copied()),
                        worker.node.to_string(),
                    ];
                    line.extend(sizes.iter().map(|bytes| latency(row.get(bytes).copied())));
                    line
                })
                .collect();
            (!rows.is_empty()).then(|| frame(team, &sizes, &rows))
        })
        .collect()
}

/// Returns `true` if the cell has the pattern and pages of the run's first latency cell. A column
/// must not mix what cannot be compared.
fn is_first_kind(cell: &LatencyCell, cells: &[CellSummary<'_>]) -> bool {
    cells
        .iter()
        .find_map(CellSummary::latency)
        .is_some_and(|first| (first.pattern, first.pages) == (cell.pattern, cell.pages))
}

fn address<'a>(cells: impl Iterator<Item = &'a CellSummary<'a>>) -> String {
    cells
        .filter_map(|cell| cell.placements.first())
        .max_by_key(|placement| placement.buffer_bytes)
        .map_or_else(|| "-".to_owned(), |placement| format!("{:#x}", placement.address))
}

fn latency(cell: Option<&CellSummary<'_>>) -> String {
    cell.and_then(|cell| cell.figure(Metric::Latency))
        .map_or_else(|| "-".to_owned(), |figure| format!("{:.2}", figure.median))
}

/// Column groups, as the suite prints them.
const GROUPS: [(&str, usize); 3] = [("MPI", 1), ("CPU", 2), ("MEMORY", 2)];
const HEADINGS: [&str; 5] = ["Ranks", "Cores", "NUMA", "Address", "NUMA"];

fn frame(team: Team, sizes: &BTreeSet<u64>, rows: &[Vec<String>]) -> String {
    let mut headings: Vec<String> = HEADINGS.map(str::to_owned).to_vec();
    headings.extend(sizes.iter().map(|&bytes| format!("{}B", size(bytes))));
    let widths: Vec<usize> = (0..headings.len())
        .map(|at| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.max().unwrap_or(0).max(headings[at].chars().count())
        })
        .collect();
    let line = |cells: &[String]| {
        let mut out = String::from("|");
        for (cell, width) in cells.iter().zip(&widths) {
            out.push_str(&format!(" {cell:<width$} |"));
        }
        out.push('\n');
        out
    };
    let rule: String = widths.iter().map(|width| "-".repeat(width + 2) + "|").collect();
    let border = format!(" {}\n", "=".repeat(rule.chars().count() - 1));
    let mut out = format!("{border}{}|{rule}\n", groups(team, &widths));
    out.push_str(&line(&headings));
    out.push_str(&format!("|{rule}\n"));
    out.extend(rows.iter().map(|row| line(row)));
    out.push_str(&border);
    out
}

/// Returns the line of group headings, each centred over its columns.
fn groups(team: Team, widths: &[usize]) -> String {
    let latency = format!("LATENCY (ns), {}", crate::label::team(team));
    let sizes = widths.len() - HEADINGS.len();
    let mut out = String::from("|");
    let mut at = 0;
    for (name, columns) in GROUPS.into_iter().chain([(latency.as_str(), sizes)]) {
        let span: usize = widths[at..at + columns].iter().map(|width| width + 3).sum();
        let width = span - 1;
        let name = numalab_page::text::cut(name, width);
        out.push_str(&format!("{name:^width$}|"));
        at += columns;
    }
    out.push('\n');
    out
}
