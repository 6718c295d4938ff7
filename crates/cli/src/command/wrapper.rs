//! Commands that run another one and end with its exit code.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use numalab_host::{ErrorClass, check_startable, users_program};

use crate::failure::Failure;

/// Starts the user's command with `start`.
pub(crate) fn start<T>(
    words: &[String],
    start: impl FnOnce(Command) -> io::Result<T>,
) -> Result<T, Failure> {
    let (program, arguments) = words.split_first().ok_or_else(|| {
        Failure::bad_input("expected a command after `--`, such as `-- sysbench memory run`")
    })?;
    check_startable(program)?;
    start(users_program(program, arguments)).map_err(|error| {
        Failure::new(ErrorClass::of_start(&error), format!("cannot run `{program}`: {error}"))
    })
}

/// Returns the exit code of a command: its own, or 128 plus the signal's number, like a shell.
pub(crate) fn exit_code(ended: ExitStatus) -> ExitCode {
    let signal = || ended.signal().map_or(255, |signal| 128 + (signal & 0x7f));
    ExitCode::from(u8::try_from(ended.code().unwrap_or_else(signal) & 0xff).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_gives_the_code_of_a_shell() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), ExitCode::from(3));
        assert_eq!(exit_code(ExitStatus::from_raw(9)), ExitCode::from(137));
    }
}
