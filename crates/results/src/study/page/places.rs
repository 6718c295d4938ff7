//! A map of a study's guests and the host's nodes.

use std::collections::{BTreeMap, BTreeSet};

use numalab_page::Table;

use crate::study::{GuestMap, StudySummary};

/// Minimum share of a guest's memory that is shown.
const LEAST_SHARE: f64 = 0.01;

/// Returns each treatment's guests in the columns of the nodes that hold their memory.
pub(super) fn memory(summary: &StudySummary<'_>, maps: &[GuestMap]) -> Table {
    let nodes: BTreeSet<Option<u32>> =
        maps.iter().flat_map(|map| map.memory.values().flat_map(|of| of.keys().copied())).collect();
    // Memory on no node comes last.
    let nodes: Vec<Option<u32>> =
        nodes.iter().copied().filter(Option::is_some).chain(nodes.get(&None).copied()).collect();
    let cell = |map: &GuestMap, node: Option<u32>| {
        let guests = map.memory.iter().filter_map(|(guest, shares)| {
            let share = shares.get(&node).copied().filter(|share| *share >= LEAST_SHARE)?;
            let is_all = share > 1.0 - LEAST_SHARE;
            Some(if is_all { guest.clone() } else { format!("{guest} {:.0} %", 100.0 * share) })
        });
        guests.collect::<Vec<_>>().join(", ")
    };
    let rows = maps.iter().map(|map| {
        let cells = nodes.iter().map(|node| cell(map, *node));
        std::iter::once(treatment(summary, map)).chain(cells).collect::<Vec<_>>()
    });
    let table = Table::new("Guests by the nodes that hold their memory, with the share if not all");
    let head = nodes.iter().fold(table.words("treatment"), |table, node| match node {
        Some(node) => table.words(format!("node {node}")),
        None => table.words("no node"),
    });
    head.rows(rows)
}

/// Returns each treatment's guests by the cpus that they may run on.
pub(super) fn cpus(summary: &StudySummary<'_>, maps: &[GuestMap]) -> Table {
    let rows = maps.iter().flat_map(|map| {
        let mut by_cpus: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (guest, cpus) in &map.cpus {
            by_cpus.entry(cpus).or_default().push(guest);
        }
        let rows = by_cpus.into_iter();
        rows.map(|(cpus, guests)| vec![treatment(summary, map), cpus.to_owned(), guests.join(", ")])
            .collect::<Vec<_>>()
    });
    Table::new("Guests by the cpus that they may run on")
        .words(["treatment", "cpus", "guests"])
        .rows(rows)
}

fn treatment(summary: &StudySummary<'_>, map: &GuestMap) -> String {
    let treatments = &summary.document.run.treatments;
    treatments.get(map.treatment).map_or_else(String::new, |treatment| treatment.name.clone())
}
