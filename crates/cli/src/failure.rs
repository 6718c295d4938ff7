//! Failures of commands, and their exit codes.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use numalab_host::{Classed, ErrorClass, note};

/// Exit codes other than 0, as `--help` and the README list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Failed while running.
    Failed = 1,
    /// Usage or bad input.
    BadInput = 2,
    /// This machine lacks what is needed.
    Lacking = 3,
    /// A requested check fails: `--fail-if worse`, `--expect`.
    Worse = 4,
    /// A check found errors in its input.
    CheckFailed = 5,
    /// `health` found the machine degraded, or other load kept it uncertain.
    Degraded = 6,
    /// `--fail-if` was given, and nothing could be decided.
    Undecided = 7,
    /// A command that runs another failed itself, with the code that env(1) and timeout(1) use.
    WrapperFailed = 125,
    /// The command exists but cannot be run.
    NotRunnable = 126,
    /// The command to run was not found.
    NotFound = 127,
}

/// Every exit code with its meaning, for the manual pages.
pub(crate) const EXIT_STATUS: [(u8, &str); 11] = [
    (0, "Done."),
    (Code::Failed as u8, "Failed while running; results so far are kept."),
    (Code::BadInput as u8, "Usage or bad input."),
    (Code::Lacking as u8, "This machine lacks what is needed; the message has the remedy."),
    (
        Code::Worse as u8,
        "A requested check fails: --fail-if worse, --expect, --fail; health: failing; bisect: no \
         commit named.",
    ),
    (Code::CheckFailed as u8, "A check found errors in its input."),
    (Code::Degraded as u8, "health: degraded; or worse, but possibly because of other load."),
    (
        Code::Undecided as u8,
        "--fail-if: nothing could be decided, because runs are too few or too close in time.",
    ),
    (
        Code::WrapperFailed as u8,
        "bind, emulate, mark, profile, knobs run or guest run failed itself; otherwise they end with the exit \
         code of the command they run.",
    ),
    (Code::NotRunnable as u8, "The command to run was found but could not be run."),
    (Code::NotFound as u8, "The command to run was not found."),
];

/// Returns the exit code of a malformed command line.
pub(crate) fn usage(words: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::from(if names_wrapper(words) { Code::WrapperFailed } else { Code::BadInput } as u8)
}

/// Returns true if a command line names a command that runs another one. Only for lines that could
/// not be parsed: a parsed command knows.
fn names_wrapper(words: impl Iterator<Item = OsString>) -> bool {
    let words: Vec<OsString> = words.skip(1).collect();
    let has_command = words.iter().any(|word| word == "--");
    // The options of every command may come before its name; `--redact` has a value.
    let mut named = &words[..];
    while let [option, rest @ ..] = named
        && option.as_encoded_bytes().starts_with(b"-")
    {
        named = rest.get(usize::from(option == "--redact")..).unwrap_or_default();
    }
    let word = |at: usize| named.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let is_wrapper =
        matches!((word(0), word(1)), ("bind" | "emulate" | "mark", _) | ("knobs" | "guest", "run"));
    is_wrapper || (word(0) == "profile" && has_command)
}

/// The reason why a command ended without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
}

impl Failure {
    /// Returns a failure with this code; `message` names the input, the place and the expected
    /// form.
    pub fn new(code: impl Into<Code>, message: impl Display) -> Self {
        Self { code: code.into(), message: message.to_string() }
    }

    /// Reports an error with a file or a directory.
    pub fn at(path: &Path, error: impl Display) -> Self {
        Self::new(Code::Failed, format!("{}: {error}", path.display()))
    }

    /// Reports bad input.
    pub fn bad_input(message: impl Display) -> Self {
        Self::new(Code::BadInput, message)
    }

    /// Reports an error of a library with the option whose value it refuses.
    pub fn of_option(option: &str, error: impl Classed) -> Self {
        Self::new(error.class(), format!("{option}: {}", error.explained()))
    }

    /// Returns the same failure for a command that passes on another command's exit code, with a
    /// code that cannot be mistaken for that command's.
    pub fn of_wrapper(self) -> Self {
        let code = match self.code {
            code @ (Code::NotRunnable | Code::NotFound) => code,
            _ => Code::WrapperFailed,
        };
        Self { code, ..self }
    }

    /// Returns the failure of a rank, which has already printed its message.
    pub fn of_rank(exit_code: u8) -> Self {
        let code = match exit_code {
            2 => Code::BadInput,
            3 => Code::Lacking,
            _ => Code::Failed,
        };
        Self::new(code, "")
    }

    /// Prints the message once and returns the exit code.
    pub fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            note(self.message);
        }
        ExitCode::from(self.code as u8)
    }
}

impl From<ErrorClass> for Code {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Failed => Self::Failed,
            ErrorClass::BadInput => Self::BadInput,
            ErrorClass::Lacking => Self::Lacking,
            ErrorClass::CheckFailed => Self::CheckFailed,
            ErrorClass::NotRunnable => Self::NotRunnable,
            ErrorClass::NotFound => Self::NotFound,
        }
    }
}

impl<E: Classed> From<E> for Failure {
    /// Adds the remedy if this machine has one.
    fn from(error: E) -> Self {
        Self::new(error.class(), error.explained())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_run_another_are_known_by_their_first_words() {
        let named = |line: &str| names_wrapper(line.split(' ').map(OsString::from));
        assert!(named("numalab bind --nosuch") && named("numalab knobs run"));
        assert!(named("numalab guest run x") && named("numalab mark"));
        assert!(named("numalab -q --redact no bind --nosuch") && named("numalab --redact=no mark"));
        assert!(!named("numalab -q study run x") && !named("numalab --redact"));
        assert!(named("numalab profile --nosuch -- true") && !named("numalab profile --pid x"));
        assert!(!named("numalab guest list") && !named("numalab knobs") && !named("numalab"));
    }
}
