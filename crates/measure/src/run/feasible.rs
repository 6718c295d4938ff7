//! What a machine will refuse, found without measuring.

use numalab_host::{MemoryLimit, Root};
use numalab_record::{BandwidthCell, Cell, Experiment, LoadedCell, Team};

use super::latency::order_of;
use super::stream::StreamRules;
use crate::buffer::{Buffer, MemorySource};
use crate::error::MeasureError;
use crate::plan::shared_run;

/// Fails as a run of `plan` would in which no cell can be measured: for too much memory, pages
/// that are not reserved, an instruction set or an order that there is not. Memory is asked
/// for and given back untouched.
///
/// # Errors
/// The first cell's [`MeasureError`], if every cell has one.
pub fn check_plan(plan: &[Cell]) -> Result<(), MeasureError> {
    let (mut rest, mut first) = (plan, None);
    while !rest.is_empty() {
        let (together, later) = rest.split_at(shared_run(rest).max(1));
        match check_shared(together) {
            Ok(()) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
        rest = later;
    }
    first.map_or(Ok(()), Err)
}

/// What concerns all of these cells, which share their buffers, or each of them.
fn check_shared(cells: &[Cell]) -> Result<(), MeasureError> {
    let latencies = cells.iter().filter_map(|cell| match &cell.experiment {
        Experiment::Latency(latency) => Some(latency),
        _ => None,
    });
    let largest = latencies.clone().max_by_key(|latency| latency.size_bytes);
    if let Some(largest) = largest {
        let at_once = if largest.team == Team::Concurrent { cells.len() as u64 } else { 1 };
        check_sum(largest.size_bytes.saturating_mul(at_once))?;
        drop(Buffer::untouched(
            largest.size_bytes,
            largest.pages,
            MemorySource::Node(largest.worker.node),
        )?);
    }
    for latency in latencies {
        let size = usize::try_from(latency.size_bytes).unwrap_or(usize::MAX);
        order_of(latency).cycle(size, 0)?;
    }
    match cells.first().map(|cell| &cell.experiment) {
        Some(Experiment::Bandwidth(cell)) => check_bandwidth(cell),
        Some(Experiment::Loaded(cell)) => check_loaded(cell),
        _ => Ok(()),
    }
}

fn check_bandwidth(cell: &BandwidthCell) -> Result<(), MeasureError> {
    StreamRules::of(cell).checked(0)?;
    check_sum(cell.size_bytes.saturating_mul(cell.workers.len() as u64))?;
    for worker in &cell.workers {
        drop(Buffer::untouched(cell.size_bytes, cell.pages, MemorySource::Node(worker.node))?);
    }
    Ok(())
}

fn check_loaded(cell: &LoadedCell) -> Result<(), MeasureError> {
    check_sum(cell.size_bytes.saturating_mul(cell.load.len() as u64 + 1))?;
    drop(Buffer::untouched(cell.size_bytes, cell.pages, MemorySource::Node(cell.chaser.node))?);
    Ok(())
}

/// All buffers that are alive at once.
fn check_sum(bytes: u64) -> Result<(), MeasureError> {
    Ok(MemoryLimit::read(&Root::live())?.check(bytes, None)?)
}
