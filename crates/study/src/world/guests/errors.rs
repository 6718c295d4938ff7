//! Errors of guests as those of a world.

use std::fmt::Display;

use crate::world::WorldError;

/// Something that failed, which this machine lacks if there is a remedy.
pub(super) fn lacking(error: &dyn Display, remedy: Option<String>) -> WorldError {
    match remedy {
        Some(remedy) => WorldError::Lacking { what: error.to_string(), remedy },
        None => failed("guests", error),
    }
}

/// Something that failed.
pub(super) fn failed(doing: &str, error: &dyn Display) -> WorldError {
    WorldError::Failed { doing: doing.to_owned(), reason: error.to_string() }
}
