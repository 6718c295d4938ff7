//! Which cells of a plan share their buffers.

use numalab_record::{Cell, Experiment, Team};

/// How many of the leading cells share their buffers and are run together.
pub(crate) fn shared_run(cells: &[Cell]) -> usize {
    let Some(first) = cells.first() else { return 0 };
    cells.iter().take_while(|cell| share_buffers(&first.experiment, &cell.experiment)).count()
}

fn share_buffers(first: &Experiment, other: &Experiment) -> bool {
    match (first, other) {
        (Experiment::Latency(a), Experiment::Latency(b)) => {
            let same_team = a.team == b.team && a.pages == b.pages;
            same_team
                && match a.team {
                    Team::Serial => a.worker.node == b.worker.node,
                    Team::Concurrent => a.size_bytes == b.size_bytes && a.pattern == b.pattern,
                }
        }
        (Experiment::Bandwidth(a), Experiment::Bandwidth(b)) => {
            a.workers == b.workers && a.size_bytes == b.size_bytes && a.pages == b.pages
        }
        (Experiment::Loaded(a), Experiment::Loaded(b)) => {
            a.chaser == b.chaser
                && a.load == b.load
                && (a.kernel, a.size_bytes, a.pages) == (b.kernel, b.size_bytes, b.pages)
        }
        _ => false,
    }
}
