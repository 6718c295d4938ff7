//! Threads that start together and fail together.

use std::sync::mpsc::Receiver;
use std::thread::ScopedJoinHandle;

use numalab_membench::Barrier;
use numalab_record::Cell;

use super::{Give, Measured};
use crate::error::MeasureError;

/// Runs a worker; if it fails, frees those who wait for it at the barrier.
pub(super) fn abort_on_error<T>(
    start: &Barrier,
    work: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<T, MeasureError> {
    let done = work();
    if done.is_err() {
        start.abort();
    }
    done
}

/// Gives each cell as the team's leader sends it, then waits for every worker. A cell
/// that cannot be kept ends the team.
///
/// # Errors
/// What kept a cell from being kept, else the first failure of a worker.
pub(super) fn give_and_join<'scope>(
    receiver: Receiver<(&Cell, Measured)>,
    give: Give<'_>,
    barrier: &Barrier,
    workers: Vec<ScopedJoinHandle<'scope, Result<(), MeasureError>>>,
) -> Result<(), MeasureError> {
    let kept = receiver.into_iter().try_for_each(|(cell, measured)| give(cell, measured));
    if kept.is_err() {
        barrier.abort();
    }
    let worked = join_all(workers);
    kept.and(worked.map(drop))
}

/// What every worker gave, in order.
///
/// # Errors
/// The first failure that is a worker's own, not the echo of another's.
pub(super) fn join_all<'scope, T>(
    workers: impl IntoIterator<Item = ScopedJoinHandle<'scope, Result<T, MeasureError>>>,
) -> Result<Vec<T>, MeasureError> {
    let (mut all, mut failure) = (Vec::new(), None);
    for worker in workers {
        match worker.join() {
            Ok(Ok(value)) => all.push(value),
            Ok(Err(error)) => {
                let echo = matches!(failure, None | Some(MeasureError::Abandoned));
                if echo {
                    failure = Some(error);
                }
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(all),
    }
}
