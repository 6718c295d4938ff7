//! Converts errors of guests to those of a backend.

use numalab_host::Classed;
use numalab_study::{BackendError, StudyPlace};

/// Returns an error for something that this machine lacks if there is a remedy, else for a failure.
pub(super) fn lacking(error: &dyn Classed) -> BackendError {
    BackendError::of("guests", error)
}

/// Returns the error for an invalid setting of a study.
pub(super) fn bad(place: StudyPlace, found: String, expected: &str) -> BackendError {
    BackendError::bad_input(place, found, expected)
}
