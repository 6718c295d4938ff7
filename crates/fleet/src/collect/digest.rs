//! Reduces a run to the facts and figures that a fleet needs.

use std::collections::BTreeMap;

use numalab_record::{CellResult, Document, Environment, Metric};
use numalab_stats::Sample;
use numalab_topology::Machine;

use numalab_results::fleet::FigureKey;

use crate::store::Digest;

/// The largest number of figures of a run, which bounds it to about 50 KB.
const MOST_FIGURES: usize = 1_200;

pub(super) fn digest(document: &Document) -> Digest {
    let run = &document.run;
    let largest = run.machine.caches.iter().filter_map(|cache| cache.size_bytes).max().unwrap_or(0);
    let figures = document.cells.iter().flat_map(|cell| {
        Metric::ALL
            .into_iter()
            .filter_map(move |metric| figure(cell, metric, &run.machine, largest))
    });
    let mut facts: BTreeMap<String, String> = run
        .environment
        .facts
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), Environment::lasting(name, value)?)))
        .collect();
    facts.extend(shape(&run.machine));
    Digest {
        started_unix_ms: run.started_unix_ms,
        planned: run.plan.len(),
        ended: document.cells.iter().filter(|cell| !cell.samples.is_empty()).count(),
        facts,
        figures: figures.take(MOST_FIGURES).collect(),
    }
}

fn figure(
    cell: &CellResult,
    metric: Metric,
    machine: &Machine,
    largest_cache: u64,
) -> Option<(FigureKey, f64)> {
    let median = Sample::new(cell.values(metric)).ok()?.median();
    if median <= 0.0 {
        return None;
    }
    let family = cell.cell.experiment.description().family(metric, largest_cache)?;
    let workers = cell.cell.experiment.workers();
    let key = FigureKey {
        cell: cell.cell.id.0.clone(),
        metric,
        family,
        memory_node: single(workers.iter().map(|worker| Some(worker.node.0))),
        package: single(workers.iter().map(|worker| machine.cpu(worker.cpu)?.package)),
    };
    Some((key, median))
}

fn single(mut values: impl Iterator<Item = Option<u32>>) -> Option<u32> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// Returns the facts of the topology that firmware settings change: NPS, SNC, SMT, missing memory.
fn shape(machine: &Machine) -> Vec<(String, String)> {
    let packages = machine.packages().len().max(1);
    let memory: Vec<String> = machine
        .nodes
        .iter()
        .map(|node| ((node.memory_bytes + (1 << 29)) >> 30).to_string())
        .collect();
    let distances: Vec<String> = machine.distances.values().iter().map(u8::to_string).collect();
    let facts = [
        ("topology.packages", packages.to_string()),
        ("topology.nodes", machine.nodes.len().to_string()),
        ("topology.nodes_per_package", (machine.nodes.len() / packages).to_string()),
        ("topology.cpus", machine.online_cpus().len().to_string()),
        ("topology.cores", machine.cores().len().to_string()),
        ("topology.memory_gib_of_nodes", memory.join(",")),
        ("topology.distances", distances.join(",")),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_only_the_places_that_all_workers_share() {
        assert_eq!(single([Some(3), Some(3)].into_iter()), Some(3));
        assert_eq!(single([Some(3), Some(4)].into_iter()), None);
        assert_eq!(single([None, Some(4)].into_iter()), None);
        assert_eq!(single(std::iter::empty()), None);
    }
}
