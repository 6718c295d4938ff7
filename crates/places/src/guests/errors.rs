//! Converts errors of guests to those of a backend.

use std::fmt::Display;

use numalab_study::{BackendError, StudyPlace};

/// Returns an error for something that this machine lacks if there is a remedy, else for a failure.
pub(super) fn lacking(error: &dyn Display, remedy: Option<String>) -> BackendError {
    match remedy {
        Some(remedy) => BackendError::Lacking { what: error.to_string(), remedy },
        None => BackendError::failed("guests", error),
    }
}

/// Returns the error for an invalid setting of a study.
pub(super) fn bad(place: StudyPlace, found: String, expected: &str) -> BackendError {
    BackendError::BadInput { place, found, expected: expected.to_owned() }
}
