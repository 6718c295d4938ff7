//! Threads that start together and fail together.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::Receiver;
use std::thread::ScopedJoinHandle;

use numalab_membench::Barrier;
use numalab_record::Cell;

use crate::error::MeasureError;
use crate::measured::{Give, Measured};

/// Runs a worker; if it fails or panics, releases the others from the barrier.
pub(crate) fn abort_on_error<T>(
    start: &Barrier,
    work: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<T, MeasureError> {
    give_up_on_error(|| start.abort(), work)
}

/// Runs a worker; if it fails or panics, calls `give_up` to release workers that would otherwise
/// wait forever.
pub(crate) fn give_up_on_error<T>(
    give_up: impl FnOnce(),
    work: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<T, MeasureError> {
    // The panic is resumed below, so state that it left half done is never observed.
    let done = catch_unwind(AssertUnwindSafe(work));
    if !matches!(done, Ok(Ok(_))) {
        give_up();
    }
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Passes on each cell that the team's leader sends, then waits for every worker. A cell that
/// cannot be stored ends the team.
///
/// # Errors
/// The failure to store a cell, else the first failure of a worker.
pub(crate) fn give_and_join<'scope>(
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

/// Returns the results of all workers, in order.
///
/// # Errors
/// The first failure that a worker caused itself rather than another worker.
pub(crate) fn join_all<'scope, T>(
    workers: impl IntoIterator<Item = ScopedJoinHandle<'scope, Result<T, MeasureError>>>,
) -> Result<Vec<T>, MeasureError> {
    let (mut all, mut failure) = (Vec::new(), None);
    for worker in workers {
        match worker.join() {
            Ok(Ok(value)) => all.push(value),
            Ok(Err(error)) => {
                // Abandoned only echoes another worker's failure, so a worker's own error replaces
                // it.
                let echo = matches!(failure, None | Some(MeasureError::Abandoned));
                if echo {
                    failure = Some(error);
                }
            }
            Err(panic) => resume_unwind(panic),
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_worker_releases_the_others_and_the_team_panics() {
        let barrier = &Barrier::new(2);
        let team = || {
            std::thread::scope(|scope| {
                let wait = || Ok(barrier.wait()?);
                let waits = scope.spawn(move || abort_on_error(barrier, wait));
                let panics = scope.spawn(|| abort_on_error(barrier, || panic!("a fault")));
                join_all([waits, panics])
            })
        };
        let panic = catch_unwind(AssertUnwindSafe(team)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a fault"));
    }
}
