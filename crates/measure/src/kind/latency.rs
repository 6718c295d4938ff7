//! Latency cells: one chaser after the other on a shared buffer, or all at once.

mod survey;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use numalab_membench::Barrier;
use numalab_record::{AccessPattern, Cell, Experiment, LatencyCell, Pages, Team, WorkerPlan};

use super::{Measurement, Together, WINDOWS, cells_of, filling, per_gib};
use crate::buffer::{Buffer, MemoryClaim, MemorySource, check_memory, pinned};
use crate::chase::{BuiltChase, ChaseOrder, Windows};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::{Give, Measured};
use crate::sampling::{Samples, WindowLength, sample_here};
use crate::scope::{MatrixShape, matrix_workers};
use crate::target::Target;
use crate::team::{abort_on_error, join_all};

pub(super) use survey::beyond_caches;

/// Time to build a cycle of one GiB.
const CYCLE_PER_GIB: Duration = Duration::from_millis(200);
/// Warm-up of a chase beyond the caches.
const WARM_UP: Duration = Duration::from_millis(100);
/// Assumed end of the caches, for estimates only.
const CACHE_BYTES: u64 = 64 << 20;

/// The common properties of latency cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySpec {
    pub pattern: AccessPattern,
    pub pages: Pages,
    /// The workers that chase at the same time.
    pub team: Team,
}

/// Returns the order of visits that shows memory and caches alone. Large pages allow one that is
/// random within what the TLB covers; small pages need a random order over everything.
pub fn plain_pattern(pages: Pages) -> AccessPattern {
    if pages.is_small() { AccessPattern::Random } else { AccessPattern::PageLocal }
}

/// Returns sizes from `from` to `to` bytes, two per octave (powers of two and 1.5 times those),
/// including both ends; `from` and `to` are at least 4 KiB.
pub fn curve_sizes(from_bytes: u64, to_bytes: u64) -> Vec<u64> {
    let from = from_bytes.max(4096);
    let to = to_bytes.max(from);
    let powers = (12..63).map(|bit| 1_u64 << bit);
    let steps = powers.flat_map(|power| [power, power + power / 2]);
    // Both ends are added separately, whether or not they are steps.
    let mut sizes: Vec<u64> = steps.filter(|&size| size > from && size < to).collect();
    sizes.insert(0, from);
    if to > from {
        sizes.push(to);
    }
    sizes
}

/// Returns cells of the first cpu on its nearest memory, at these sizes.
pub fn latency_curve(target: &Target, sizes: &[u64], pattern: AccessPattern) -> Vec<Cell> {
    let first = target.scope.cpus.first().copied().unwrap_or_default();
    let worker = target.nearest(first);
    latency_cells(
        &[worker],
        sizes,
        LatencySpec { pattern, pages: target.pages, team: Team::Serial },
    )
}

/// Returns the cells of a matrix of the chosen cpus and nodes at these sizes, run one after the
/// other.
pub fn latency_matrix(
    target: &Target,
    shape: MatrixShape,
    sizes: &[u64],
    pattern: AccessPattern,
) -> Vec<Cell> {
    let workers = matrix_workers(&target.machine, &target.scope, shape);
    latency_cells(&workers, sizes, LatencySpec { pattern, pages: target.pages, team: Team::Serial })
}

/// Returns cells in which all chosen cpus chase at once, each in its nearest memory, at these
/// sizes.
pub fn latency_at_once(target: &Target, sizes: &[u64], pattern: AccessPattern) -> Vec<Cell> {
    let workers: Vec<WorkerPlan> =
        target.scope.cpus.iter().map(|&cpu| target.nearest(cpu)).collect();
    let team = Team::Concurrent;
    latency_cells(&workers, sizes, LatencySpec { pattern, pages: target.pages, team })
}

/// Returns a cell for each worker and size. Cells that share a buffer (the same node) or run at
/// once (the same size) are adjacent.
pub fn latency_cells(workers: &[WorkerPlan], sizes: &[u64], spec: LatencySpec) -> Vec<Cell> {
    let LatencySpec { pattern, pages, team } = spec;
    let sized = sizes.iter().flat_map(|&size| workers.iter().map(move |&worker| (size, worker)));
    let mut cells: Vec<(u64, WorkerPlan)> = sized.collect();
    if team == Team::Serial {
        // A stable sort: sizes keep their order within a node.
        cells.sort_by_key(|&(_, worker)| worker.node);
    }
    let one = |(size_bytes, worker)| {
        Cell::of(Experiment::Latency(LatencyCell { worker, size_bytes, pattern, pages, team }))
    };
    cells.into_iter().map(one).collect()
}

