//! Why a command did not run to its end, or not well.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::error_class::ErrorClass;

/// Why a command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such program.
    #[error("`{program}` is not there: install it, or correct its name")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The system did not start or watch it.
    #[error("cannot run `{program}`: {source}")]
    NotRun {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It took longer than it may, and was ended.
    #[error("`{command}` had not ended after {} s{}", limit.as_secs_f64(), ended_with_it(.left))]
    TimedOut {
        /// The program and its arguments.
        command: String,
        /// The time allowed.
        limit: Duration,
        /// What it had running in its process group, as `sleep (1234)`: ended with it.
        left: Vec<String>,
    },
    /// The user interrupted this process, so it was ended.
    #[error("`{program}` was interrupted")]
    Interrupted {
        /// The program.
        program: String,
    },
    /// It failed.
    #[error("`{command}`: {status}: {stderr}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it complained about.
        stderr: String,
    },
    /// It printed more than is kept.
    #[error("`{command}` printed {dropped_bytes} bytes more than the 8 MiB that are kept")]
    TooMuch {
        /// The program and its arguments.
        command: String,
        /// What was dropped.
        dropped_bytes: usize,
    },
}

impl CommandError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } => ErrorClass::Lacking,
            _ => ErrorClass::Failed,
        }
    }
}

fn ended_with_it(left: &[String]) -> String {
    match left {
        [] => String::new(),
        left => format!("; ended with it: {}", left.join(", ")),
    }
}
