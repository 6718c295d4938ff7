//! Latency cells: one chaser after the other on a shared buffer, or all at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use numalab_membench::Barrier;
use numalab_record::{Cell, Experiment, LatencyCell};

use super::chase::{BuiltChase, ChaseOrder, Windows};
use super::team::{abort_on_error, join_all};
use super::{Give, Measured};
use crate::buffer::{Buffer, MemoryClaim, MemorySource, pinned};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::sampling::{Samples, WindowLength, sample_here};
use crate::share::Share;

fn latency_of(cell: &Cell) -> Option<(&Cell, &LatencyCell)> {
    match &cell.experiment {
        Experiment::Latency(latency) => Some((cell, latency)),
        _ => None,
    }
}

pub(super) fn order_of(cell: &LatencyCell) -> ChaseOrder {
    ChaseOrder { pattern: cell.pattern, pages: cell.pages }
}

/// Runs serial cells of one node: one buffer of the largest size, one cycle for
/// each size, and each cpu walks it in turn.
pub(super) fn run_serial(
    context: &MeasureContext,
    cells: &[Cell],
    share: &Share<'_>,
    give: Give<'_>,
) -> Result<(), MeasureError> {
    let cells: Vec<_> = cells.iter().filter_map(latency_of).collect();
    let Some(&(_, first)) = cells.first() else {
        return Ok(());
    };
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

/// Runs concurrent cells: every worker with a buffer of its own, all walking from
/// the first window of one to the last window of the slowest.
pub(super) fn run_concurrent(
    context: &MeasureContext,
    cells: &[Cell],
    share: &Share<'_>,
    give: Give<'_>,
) -> Result<(), MeasureError> {
    let cells: Vec<_> = cells.iter().filter_map(latency_of).collect();
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
    start.wait().map_err(|_| MeasureError::Abandoned)?;
    let mut windows = Windows::warmed_up(context, &chase, &mut walk)?;
    let mut samples = Samples::new(context, &cell.id, limit);
    let outcome = sample_here(&mut samples, |length| windows.take(context, length));
    still_sampling.fetch_sub(1, Ordering::Relaxed);
    let outcome = outcome?;
    while still_sampling.load(Ordering::Relaxed) > 0 && !start.is_aborted() {
        windows.take(context, WindowLength::Usual)?;
    }
    let placement = claim.prove(context, &pinned)?;
    Ok(Measured::new(cell, outcome, vec![placement], samples.into_taken()))
}
