//! Errors of guests as those of a backend.

use std::fmt::Display;

use numalab_study::{BackendError, StudyPlace};

/// Something that failed, which this machine lacks if there is a remedy.
pub(super) fn lacking(error: &dyn Display, remedy: Option<String>) -> BackendError {
    match remedy {
        Some(remedy) => BackendError::Lacking { what: error.to_string(), remedy },
        None => failed("guests", error),
    }
}

/// Something that failed.
pub(super) fn failed(doing: &str, error: &dyn Display) -> BackendError {
    BackendError::Failed { doing: doing.to_owned(), reason: error.to_string() }
}

/// That a study says what cannot be.
pub(super) fn bad(place: StudyPlace, found: String, expected: &str) -> BackendError {
    BackendError::BadInput { place, found, expected: expected.to_owned() }
}
