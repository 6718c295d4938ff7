//! Tiles: the key figures of a run.

use numalab_page::Tile;
use numalab_page::number::{count, figure};
use numalab_record::AccessPattern;

use super::sentences::remote_tile;
use crate::label;
use crate::run::{LevelName, Remote, Summary};

/// Returns one tile per figure that was measured.
pub(super) fn tiles(summary: &Summary<'_>) -> Vec<Tile> {
    let tiles = [memory(summary), remote(summary), walk(summary), bandwidth(summary)];
    tiles.into_iter().flatten().collect()
}

fn memory(summary: &Summary<'_>) -> Option<Tile> {
    if let Remote::Measured(cost) = &summary.remote {
        return Some(Tile {
            name: "Local memory",
            value: format!("{} ns", figure(cost.local_ns)),
            detail: "median over the nodes".to_owned(),
        });
    }
    let curve = summary.curves.first()?;
    let last = curve.levels.last().filter(|level| level.name == LevelName::Memory)?;
    Some(Tile {
        name: "Memory latency",
        value: format!("{} ns", figure(last.latency_ns)),
        detail: format!("{} on {} pages", curve.pattern, curve.pages.name()),
    })
}

fn remote(summary: &Summary<'_>) -> Option<Tile> {
    let Remote::Measured(cost) = &summary.remote else {
        return None;
    };
    let (value, detail) = remote_tile(cost)?;
    Some(Tile { name: "Farthest memory", value, detail })
}

fn walk(summary: &Summary<'_>) -> Option<Tile> {
    let walk = summary.walks.first()?;
    Some(Tile {
        name: "Page walk",
        value: format!("{} ns", figure(walk.cost_ns)),
        detail: format!("{} pages, {}", walk.pages.name(), label::worker(walk.worker)),
    })
}

fn bandwidth(summary: &Summary<'_>) -> Option<Tile> {
    let sequential =
        summary.bandwidth.rows.iter().filter(|row| row.cell.pattern == AccessPattern::Sequential);
    let best = sequential.max_by(|a, b| a.figure.median.total_cmp(&b.figure.median))?;
    Some(Tile {
        name: "Highest bandwidth",
        value: format!("{} GB/s", figure(best.figure.median)),
        detail: format!("{}, {}", best.cell.kernel.name(), count(best.cell.workers.len(), "cpu")),
    })
}
