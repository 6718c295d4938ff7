//! Reasons why a command did not run to its end, or failed.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::start::StartError;
use crate::error_class::{Classed, ErrorClass};

/// A command that gave no usable output.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("`{program}` was not found: install it, or correct its name")]
    NotFound { program: String },
    #[error("cannot open the input of `{program}`, {}: {source}", input.display())]
    NoInput { program: String, input: PathBuf, source: io::Error },
    /// The program exists, but a file that it needs to start does not.
    #[error(transparent)]
    NotStarted(#[from] StartError),
    /// The system could not start or watch it.
    #[error("cannot run `{program}`: {source}")]
    NotRun { program: String, source: io::Error },
    #[error("`{command}` did not end within {} s{}", limit.as_secs_f64(), ended_with_it(.left))]
    TimedOut {
        command: String,
        limit: Duration,
        /// Other processes of its group that were ended with it, such as `sleep (1234)`.
        left: Vec<String>,
    },
    /// The user interrupted this process, which ended the command.
    #[error("`{program}` was interrupted")]
    Interrupted { program: String },
    /// The command returned a status other than 0.
    #[error("`{command}`: {status}: {stderr}")]
    Failed { command: String, status: ExitStatus, stderr: String },
    #[error("`{command}` printed {dropped_bytes} bytes more than the limit of 8 MiB")]
    TooMuch { command: String, dropped_bytes: usize },
}

impl Classed for CommandError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } | Self::NotStarted(_) => ErrorClass::Lacking,
            Self::NoInput { .. } => ErrorClass::BadInput,
            _ => ErrorClass::Failed,
        }
    }
}

fn ended_with_it(left: &[String]) -> String {
    match left {
        [] => String::new(),
        left => format!("; killed with it: {}", left.join(", ")),
    }
}