fn order_of(cell: &LatencyCell) -> ChaseOrder {
    ChaseOrder { pattern: cell.pattern, pages: cell.pages }
}

impl Measurement for LatencyCell {
    fn shares_buffers(&self, other: &Experiment) -> bool {
        other.cell().is_some_and(|other: &Self| {
            let same_team = self.team == other.team && self.pages == other.pages;
            same_team
                && match self.team {
                    // Serial cells share one buffer of the largest size.
                    Team::Serial => self.worker.node == other.worker.node,
                    Team::Concurrent => {
                        self.size_bytes == other.size_bytes && self.pattern == other.pattern
                    }
                }
        })
    }

    fn run(&self, together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError> {
        match self.team {
            Team::Serial => run_serial(self, together, give),
            Team::Concurrent => run_concurrent(together, give),
        }
    }

    fn check(&self, cells: &[Cell]) -> Result<(), MeasureError> {
        let cells = cells_of::<Self>(cells);
        let at_once = if self.team == Team::Concurrent { cells.len() as u64 } else { 1 };
        // Larger cells that are impossible are left out of the run.
        let smallest = cells.iter().map(|(_, cell)| *cell).min_by_key(|cell| cell.size_bytes);
        if let Some(Self { size_bytes, pages, worker, .. }) = smallest {
            check_memory(size_bytes.saturating_mul(at_once), *pages, None)?;
            // Mapped and dropped untouched, which detects missing pages without using memory.
            drop(Buffer::untouched(*size_bytes, *pages, MemorySource::Node(worker.node))?);
        }
        cells.iter().try_for_each(|(_, cell)| {
            let size = usize::try_from(cell.size_bytes).unwrap_or(usize::MAX);
            order_of(cell).cycle(size, 0).map(drop)
        })
    }

    fn building(&self, cells: &[Cell]) -> Duration {
        let cells = cells_of::<Self>(cells);
        let largest = cells.iter().map(|(_, cell)| cell.size_bytes).max().unwrap_or(0);
        let mut cycles: Vec<_> =
            cells.iter().map(|(_, cell)| (cell.size_bytes, cell.pattern)).collect();
        // Adjacent cells of one size and pattern share a cycle.
        cycles.dedup();
        let is_built = |&&(_, pattern): &&(u64, _)| !has_few_lines(pattern);
        let built: u64 = cycles.iter().filter(is_built).map(|&(size, _)| size).sum();
        filling(largest) + per_gib(CYCLE_PER_GIB, built)
    }

    fn warm_up(&self) -> Duration {
        if is_beyond_caches(self) { WARM_UP } else { Duration::ZERO }
    }

    fn sampling(&self) -> Duration {
        if is_beyond_caches(self) { WINDOWS } else { WINDOWS / 2 }
    }
}

fn is_beyond_caches(cell: &LatencyCell) -> bool {
    cell.size_bytes > CACHE_BYTES && !has_few_lines(cell.pattern)
}

/// Reports whether the chase visits few lines, which are built at once and fit into caches.
fn has_few_lines(pattern: AccessPattern) -> bool {
    matches!(pattern, AccessPattern::OneLinePer(_))
}

/// Runs serial cells of one node with one buffer of the largest size: each cpu in turn walks one
/// cycle for each size.
fn run_serial(
    first: &LatencyCell,
    together: Together<'_>,
    give: Give<'_>,
) -> Result<(), MeasureError> {
    let Together { context, share, .. } = together;
    let cells = cells_of::<LatencyCell>(together.cells);
    let largest = cells.iter().map(|(_, cell)| cell.size_bytes).max().unwrap_or(0);
    let source = MemorySource::Node(first.worker.node);
    let mut buffer = Buffer::touched(context, largest, first.pages, source)?;
    let claim = buffer.claim();
    let same_cycle = |a: &(&Cell, &LatencyCell), b: &(&Cell, &LatencyCell)| {
        a.1.size_bytes == b.1.size_bytes && a.1.pattern == b.1.pattern
    };
    let mut given = 0;
    for group in cells.chunk_by(same_cycle) {
        let (_, latency) = group[0];
        let lines = buffer.lines(latency.size_bytes)?;
        let chase = BuiltChase::build(context, order_of(latency), lines, Some(latency.worker.cpu))?;
        for &(cell, latency) in group {
            context.check_interrupt()?;
            let limit = share.limit(given);
            let measured = match walk_alone(context, cell, latency, &chase, &claim, limit) {
                // The user's request ends the run; any other failure is this cell's only.
                Err(MeasureError::Interrupted) => return Err(MeasureError::Interrupted),
                Err(error) => Measured::failed(cell, &error),
                Ok(measured) => measured,
            };
            give(cell, measured)?;
            given += 1;
            if share.is_spent() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn walk_alone(
    context: &MeasureContext,
    cell: &Cell,
    latency: &LatencyCell,
    chase: &BuiltChase<'_>,
    claim: &MemoryClaim,
    limit: Duration,
) -> Result<Measured, MeasureError> {
    let work = || -> Result<Measured, MeasureError> {
        let pinned = pinned(latency.worker.cpu)?;
        let mut walk = chase.walk();
        let mut windows = Windows::warmed_up(context, chase, &mut walk)?;
        let mut samples = Samples::new(context, &cell.id, limit);
        let outcome = sample_here(&mut samples, |length| windows.take(context, length))?;
        let placement = claim.prove(context, &pinned)?;
        Ok(Measured::new(cell, outcome, vec![placement], samples.into_taken()))
    };
    std::thread::scope(|scope| join_all([scope.spawn(work)])).map(|mut all| all.remove(0))
}

/// Runs concurrent cells: every worker walks a separate buffer, from the first window of any worker
/// to the last window of the slowest.
fn run_concurrent(together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError> {
    let Together { context, share, .. } = together;
    let cells = cells_of::<LatencyCell>(together.cells);
    let (_, first) = cells[0];
    check_memory(first.size_bytes.saturating_mul(cells.len() as u64), first.pages, None)?;
    let limit = share.limit_together();
    let start = Barrier::new(u32::try_from(cells.len()).unwrap_or(u32::MAX));
    let still_sampling = AtomicUsize::new(cells.len());
    let all = std::thread::scope(|scope| {
        let walk = |&(cell, latency): &(&Cell, &LatencyCell)| {
            let (cell, latency) = (cell.clone(), latency.clone());
            let (start, still_sampling) = (&start, &still_sampling);
            scope.spawn(move || {
                abort_on_error(start, || {
                    walk_together(context, &cell, &latency, limit, start, still_sampling)
                })
            })
        };
        join_all(cells.iter().map(walk).collect::<Vec<_>>())
    })?;
    cells.iter().zip(all).try_for_each(|(&(cell, _), measured)| give(cell, measured))
}

fn walk_together(
    context: &MeasureContext,
    cell: &Cell,
    latency: &LatencyCell,
    limit: Duration,
    start: &Barrier,
    still_sampling: &AtomicUsize,
) -> Result<Measured, MeasureError> {
    let pinned = pinned(latency.worker.cpu)?;
    let source = MemorySource::Node(latency.worker.node);
    let mut buffer = Buffer::touched(context, latency.size_bytes, latency.pages, source)?;
    let claim = buffer.claim();
    let lines = buffer.lines(latency.size_bytes)?;
    let chase = BuiltChase::build(context, order_of(latency), lines, None)?;
    let mut walk = chase.walk();
    // All cycles have been built by now, so that no chaser is measured against a builder.
    start.wait()?;
    let mut windows = Windows::warmed_up(context, &chase, &mut walk)?;
    let mut samples = Samples::new(context, &cell.id, limit);
    let outcome = sample_here(&mut samples, |length| windows.take(context, length));
    // Relaxed: the counter publishes no other data.
    still_sampling.fetch_sub(1, Ordering::Relaxed);
    let outcome = outcome?;
    // Keeps loading memory until the slowest has its samples, which assume all chasers.
    while still_sampling.load(Ordering::Relaxed) > 0 && !start.is_aborted() {
        windows.take(context, WindowLength::Usual)?;
    }
    let placement = claim.prove(context, &pinned)?;
    Ok(Measured::new(cell, outcome, vec![placement], samples.into_taken()))
}

#[cfg(test)]
mod tests;
