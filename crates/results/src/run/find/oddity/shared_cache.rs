//! Cpus that the system says share an L3, but that exchange lines as if they did not.

use numalab_record::{CellId, Experiment};

use super::{Oddity, RunFinding};
use crate::Finding;
use crate::run::find::c2c::{Nearness, nearness};
use crate::run::find::{CellSummary, Level, LevelName, Summary};

/// Maximum one-way time of a line between cpus that share an L3, as a multiple of that cache's
/// latency. One way is two messages; each takes about the cache's latency if the cache is small,
/// and twice that on a mesh.
const FAR: f64 = 8.0;

/// Finds a median time between such cpus that their cache cannot explain.
pub(super) fn far(summary: &Summary<'_>) -> Option<RunFinding> {
    let is_l3 = |level: &&Level| level.name == LevelName::Cache(3);
    let cache_ns = summary.curves.first()?.levels.iter().find(is_l3)?.latency_ns;
    let mut figures = summary.c2c.by_nearness.iter();
    let found = figures.find(|figure| figure.nearness == Nearness::SameL3Group)?;
    let one_way_ns = found.median_ns / 2.0;
    let is_guest = summary.run.environment.facts.contains_key("hypervisor");
    let pairs = found.pairs;
    let what = Oddity::SharedCacheFar { pairs, one_way_ns, cache_ns, is_guest };
    (one_way_ns > FAR * cache_ns).then(|| Finding::new(what).over(FAR).shown_by(cells(summary)))
}

fn cells(summary: &Summary<'_>) -> Vec<CellId> {
    let is_of_group = |cell: &&CellSummary<'_>| match &cell.cell.experiment {
        Experiment::C2c(pair) => {
            nearness(&summary.run.machine, pair.from, pair.to) == Nearness::SameL3Group
        }
        _ => false,
    };
    summary.cells.iter().filter(is_of_group).map(|cell| cell.cell.id.clone()).collect()
}
