//! Classes of errors.

use std::io;

/// The class of an error, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Something failed while running.
    Failed,
    /// The input names something that does not exist, or is invalid.
    BadInput,
    /// This machine or process lacks something that is needed.
    Lacking,
    /// A check found errors in its input.
    CheckFailed,
    /// A command to run exists but cannot be run.
    NotRunnable,
    /// A command to run was not found.
    NotFound,
}

/// An error whose class decides the exit code of the command that it ends.
pub trait Classed: std::error::Error {
    /// Returns the class of the error: something is lacking if there is a remedy.
    fn class(&self) -> ErrorClass {
        match self.remedy() {
            Some(_) => ErrorClass::Lacking,
            None => ErrorClass::Failed,
        }
    }

    /// Returns the package or command that provides what is missing, unless the message names it.
    fn remedy(&self) -> Option<String> {
        None
    }

    /// Returns the message, with the remedy if there is one.
    fn explained(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{self}; {remedy}"),
            None => self.to_string(),
        }
    }
}

impl ErrorClass {
    /// Returns the class of a failed attempt to start a command.
    pub fn of_start(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            _ => Self::NotRunnable,
        }
    }

    /// Returns the exit code of the command line for this class.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::BadInput => 2,
            Self::Lacking => 3,
            Self::CheckFailed => 5,
            Self::NotRunnable => 126,
            Self::NotFound => 127,
        }
    }
}
