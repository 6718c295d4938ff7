//! How long cells will take, before they are run.

use std::time::Duration;

use numalab_record::{AccessPattern, Cell, Experiment, LatencyCell};

use super::shared_run;

/// Touching and zeroing memory, per GiB.
const TOUCH_PER_GIB: Duration = Duration::from_millis(250);
/// Building a cycle, per GiB.
const CYCLE_PER_GIB: Duration = Duration::from_millis(200);
/// Windows of a cell until 1 %, warm-up apart.
const WINDOWS: Duration = Duration::from_millis(120);
/// Warm-up of a chase beyond the caches.
const WARM_UP: Duration = Duration::from_millis(100);
/// Rounds of a bandwidth or loaded cell.
const ROUNDS: Duration = Duration::from_millis(300);
/// Where caches end for the purpose of an estimate.
const CACHE_BYTES: u64 = 64 << 20;

/// Time for `plan`, with buffers and cycles that are shared counted once.
#[must_use]
pub fn estimate_plan(plan: &[Cell]) -> Duration {
    estimate_buffers(plan) + plan.iter().map(estimate_cell).sum::<Duration>()
}

/// Time of a plan in which nothing is sampled: filling buffers, building cycles, warming up.
#[must_use]
pub(crate) fn estimate_unsampled(plan: &[Cell]) -> Duration {
    estimate_buffers(plan) + plan.iter().map(warm_up).sum::<Duration>()
}

/// Time to fill buffers and to build cycles, shared ones once.
fn estimate_buffers(plan: &[Cell]) -> Duration {
    let (mut rest, mut total) = (plan, Duration::ZERO);
    while !rest.is_empty() {
        let (together, later) = rest.split_at(shared_run(rest).max(1));
        total += buffers(together);
        rest = later;
    }
    total
}

/// Time for the windows of one cell whose buffers are ready.
#[must_use]
pub fn estimate_cell(cell: &Cell) -> Duration {
    match &cell.experiment {
        Experiment::Latency(latency) if is_beyond_caches(latency) => warm_up(cell) + WINDOWS,
        Experiment::Latency(_) => WINDOWS / 2,
        Experiment::Bandwidth(_) | Experiment::Loaded(_) => ROUNDS,
        _ => WINDOWS / 4,
    }
}

fn warm_up(cell: &Cell) -> Duration {
    match &cell.experiment {
        Experiment::Latency(latency) if is_beyond_caches(latency) => WARM_UP,
        _ => Duration::ZERO,
    }
}

fn is_beyond_caches(latency: &LatencyCell) -> bool {
    latency.size_bytes > CACHE_BYTES && !has_few_lines(latency.pattern)
}

/// Whether so few lines are visited that they are built at once and lie in caches.
fn has_few_lines(pattern: AccessPattern) -> bool {
    matches!(pattern, AccessPattern::OneLinePer(_))
}

/// Time to fill the buffers that the cells share and to build their cycles.
fn buffers(cells: &[Cell]) -> Duration {
    let latencies = || {
        cells.iter().filter_map(|cell| match &cell.experiment {
            Experiment::Latency(latency) => Some(latency),
            _ => None,
        })
    };
    let largest = latencies().map(|latency| latency.size_bytes).max().unwrap_or(0);
    let mut cycles: Vec<_> = latencies().map(cycle).collect();
    cycles.dedup();
    let is_built = |&&(_, pattern): &&(u64, _)| !has_few_lines(pattern);
    let built: u64 = cycles.iter().filter(is_built).map(|&(size, _)| size).sum();
    let streamed = match cells.first().map(|cell| &cell.experiment) {
        Some(Experiment::Bandwidth(cell)) => cell.size_bytes,
        Some(Experiment::Loaded(cell)) => cell.size_bytes,
        _ => 0,
    };
    per_gib(TOUCH_PER_GIB, largest + streamed) + per_gib(CYCLE_PER_GIB, built)
}

fn cycle(latency: &LatencyCell) -> (u64, AccessPattern) {
    (latency.size_bytes, latency.pattern)
}

fn per_gib(time: Duration, bytes: u64) -> Duration {
    time.mul_f64(bytes as f64 / (1_u64 << 30) as f64)
}
