//! Threads that start together and fail together.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::Receiver;
use std::thread::ScopedJoinHandle;

use numalab_membench::Barrier;
use numalab_record::Cell;

use crate::error::MeasureError;
use crate::measured::{Give, Measured};

/// Runs a worker; if it fails or panics, frees those who wait for it at the barrier.
pub(crate) fn abort_on_error<T>(
    start: &Barrier,
    work: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<T, MeasureError> {
    give_up_on_error(|| start.abort(), work)
}

/// Runs a worker; if it fails or panics, `give_up` tells those who would wait for it for ever.
pub(crate) fn give_up_on_error<T>(
    give_up: impl FnOnce(),
    work: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<T, MeasureError> {
    // A panic goes on below: nothing that it may have left half done is looked at.
    let done = catch_unwind(AssertUnwindSafe(work));
    if !matches!(done, Ok(Ok(_))) {
        give_up();
    }
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Gives each cell as the team's leader sends it, then waits for every worker. A cell
/// that cannot be kept ends the team.
///
/// # Errors
/// What kept a cell from being kept, else the first failure of a worker.
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

/// What every worker gave, in order.
///
/// # Errors
/// The first failure that is a worker's own, not the echo of another's.
pub(crate) fn join_all<'scope, T>(
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
    fn a_worker_that_panics_frees_those_who_wait_for_it_and_its_panic_is_the_teams() {
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
