//! Commands that run another one and end with its exit code.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// Returns true if a command line names such a command. Only for lines that could not be parsed: a
/// parsed command knows.
pub(crate) fn is_named(words: impl Iterator<Item = OsString>) -> bool {
    let words: Vec<OsString> = words.skip(1).collect();
    let has_command = words.iter().any(|word| word == "--");
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let is_wrapper =
        matches!((word(0), word(1)), ("bind" | "emulate" | "mark", _) | ("knobs" | "guest", "run"));
    is_wrapper || (word(0) == "profile" && has_command)
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

    #[test]
    fn commands_that_run_another_are_known_by_their_first_words() {
        let named = |line: &str| is_named(line.split(' ').map(OsString::from));
        assert!(named("numalab bind --nosuch") && named("numalab knobs run"));
        assert!(named("numalab guest run x") && named("numalab mark"));
        assert!(named("numalab profile --nosuch -- true") && !named("numalab profile --pid x"));
        assert!(!named("numalab guest list") && !named("numalab knobs") && !named("numalab"));
    }
}
